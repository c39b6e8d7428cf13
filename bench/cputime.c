/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cputime FILE COMMAND [ARGUMENTS]: runs COMMAND and appends a line to FILE:
 * the seconds of CPU time in the program and in the kernel that it and its
 * children took, and those by the clock. Between a profiler and the program it
 * tells the cost of the one from that of the other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double seconds(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

static int note(const char *path, double wall)
{
	struct rusage usage;
	FILE *out = fopen(path, "a");
	if (!out || getrusage(RUSAGE_CHILDREN, &usage))
		return -1;
	fprintf(out, "%.6f %.6f %.6f\n", seconds(&usage.ru_utime), seconds(&usage.ru_stime), wall);
	return fclose(out);
}

int main(int argc, char **argv)
{
	int status;
	double start = now();
	if (argc < 3)
		return 2;
	pid_t child = fork();
	if (!child) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || note(argv[1], now() - start)) {
		perror("cputime");
		return 126;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
