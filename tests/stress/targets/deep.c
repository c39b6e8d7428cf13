/* SPDX-License-Identifier: Apache-2.0 */
/* CPU work below 2000 and below 100 000 frames. */
#include "stress.h"
#include <pthread.h>

static unsigned units;

static __attribute__((noinline)) uint64_t descend(int depth)
{
	if (depth == 0)
		return burn(units) & 0xffff;
	uint64_t below = descend(depth - 1);

	__asm__ volatile("" : "+r"(below));
	return below + 1;
}

static void *run(void *depth)
{
	return (void *)(uintptr_t)descend((int)(intptr_t)depth);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	pthread_attr_t attr;
	void *result;
	uint64_t sum = 0;
	units = (unsigned)scaled(argc, argv, 4000);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 20);
	must(!pthread_create(&thread, &attr, run, (void *)100000), "pthread_create");
	printf("2000 frames: %lu\n", (unsigned long)descend(2000));
	pthread_join(thread, &result);
	printf("100000 frames: %lu\n", (unsigned long)result);
	for (int i = 0, rounds = (int)units / 2; i < rounds; i++) {
		units = 1;
		sum += descend(i * 37 % 3000);
	}
	printf("up and down: %lu\n", (unsigned long)sum);
	return 0;
}
