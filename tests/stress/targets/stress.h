/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * For the target programs: each does one thing that a profiler can disturb,
 * uses CPU time while it does, and prints only what is the same in every run.
 * The first argument scales the work: per cent of the default.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* CPU work with a result that depends on all of it: about 0.1 ms per unit. */
static __attribute__((noinline, unused)) uint64_t burn(unsigned units)
{
	uint64_t x = 88172645463325252ull;
	for (uint64_t i = 0; i < units * 50000ull; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		__asm__ volatile("" : "+r"(x)); /* it must be done even where nobody looks */
	}
	return x;
}

static inline int scaled(int argc, char **argv, int count)
{
	long long percent = argc > 1 ? atoi(argv[1]) : 100;
	long long result = count * percent / 100;
	return result > 0 ? (int)result : 1;
}

static inline int64_t now_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static __attribute__((unused)) int expect_failed;

static inline void expect(bool holds, const char *what)
{
	printf("%s: %s\n", what, holds ? "yes" : "NO");
	if (!holds)
		expect_failed = 1;
}

static inline void must(bool holds, const char *what)
{
	if (!holds) {
		perror(what);
		exit(99);
	}
}
