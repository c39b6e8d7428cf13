/* SPDX-License-Identifier: Apache-2.0 */
/* A hundred contexts that take turns, on stacks that are made and thrown away by hand. */
#include "stress.h"
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { COUNT = 100, STACK = 65536 };

struct routine {
	ucontext_t context;
	char *stack;
	uint64_t sum;
	int rounds;
};

struct group {
	struct routine routines[COUNT];
	ucontext_t home;
	int current, chained;
};

static _Thread_local struct group *group;

static __attribute__((noinline)) void turn(struct routine *r, int depth)
{
	if (depth) {
		turn(r, depth - 1);
		r->sum++;
		return;
	}
	r->sum += burn(1) & 0xff;
	swapcontext(&r->context, &group->home);
}

static void body(void)
{
	struct routine *r = &group->routines[group->current];
	for (int i = 0; i < r->rounds; i++)
		turn(r, group->current % 20);
}

static void link_body(int depth)
{
	burn(1);
	group->chained += depth;
}

static char *stack_new(bool mapped)
{
	if (!mapped)
		return malloc(STACK);
	return mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void stack_free(char *stack, bool mapped)
{
	if (mapped)
		munmap(stack, STACK);
	else
		free(stack);
}

static uint64_t turns(int rounds)
{
	uint64_t sum = 0;
	for (int i = 0; i < COUNT; i++) {
		struct routine *r = &group->routines[i];
		*r = (struct routine){.stack = stack_new(i % 2), .rounds = rounds};
		getcontext(&r->context);
		r->context.uc_stack.ss_sp = r->stack;
		r->context.uc_stack.ss_size = STACK;
		r->context.uc_link = &group->home;
		makecontext(&r->context, body, 0);
	}
	for (int round = 0; round <= rounds; round++)
		for (group->current = 0; group->current < COUNT; group->current++)
			swapcontext(&group->home, &group->routines[group->current].context);
	for (int i = 0; i < COUNT; i++) {
		sum += group->routines[i].sum;
		stack_free(group->routines[i].stack, i % 2);
	}
	return sum;
}

/* Contexts that end into one another. */
static int chain(int rounds)
{
	group->chained = 0;
	for (int round = 0; round < rounds; round++) {
		ucontext_t *next = &group->home;
		for (int i = 0; i < 10; i++) {
			struct routine *r = &group->routines[i];
			r->stack = stack_new(i % 2);
			getcontext(&r->context);
			r->context.uc_stack.ss_sp = r->stack;
			r->context.uc_stack.ss_size = STACK;
			r->context.uc_link = next;
			makecontext(&r->context, (void (*)(void))link_body, 1, i);
			next = &r->context;
		}
		swapcontext(&group->home, next);
		for (int i = 0; i < 10; i++)
			stack_free(group->routines[i].stack, i % 2);
	}
	return group->chained;
}

static void *run(void *rounds)
{
	uint64_t sum;
	group = calloc(1, sizeof *group);
	must(group != NULL, "calloc");
	sum = turns((int)(intptr_t)rounds) + (uint64_t)chain((int)(intptr_t)rounds * 4);
	free(group);
	return (void *)sum;
}

int main(int argc, char **argv)
{
	void *rounds = (void *)(intptr_t)scaled(argc, argv, 40), *result;
	pthread_t thread;
	must(!pthread_create(&thread, NULL, run, rounds), "pthread_create");
	printf("main: %lu\n", (unsigned long)run(rounds));
	pthread_join(thread, &result);
	printf("thread: %lu\n", (unsigned long)result);
	return 0;
}
