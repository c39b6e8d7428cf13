/* SPDX-License-Identifier: Apache-2.0 */
/* Another process sends signals as fast as it can; queued ones must all arrive. */
#include "stress.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long queued, sum, plain;

static void on_queued(int signal, siginfo_t *info, void *context)
{
	queued++;
	sum += info->si_value.sival_int;
	(void)signal, (void)context;
}

static void on_plain(int signal)
{
	plain++;
	(void)signal;
}

static void storm(pid_t to, int count)
{
	for (int i = 0; i < count; i++) {
		union sigval value = {.sival_int = i};
		kill(to, SIGUSR1);
		if (i % 5)
			continue;
		while (sigqueue(to, SIGRTMIN + 4, value) && errno == EAGAIN)
			sched_yield();
	}
	_exit(8);
}

int main(int argc, char **argv)
{
	int count = scaled(argc, argv, 100000), status;
	struct sigaction action = {.sa_sigaction = on_queued, .sa_flags = SA_SIGINFO | SA_RESTART};
	pid_t parent = getpid(), pid;
	sigaction(SIGRTMIN + 4, &action, NULL);
	signal(SIGUSR1, on_plain);
	pid = fork();
	if (pid == 0)
		storm(parent, count);
	while (queued < (count + 4) / 5)
		burn(1);
	must(TEMP_FAILURE_RETRY(waitpid(pid, &status, 0)) == pid, "waitpid");
	burn(100);
	printf("queued %ld, sum %ld, child %d\n", queued, sum, WEXITSTATUS(status));
	expect(plain > 0 && plain <= count, "plain ones came");
	return expect_failed;
}
