/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path_coroutines MANY: so many coroutines begin, wait below two calls, and are never resumed, or once. Their stacks are above and
 * below that of the thread. Prints a sum that depends on all of it.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#define STACKS 64
#define STACK_SIZE (64 << 10)

static ucontext_t scheduler, coroutines[STACKS];
static unsigned long sum;
static int many, current;
static volatile int fifths; /* so that there is a branch */

__attribute__((noinline)) static int wait_below(int n)
{
	int parity = n % 3 ? n : -n;
	if (n & 4)
		parity ^= 21;
	swapcontext(&coroutines[current], &scheduler);
	if (parity & 2)
		sum += 3;
	return parity + (int)(sum & 1);
}

static void coroutine(void)
{
	int n = current;
	for (;;)
		sum += (unsigned long)wait_below(n++);
}

__attribute__((noinline)) static int resume(int index, int n)
{
	int kind = n;
	if (n % 5 == 0)
		kind = fifths++;
	current = index;
	swapcontext(&scheduler, &coroutines[index]);
	return kind % 2 ? n : fifths;
}

static void *schedule(void *stacks)
{
	for (int i = 0; i < many; i++) {
		int index = i % STACKS;
		if (i % 7 < 5 || i < STACKS) { /* the one before is given up */
			getcontext(&coroutines[index]);
			coroutines[index].uc_stack.ss_sp = (char *)stacks +
							   (size_t)index * STACK_SIZE;
			coroutines[index].uc_stack.ss_size = STACK_SIZE;
			makecontext(&coroutines[index], coroutine, 0);
		}
		sum += (unsigned long)resume(index, i);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static char stacks[STACKS * STACK_SIZE];
	pthread_t thread;
	many = argc > 1 ? atoi(argv[1]) : 1000;
	char *above = malloc(STACKS * STACK_SIZE);
	schedule(stacks);
	pthread_create(&thread, NULL, schedule, above);
	pthread_join(thread, NULL);
	printf("%lu\n", sum);
	return 0;
}
