/* SPDX-License-Identifier: Apache-2.0 */
/* absences ROUNDS: goes through phases that wait for different things, and one that computes. For each it prints
   what it took, in ns: by the clock, on the CPU, and ready to run without a CPU. Another thread waits all along. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static int ask[2], answer[2];
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, end = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long sum;

static uint64_t now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void nap(long us)
{
	const struct timespec t = {us / 1000000, us % 1000000 * 1000};
	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

NOINLINE void nap_often(int rounds)
{
	for (int i = 0; i < rounds * 100; i++)
		nap(150);
	sum++;
}

NOINLINE void nap_long(int rounds)
{
	for (int i = 0; i < rounds; i++)
		nap(60000);
	sum++;
}

NOINLINE void wait_pipe(int rounds)
{
	char byte = 0;
	for (int i = 0; i < rounds * 10; i++)
		if (write(ask[1], &byte, 1) != 1 || read(answer[0], &byte, 1) != 1)
			exit(2);
	sum++;
}

NOINLINE void wait_lock(int rounds)
{
	char byte = 1;
	for (int i = 0; i < rounds * 4; i++) {
		if (write(ask[1], &byte, 1) != 1 || read(answer[0], &byte, 1) != 1)
			exit(2);
		pthread_mutex_lock(&held);
		pthread_mutex_unlock(&held);
		byte = 1;
	}
	sum++;
}

NOINLINE void compute(int rounds)
{
	for (long i = 0; i < rounds * 8000000L; i++)
		sum += (unsigned long)i;
}

/* Answers after a while, or holds the lock for a while. */
static void *serve(void *unused)
{
	char byte;
	while (read(ask[0], &byte, 1) == 1) {
		if (byte)
			pthread_mutex_lock(&held);
		else
			nap(1500);
		if (write(answer[1], &byte, 1) != 1)
			exit(2);
		if (byte) {
			nap(5000);
			pthread_mutex_unlock(&held);
		}
	}
	return unused;
}

NOINLINE void *wait_for_end(void *unused)
{
	pthread_mutex_lock(&end);
	pthread_mutex_unlock(&end);
	sum++;
	return unused;
}

static uint64_t queued(void) /* as the scheduler counts it; 0 if it does not */
{
	char text[128] = "";
	unsigned long long delay = 0;
	int fd = open("/proc/thread-self/schedstat", O_RDONLY);
	if (fd >= 0 && read(fd, text, sizeof text - 1) > 0)
		sscanf(text, "%*u %llu", &delay);
	if (fd >= 0)
		close(fd);
	return delay;
}

static void run(const char *name, void (*phase)(int), int rounds)
{
	uint64_t delay = queued(), cpu = now(CLOCK_THREAD_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
	phase(rounds);
	wall = now(CLOCK_MONOTONIC) - wall;
	cpu = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
	printf("%s %llu %llu %llu\n", name, (unsigned long long)wall, (unsigned long long)cpu,
	       (unsigned long long)(queued() - delay));
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t server, waiter;
	uint64_t start;
	if (pipe(ask) || pipe(answer))
		return 2;
	pthread_mutex_lock(&end);
	start = now(CLOCK_MONOTONIC);
	pthread_create(&server, NULL, serve, NULL);
	pthread_create(&waiter, NULL, wait_for_end, NULL);
	run("nap_often", nap_often, rounds);
	run("nap_long", nap_long, rounds);
	run("wait_pipe", wait_pipe, rounds);
	run("wait_lock", wait_lock, rounds);
	run("compute", compute, rounds);
	pthread_mutex_unlock(&end);
	pthread_join(waiter, NULL);
	printf("wait_for_end %llu 0 0\n", (unsigned long long)(now(CLOCK_MONOTONIC) - start));
	close(ask[1]);
	pthread_join(server, NULL);
	return 0;
}
