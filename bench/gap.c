/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gap DEPTH SECONDS [OTHERS]: what one sample costs a program, seen from inside, also on a noisy machine.
 *
 * Reads the CPU's counter in a tight loop, DEPTH calls deep, and keeps every gap that is longer than half
 * a microsecond: an interrupt and all that was done in it. Those that there are without a sampler, OTHERS in
 * a second, are shorter than samples; they are left out. So the median of the rest is the direct cost of one; what
 * others take of the CPU falls into the tail. Prints how many gaps there were in a second, and the median in
 * microseconds.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "safe/ticks.h"

#define MOST 400000
#define AT_ONCE 20000 /* readings between two looks at the clock */

static uint64_t gaps[MOST];
static size_t count;
static double per_us;
static volatile long sink;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

__attribute__((noinline)) static void spin(double seconds)
{
	uint64_t shortest = (uint64_t)(per_us / 2);
	for (double end = now() + seconds; now() < end;) {
		uint64_t last = ticks_now();
		for (int i = 0; i < AT_ONCE; i++) {
			uint64_t t = ticks_now();
			if (t - last > shortest && count < MOST)
				gaps[count++] = t - last;
			last = t;
		}
	}
}

__attribute__((noinline)) static long down(long depth, double seconds)
{
	if (!depth) {
		spin(seconds);
		return 1;
	}
	long below = down(depth - 1, seconds);
	sink += below; /* no call in the place of a return */
	return below + 1;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	if (argc < 3 || argc > 4)
		return 2;
	long depth = atol(argv[1]);
	double seconds = atof(argv[2]), start = now();
	uint64_t ticks = ticks_now();
	while (now() - start < 0.05)
		;
	per_us = (double)(ticks_now() - ticks) / ((now() - start) * 1e6);
	down(depth, seconds);
	qsort(gaps, count, sizeof *gaps, by_size);
	size_t others = argc > 3 ? (size_t)(atof(argv[3]) * seconds) : 0;
	if (others >= count)
		return 1;
	fprintf(stderr, "gap %.0f %.2f\n", (double)count / seconds,
		(double)gaps[others + (count - others) / 2] / per_us);
	return 0;
}
