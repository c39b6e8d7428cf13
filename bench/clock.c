/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock HZ COMMAND [ARGUMENTS]: runs COMMAND while the kernel's clock for
 * samples goes on every CPU, and nothing is done with it: what no profiler that uses
 * it can be cheaper than.
 */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int open_clock(int cpu, unsigned long hz)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof attr,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000000ul / hz,
		.exclude_idle = 1,
	};
	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

int main(int argc, char **argv)
{
	unsigned long hz = argc > 2 ? strtoul(argv[1], NULL, 10) : 0;
	int status, opened = 0;
	if (!hz) {
		fprintf(stderr, "usage: clock HZ COMMAND [ARGUMENTS]\n");
		return 2;
	}
	for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++)
		opened += open_clock(cpu, hz) >= 0;
	if (!opened) {
		perror("clock: the kernel gives no clock");
		return 1;
	}
	pid_t child = fork();
	if (!child) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
