/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack_chain DEPTH THREADS: each thread calls outer, middle, inner, descend DEPTH times and
 * sleeps at the end of it; the first prints "ready" when all are there.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_int waiting;
static volatile int sink; /* work after each call keeps it a call */

__attribute__((noinline)) static void descend(int depth, int last)
{
	if (depth > 1) {
		descend(depth - 1, last);
	} else {
		if (last)
			while (atomic_load(&waiting) < last)
				usleep(1000);
		atomic_fetch_add(&waiting, 1);
		if (last) {
			usleep(50000); /* from the count to the sleep */
			puts("ready");
			fflush(stdout);
		}
		for (;;)
			pause();
	}
	sink = depth;
}

__attribute__((noinline)) static void inner(int depth, int last)
{
	descend(depth, last);
	sink = 1;
}

__attribute__((noinline)) static void middle(int depth, int last)
{
	char room[200];
	snprintf(room, sizeof room, "%d", depth);
	inner(depth, last);
	sink = room[0];
}

__attribute__((noinline)) static void outer(int depth, int last)
{
	middle(depth, last);
	sink = 3;
}

static void *run(void *depth)
{
	outer(*(int *)depth, 0);
	return NULL;
}

int main(int argc, char **argv)
{
	int depth = argc > 1 ? atoi(argv[1]) : 1, threads = argc > 2 ? atoi(argv[2]) : 1;
	pthread_attr_t attr;
	alarm(300);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	for (int i = 1; i < threads; i++) {
		pthread_t thread;
		if (pthread_create(&thread, &attr, run, &depth))
			return 1;
	}
	if (threads == 1)
		atomic_fetch_add(&waiting, 1);
	outer(depth, threads == 1 ? 1 : threads - 1);
	return 0;
}
