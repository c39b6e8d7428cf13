/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cold SECONDS LEVELS THREADS: so many threads spend their time below so many frames of 8 KiB, whose memory the kernel is told is not
 * used. Where a CPU does not mark pages itself it cannot be read in an interrupt then.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define PAGE 4096u

static double seconds = 1;
static int levels = 100;
static volatile unsigned long sink;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

__attribute__((noinline)) void cold_work(const char *outermost)
{
	char here;
	uintptr_t from = ((uintptr_t)&here / PAGE + 8) * PAGE;
	for (double end = now() + seconds; now() < end;) {
		madvise((void *)from, (uintptr_t)outermost / PAGE * PAGE - from, MADV_COLD);
		for (unsigned long n = 200000; n--;)
			sink += n;
	}
}

__attribute__((noinline)) void cold_level(const char *outermost, int left)
{
	volatile char room[8192];
	room[0] = (char)left;
	if (left)
		cold_level(outermost, left - 1);
	else
		cold_work(outermost);
	sink += (unsigned long)room[0]; /* no tail call */
}

static void *cold_thread(void *unused)
{
	char here;
	cold_level(&here, levels);
	return unused;
}

int main(int argc, char **argv)
{
	int count = argc > 3 ? atoi(argv[3]) : 1;
	pthread_t *threads = calloc((size_t)count, sizeof *threads);
	seconds = argc > 1 ? atof(argv[1]) : seconds;
	levels = argc > 2 ? atoi(argv[2]) : levels;
	for (int i = 0; threads && i < count; i++)
		if (pthread_create(&threads[i], NULL, cold_thread, NULL))
			return 1;
	for (int i = 0; threads && i < count; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	return 0;
}
