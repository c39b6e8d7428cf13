/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, a child and a program that it starts, which compute for some seconds: for the collector's death. */
#include "stress.h"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned units;

static void *work(void *unused)
{
	for (int i = 0; i < 10; i++) {
		burn(units / 10);
		usleep(100);
	}
	return unused;
}

/* The child's part ends with a program that is started late, maybe after the collector is gone. */
static int system_status(void)
{
	return WEXITSTATUS(system("exit 4"));
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int status = 0;
	pid_t pid;
	units = (unsigned)scaled(argc, argv, 10000);
	must(!pthread_create(&thread, NULL, work, NULL), "pthread_create");
	pid = fork();
	if (pid == 0) {
		work(NULL);
		_exit(system_status());
	}
	for (int i = 0; i < 20; i++) {
		pthread_t shorter;
		must(!pthread_create(&shorter, NULL, work, NULL), "pthread_create");
		pthread_join(shorter, NULL);
		if (i == 3)
			units /= 10;
	}
	pthread_join(thread, NULL);
	waitpid(pid, &status, 0);
	printf("child %d\n", WEXITSTATUS(status));
	return 17;
}
