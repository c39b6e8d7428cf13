/* SPDX-License-Identifier: Apache-2.0 */
/* wakers SECONDS: threads that wait for each other, named after what they do. `waiter` waits for `worker`, which sleeps
   most of the time; `reader` waits for `spinner`, which computes. At the end, it prints how long the first and the third
   waited, in ns. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static unsigned long jobs;
static int ends[2];
static uint64_t until, waited, read_for;
static volatile unsigned long sum;

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

NOINLINE void wait_for_job(void)
{
	uint64_t start = now();
	pthread_mutex_lock(&mutex);
	for (unsigned long seen = jobs; jobs == seen;)
		pthread_cond_wait(&done, &mutex);
	pthread_mutex_unlock(&mutex);
	waited += now() - start;
}

static void *wait_often(void *unused)
{
	pthread_setname_np(pthread_self(), "waiter");
	while (now() < until)
		wait_for_job();
	return unused;
}

static void *work(void *unused)
{
	const struct timespec t = {0, 20000000};
	pthread_setname_np(pthread_self(), "worker");
	while (now() < until + 200000000) {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
		pthread_mutex_lock(&mutex);
		jobs++;
		pthread_cond_signal(&done);
		pthread_mutex_unlock(&mutex);
	}
	return unused;
}

static void *read_often(void *unused)
{
	char byte;
	pthread_setname_np(pthread_self(), "reader");
	for (uint64_t start = now(); read(ends[0], &byte, 1) == 1; start = now())
		read_for += now() - start;
	return unused;
}

static void *spin(void *unused)
{
	pthread_setname_np(pthread_self(), "spinner");
	while (now() < until) {
		for (uint64_t end = now() + 20000000; now() < end;)
			sum++;
		if (write(ends[1], "", 1) != 1)
			exit(2);
	}
	return unused;
}

int main(int argc, char **argv)
{
	void *(*const all[])(void *) = {wait_often, work, read_often, spin};
	pthread_t threads[4];
	if (pipe(ends))
		return 2;
	until = now() + (uint64_t)((argc > 1 ? atof(argv[1]) : 1) * 1e9);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, all[i], NULL);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	pthread_join(threads[3], NULL);
	close(ends[1]);
	pthread_join(threads[2], NULL);
	printf("waiter %llu\nreader %llu\n", (unsigned long long)waited,
	       (unsigned long long)read_for);
	return 0;
}
