/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec time = {0};
	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Since some moment of the past, whatever becomes of the clock on the wall. */
static inline uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t now_ms(void)
{
	return now_ns() / 1000000;
}

/* CPU time of the calling thread. */
static inline uint64_t own_cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}
