/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deep_waits DEPTH COUNT: calls itself DEPTH times, sleeps, and returns from all of that, COUNT times. So no two sleeps share
 * frames. Prints its CPU time and its sleep, in seconds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define FRAME 2000
#define SLEEP_NS 300000

static double slept;
static volatile int zero;

static double seconds(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int wait_a_little(void)
{
	double start = seconds(CLOCK_MONOTONIC);
	nanosleep(&(struct timespec){0, SLEEP_NS}, NULL);
	slept += seconds(CLOCK_MONOTONIC) - start;
	return zero;
}

__attribute__((noinline)) static int descend(int depth)
{
	volatile char frame[FRAME];
	frame[0] = (char)depth;
	return depth ? descend(depth - 1) + frame[0] * zero : wait_a_little();
}

int main(int argc, char **argv)
{
	int depth = argc > 1 ? atoi(argv[1]) : 1000, count = argc > 2 ? atoi(argv[2]) : 100;
	for (int i = 0; i < count; i++)
		zero = descend(depth);
	printf("%.6f %.6f\n", seconds(CLOCK_PROCESS_CPUTIME_ID), slept);
	return 0;
}
