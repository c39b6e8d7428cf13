/* SPDX-License-Identifier: Apache-2.0 */
/* share_cpu THREADS SECONDS: threads that compute on one CPU, all of them at once. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

static double seconds;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *compute(void *unused)
{
	volatile unsigned long sum = 0;
	for (double end = now() + seconds; now() < end;)
		for (unsigned long i = 0; i < 100000; i++)
			sum += i;
	return unused;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 2;
	pthread_t threads[64];
	cpu_set_t set, one;
	seconds = argc > 2 ? atof(argv[2]) : 1;
	if (count < 1 || count > 64 || sched_getaffinity(0, sizeof set, &set))
		return 2;
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
		if (CPU_ISSET(i, &set))
			CPU_SET(i, &one);
	sched_setaffinity(0, sizeof one, &one);
	for (int i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, compute, NULL);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
