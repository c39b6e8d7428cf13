/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads COUNT FILE: a process to look at. All its threads but one wait, 20 calls deep; that one
 * looks at the clock every 100 microseconds and keeps in FILE (8 bytes, nanoseconds) the longest
 * time for which it could not: whoever stops the process shows there.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS 100000

static _Atomic uint64_t *longest;

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void tick(void)
{
	const struct timespec pause_time = {.tv_nsec = TICK_NS};
	for (uint64_t before = now();;) {
		nanosleep(&pause_time, NULL);
		uint64_t after = now(), gap = after - before;

		gap = gap > TICK_NS ? gap - TICK_NS : 0;
		if (gap > atomic_load(longest))
			atomic_store(longest, gap);
		before = after;
	}
}

static __attribute__((noinline)) void deep(int depth, void (*end)(void))
{
	if (depth)
		deep(depth - 1, end);
	else
		end();
	__asm__ volatile("" : : : "memory");
}

static void wait_forever(void)
{
	for (;;)
		pause();
}

static void *thread_main(void *unused)
{
	deep(20, wait_forever);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int fd = argc == 3 ? open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	if (fd < 0 || ftruncate(fd, sizeof *longest))
		return 2;
	longest = mmap(NULL, sizeof *longest, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (longest == MAP_FAILED)
		return 1;
	for (int i = atoi(argv[1]); i > 1; i--)
		if (pthread_create(&thread, NULL, thread_main, NULL))
			return 1;
	puts("ready");
	fflush(stdout);
	deep(20, tick);
	return 0;
}
