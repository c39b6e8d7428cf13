/* SPDX-License-Identifier: Apache-2.0 */
/* Every way to make a process, thousands of times, also nested and from threads. */
#include "stress.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static int count;

static int status_of(pid_t pid)
{
	int status;
	must(pid > 0, "fork");
	must(waitpid(pid, &status, 0) == pid, "waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int fork_plain(int i)
{
	pid_t pid = fork();
	if (pid == 0) {
		burn(2);
		_exit(i & 0x3f);
	}
	return status_of(pid);
}

static int fork_raw(int i)
{
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		burn(2);
		_exit(i & 0x3f);
	}
	return status_of(pid);
}

static int fork_nested(int level)
{
	pid_t pid = fork();
	if (pid == 0) {
		burn(2);
		_exit(level ? fork_nested(level - 1) + 1 : 1);
	}
	return status_of(pid);
}

static int fork_killed(int i)
{
	pid_t pid = fork();
	if (pid == 0) {
		burn(1 + (unsigned)i % 3);
		raise(i % 2 ? SIGKILL : SIGTERM);
	}
	return status_of(pid);
}

static char *arguments[] = {(char *)"true", NULL};

static int run_vfork(int i)
{
	pid_t pid = vfork();
	if (pid == 0) {
		if (i % 2)
			execv("/bin/true", arguments);
		_exit(7);
	}
	return status_of(pid);
}

static int run_spawn(int i)
{
	pid_t pid = 0;
	must(!(i % 2 ? posix_spawn(&pid, "/bin/true", NULL, NULL, arguments, environ)
		     : posix_spawnp(&pid, "true", NULL, NULL, arguments, environ)),
	     "posix_spawn");
	return status_of(pid);
}

static int run_system(int i)
{
	int status = system(i % 2 ? "exit 3" : "kill -USR1 $$");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int run_popen(int i)
{
	char line[32] = "";
	FILE *pipe = popen("echo 11", "r");
	must(pipe && fgets(line, sizeof line, pipe), "popen");
	pclose(pipe);
	(void)i;
	return atoi(line);
}

static void *fork_in_thread(void *unused)
{
	intptr_t sum = 0;
	for (int i = 0; i < count / 20; i++) {
		burn(1);
		sum += fork_plain(i);
	}
	(void)unused;
	return (void *)sum;
}

static void repeat(const char *name, int times, int (*make)(int))
{
	long sum = 0;
	for (int i = 0; i < times; i++)
		sum += make(i);
	printf("%s: %d times, sum %ld\n", name, times, sum);
	fflush(stdout);
}

static void threads(void)
{
	pthread_t thread[4];
	for (int i = 0; i < 4; i++)
		must(!pthread_create(&thread[i], NULL, fork_in_thread, NULL), "pthread_create");
	for (int i = 0; i < 4; i++) {
		void *sum;
		pthread_join(thread[i], &sum);
		printf("thread %d: sum %ld\n", i, (long)(intptr_t)sum);
	}
	fflush(stdout);
}

static int nested_four(int i)
{
	(void)i;
	return fork_nested(4);
}

int main(int argc, char **argv)
{
	count = scaled(argc, argv, 1000);
	repeat("fork", count, fork_plain);
	repeat("clone", count / 10 + 1, fork_raw);
	repeat("nested", count / 20 + 1, nested_four);
	repeat("killed", count / 10 + 1, fork_killed);
	repeat("vfork", count / 10 + 1, run_vfork);
	repeat("spawn", count / 10 + 1, run_spawn);
	repeat("system", count / 50 + 2, run_system);
	repeat("popen", count / 50 + 2, run_popen);
	threads();
	return 5;
}
