/* SPDX-License-Identifier: Apache-2.0 */
/* A thread after the other that is cancelled at whatever instruction it is at, deep in its stack:
   often enough that some are hit in the middle of a sample. */
#include "stress.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static _Atomic int started;
static volatile uint64_t sink;

static __attribute__((noinline)) void deep(int depth)
{
	if (depth)
		deep(depth - 1);
	for (;;)
		sink++;
}

static void *spin(void *unused)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	atomic_fetch_add(&started, 1);
	deep(50);
	return unused;
}

int main(int argc, char **argv)
{
	int rounds = scaled(argc, argv, 10000), cancelled = 0;
	for (int round = 0; round < rounds; round++) {
		pthread_t thread;
		void *result;
		must(!pthread_create(&thread, NULL, spin, NULL), "pthread_create");
		while (atomic_load(&started) <= round)
			usleep(20);
		for (int i = 0; i < 100 * (round % 37); i++)
			sink++;
		pthread_cancel(thread);
		pthread_join(thread, &result);
		cancelled += result == PTHREAD_CANCELED;
	}
	printf("cancelled %d of %d\n", cancelled, rounds);
	return 0;
}
