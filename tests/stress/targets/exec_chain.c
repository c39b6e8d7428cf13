/* SPDX-License-Identifier: Apache-2.0 */
/* Starts itself anew again and again, by every call that does, also with threads at work and from a
   thread. exec_chain SCALE [STEPS-LEFT SUM] */
#include "stress.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;
static char path[4096], scale[16], left_text[16], sum_text[32];
static int left;

static void *spin(void *unused)
{
	for (;;)
		burn(1);
	return unused;
}

static void *again(void *unused)
{
	char *arguments[] = {(char *)"exec_chain", scale, left_text, sum_text, NULL};
	int fd;
	switch (left % 7) {
	case 0:
		execve(path, arguments, environ);
		break;
	case 1:
		execvp(path, arguments);
		break;
	case 2:
		execl(path, "exec_chain", scale, left_text, sum_text, (char *)NULL);
		break;
	case 3:
		fd = open(path, O_RDONLY | O_CLOEXEC);
		fexecve(fd, arguments, environ);
		break;
	case 4:
		syscall(SYS_execveat, AT_FDCWD, path, arguments, environ, 0);
		break;
	case 5:
		syscall(SYS_execve, path, arguments, environ);
		break;
	case 6:
		execv("/nonexistent/program", arguments);
		if (errno == ENOENT)
			execvpe(path, arguments, environ);
		break;
	}
	perror("exec");
	exit(99);
	return unused;
}

int main(int argc, char **argv)
{
	int steps = scaled(argc, argv, 100);
	unsigned long sum = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
	pthread_t thread;
	left = argc > 2 ? atoi(argv[2]) : steps;
	sum += burn(10) & 0xff;
	if (left == 0) {
		printf("%d steps, sum %lu\n", steps, sum);
		return 3;
	}
	path[readlink("/proc/self/exe", path, sizeof path - 1)] = '\0';
	snprintf(scale, sizeof scale, "%s", argc > 1 ? argv[1] : "100");
	snprintf(left_text, sizeof left_text, "%d", left - 1);
	snprintf(sum_text, sizeof sum_text, "%lu", sum);
	for (int i = 0; i < 3 && left % 2; i++)
		must(!pthread_create(&thread, NULL, spin, NULL), "pthread_create");
	if (left % 5)
		again(NULL);
	must(!pthread_create(&thread, NULL, again, NULL), "pthread_create");
	pthread_join(thread, NULL);
	return 98;
}
