/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that work with 8 KiB left of their stack: room for a signal, but not for a careless one. */
#include "stress.h"
#include <pthread.h>
#include <sys/mman.h>

enum { STACK = 256 * 1024, LEFT = 8192 };
static unsigned units;

static __attribute__((noinline)) uintptr_t sink(char *end)
{
	volatile char frame[256];
	uintptr_t result;
	frame[0] = 1;
	if ((char *)frame - end < LEFT + 512)
		result = burn(units) & 0xffff;
	else
		result = sink(end) + 1;
	return result + (uintptr_t)frame[0] - 1;
}

static void *run(void *stack)
{
	uintptr_t depth = sink(stack);
	return (void *)(depth > 100 ? (uintptr_t)1 : 0);
}

int main(int argc, char **argv)
{
	int sum = 0;
	units = (unsigned)scaled(argc, argv, 100);
	for (int i = 0; i < 40; i++) {
		/* a page that cannot be written stands before each */
		char *area = mmap(NULL, STACK + 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
				  0);
		pthread_attr_t attr;
		pthread_t thread;
		void *result;

		must(area != MAP_FAILED && !mprotect(area + 65536, STACK, PROT_READ | PROT_WRITE),
		     "mmap");
		pthread_attr_init(&attr);
		must(!pthread_attr_setstack(&attr, area + 65536, STACK), "stack");
		must(!pthread_create(&thread, &attr, run, area + 65536), "pthread_create");
		pthread_join(thread, &result);
		sum += result != NULL;
		munmap(area, STACK + 65536);
	}
	printf("%d threads\n", sum);
	return 0;
}
