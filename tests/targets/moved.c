/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moved ROUNDS: frames that go elsewhere while nobody looks. Fibers, by a switch written by hand, go on in other
 * threads; two of them have one stack, which is copied away and back, as greenlets do; a recursion is left by
 * __builtin_longjmp. Prints what came of it, which is always the same.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hand_switch.h"

#define SIZE (64 << 10) /* of a stack */
#define FIBERS 16
#define THREADS 3
#define DEPTH 12
#if defined(__aarch64__)
#define ABOVE 64
#else
#define ABOVE 72
#endif

__asm__(".text\n"
	".globl enter\n.type enter,%function\nenter:\n" /* a fiber begins, with what was left */
#if defined(__x86_64__)
	"movq %rax, %rdi\n jmp begin\n"
#else
	"b begin\n"
#endif
	".size enter,.-enter\n");
void enter(void);

struct fiber {
	char *stack, *copy;
	void *sp, *home; /* home: what it leaves for */
	int left;
	unsigned random;
	long sum;
};

static volatile unsigned sink;
static __thread struct fiber *current;

__attribute__((noinline)) static void work(int count)
{
	for (int i = 0; i < count; i++)
		sink += (unsigned)i;
}

__attribute__((noinline)) static void leave(struct fiber *f)
{
	f->home = hand_switch(f->home);
}

__attribute__((noinline)) static long descend(struct fiber *f, int depth)
{
	work(5000);
	long below = depth ? descend(f, depth - 1) : 0;
	if (!depth || (f->random = f->random * 1103515245 + 12345) & 0x10000)
		leave(f);
	work(5000);
	return below + 1;
}

/* The thread's own data is at another place when it goes on in another thread. */
__attribute__((noinline)) static struct fiber *find_current(void)
{
	return current;
}

void begin(void *left)
{
	struct fiber *f = find_current();
	f->home = left;
	while (f->left-- > 0)
		f->sum += descend(f, f->left % DEPTH);
	for (;;)
		leave(f);
}

static void make(struct fiber *f, char *stack, int rounds, unsigned random)
{
	*f = (struct fiber){.stack = stack, .left = rounds, .random = random};
	char *sp = stack + SIZE - ABOVE - SAVED;
	void *pc = (void *)enter;
	memset(sp, 0, SAVED);
	memcpy(sp + SAVED_PC, &pc, sizeof pc);
#if defined(__x86_64__)
	__asm__("stmxcsr (%0)\n fnstcw 4(%0)" ::"r"(sp) : "memory");
#endif
	f->sp = sp;
}

__attribute__((noinline)) static int resume(struct fiber *f)
{
	current = f;
	f->sp = hand_switch(f->sp);
	return f->left >= 0;
}

/* ---- between threads ---- */

static struct fiber fibers[FIBERS];
static struct fiber *waiting[FIBERS];
static unsigned first, count, unfinished = FIBERS;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *run(void *unused)
{
	pthread_mutex_lock(&lock);
	while (unfinished) {
		struct fiber *f = count ? waiting[first++ % FIBERS] : NULL;
		count -= f != NULL;
		pthread_mutex_unlock(&lock);
		int goes_on = f && resume(f);
		sched_yield();
		pthread_mutex_lock(&lock);
		if (goes_on)
			waiting[(first + count++) % FIBERS] = f;
		else if (f)
			unfinished--;
	}
	pthread_mutex_unlock(&lock);
	return unused;
}

static long move(int rounds)
{
	pthread_t threads[THREADS];
	long sum = 0;
	for (unsigned i = 0; i < FIBERS; i++) {
		make(&fibers[i], aligned_alloc(4096, SIZE), rounds, i);
		waiting[count++] = &fibers[i];
	}
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < FIBERS; i++)
		sum += fibers[i].sum;
	return sum;
}

/* ---- one stack for two ---- */

static void copy(struct fiber *f, int back)
{
	size_t size = (size_t)(f->stack + SIZE - (char *)f->sp);
	memcpy(back ? f->sp : f->copy, back ? f->copy : f->sp, size);
}

static long share(int rounds)
{
	struct fiber both[2];
	char *stack = aligned_alloc(4096, SIZE);
	int goes_on[2] = {1, 1};
	for (unsigned i = 0; i < 2; i++) {
		make(&both[i], stack, rounds, i);
		both[i].copy = malloc(SIZE);
		copy(&both[i], 0);
	}
	for (int i = 0; goes_on[0] || goes_on[1]; i ^= 1) {
		if (!goes_on[i])
			continue;
		memset(stack, 0x5a, SIZE);
		copy(&both[i], 1);
		goes_on[i] = resume(&both[i]);
		copy(&both[i], 0);
	}
	return both[0].sum + both[1].sum;
}

/* ---- jumps ---- */

static void *place[5];
static int jumps;

__attribute__((noinline)) static int leap(int depth)
{
	work(1000);
	if (!depth)
		__builtin_longjmp(place, 1);
	int below = leap(depth - 1);
	work(1);
	return below + 1;
}

__attribute__((noinline)) static void jump(int depth)
{
	if (!__builtin_setjmp(place))
		sink += (unsigned)leap(depth);
	else
		jumps++;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 50;
	printf("%ld moved\n", move(rounds));
	printf("%ld shared\n", share(rounds * 8));
	for (int i = 0; i < rounds * 200; i++)
		jump(i % DEPTH);
	printf("%d jumps\n", jumps);
	return 0;
}
