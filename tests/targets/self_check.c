/* SPDX-License-Identifier: Apache-2.0 */
/* self_check SECONDS: threads that allocate, compute, read, write, sleep, wait, handle signals, and make threads, and check
   that all of this works as it must: no call ends with EINTR, none moves less than asked for, no sleep is too short, no
   number is wrong. One of them blocks all signals. Says "errors N", and ends with 0 if that is none. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

static volatile bool stop;
static long errors;
static int ends[2];

static void complain(const char *what)
{
	int error = errno;
	__atomic_add_fetch(&errors, 1, __ATOMIC_RELAXED);
	dprintf(2, "%s: errno %d\n", what, error);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *allocate(void *number)
{
	unsigned seed = (unsigned)(size_t)number;
	while (!stop) {
		char *pieces[64];
		for (int i = 0; i < 64; i++) {
			size_t size = 1 + (unsigned)rand_r(&seed) % 5000;
			pieces[i] = malloc(size);
			memset(pieces[i], i, size);
		}
		for (int i = 0; i < 64; i++) {
			if (pieces[i][0] != i)
				complain("memory");
			free(pieces[i]);
		}
	}
	return NULL;
}

__attribute__((noinline)) static double compute_once(void)
{
	double x = 1;
	for (int i = 1; i < 20000; i++)
		x = x * 1.0000001 + 1.0 / i;
	return x;
}

static void *compute(void *unused)
{
	double first = compute_once();
	while (!stop)
		if (compute_once() != first)
			complain("a number");
	return unused;
}

static void *compute_deaf(void *unused)
{
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	return compute(unused);
}

static void *read_all(void *unused)
{
	unsigned char bytes[1000], next = 0;
	for (;;) {
		ssize_t size = read(ends[0], bytes, sizeof bytes);
		if (size == 0)
			return unused;
		if (size < 0)
			complain("read");
		for (ssize_t i = 0; i < size; i++)
			if (bytes[i] != next++)
				complain("bytes");
	}
}

static void *write_all(void *unused)
{
	unsigned char bytes[1000], next = 0;
	while (!stop) {
		for (size_t i = 0; i < sizeof bytes; i++)
			bytes[i] = next++;
		if (write(ends[1], bytes, sizeof bytes) != sizeof bytes)
			complain("write");
		usleep(500);
	}
	close(ends[1]);
	return unused;
}

static void *sleep_often(void *unused)
{
	while (!stop) {
		double start = now();
		if (nanosleep(&(struct timespec){0, 3000000}, NULL))
			complain("nanosleep");
		if (now() - start < 0.002999)
			complain("a short sleep");
		if (poll(NULL, 0, 2))
			complain("poll");
	}
	return unused;
}

static void *wait_often(void *unused)
{
	int set = epoll_create1(0);
	struct epoll_event event;
	while (!stop)
		if (epoll_wait(set, &event, 1, 3))
			complain("epoll_wait");
	close(set);
	return unused;
}

static void *live_briefly(void *unused)
{
	volatile long x = 0;
	for (int i = 0; i < 20000; i++)
		x = x + i;
	return unused;
}

static void *bear(void *unused)
{
	while (!stop) {
		pthread_t threads[8];
		for (int i = 0; i < 8; i++)
			if (pthread_create(&threads[i], NULL, live_briefly, NULL))
				complain("pthread_create");
		for (int i = 0; i < 8; i++)
			pthread_join(threads[i], NULL);
	}
	return unused;
}

static volatile long handled;

static void on_signal(int signal)
{
	(void)signal;
	for (int i = 0; i < 2000; i++)
		handled = handled + 1;
}

static void *signal_itself(void *unused)
{
	while (!stop) {
		long before = handled;
		pthread_kill(pthread_self(), SIGUSR1);
		if (handled < before + 2000)
			complain("a signal");
		usleep(200);
	}
	return unused;
}

int main(int argc, char **argv)
{
	void *(*const work[])(void *) = {allocate, allocate,     compute,     compute_deaf,
					 read_all, write_all,    sleep_often, wait_often,
					 bear,     signal_itself};
	enum { COUNT = sizeof work / sizeof *work };
	pthread_t threads[COUNT];
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	double end = now() + (argc > 1 ? atof(argv[1]) : 1);
	sigaction(SIGUSR1, &action, NULL);
	if (pipe(ends))
		return 2;
	for (size_t i = 0; i < COUNT; i++)
		pthread_create(&threads[i], NULL, work[i], (void *)i);
	while (now() < end)
		usleep(10000);
	stop = true;
	for (size_t i = 0; i < COUNT; i++)
		pthread_join(threads[i], NULL);
	printf("errors %ld\n", errors);
	return errors != 0;
}
