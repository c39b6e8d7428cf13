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

#define SIZE (64 << 10) /* of a stack */
#define FIBERS 16
#define THREADS 3
#define DEPTH 12
#if defined(__aarch64__)
#define SAVED 0xb0 /* bytes that hand_switch saves, and where the PC is in them */
#define SAVED_PC 160
#define ABOVE 64
#else
#define SAVED 0x40
#define SAVED_PC 0x38
#define ABOVE 72
#endif

void *hand_switch(void *to); /* returns what was left */

__asm__(".text\n.p2align 4\n.globl hand_switch\n.type hand_switch,%function\nhand_switch:\n"
#if defined(__aarch64__)
	"sub sp, sp, #0xb0\n"
	"stp d8, d9, [sp]\n stp d10, d11, [sp, #16]\n stp d12, d13, [sp, #32]\n stp d14, d15, [sp, #48]\n"
	"stp x19, x20, [sp, #64]\n stp x21, x22, [sp, #80]\n stp x23, x24, [sp, #96]\n"
	"stp x25, x26, [sp, #112]\n stp x27, x28, [sp, #128]\n stp x29, x30, [sp, #144]\n"
	"str x30, [sp, #160]\n"
	"mov x4, sp\n mov sp, x0\n"
	"ldp d8, d9, [sp]\n ldp d10, d11, [sp, #16]\n ldp d12, d13, [sp, #32]\n ldp d14, d15, [sp, #48]\n"
	"ldp x19, x20, [sp, #64]\n ldp x21, x22, [sp, #80]\n ldp x23, x24, [sp, #96]\n"
	"ldp x25, x26, [sp, #112]\n ldp x27, x28, [sp, #128]\n ldp x29, x30, [sp, #144]\n"
	"mov x0, x4\n ldr x4, [sp, #160]\n add sp, sp, #0xb0\n ret x4\n"
#elif defined(__x86_64__)
	"leaq -0x38(%rsp), %rsp\n"
	"stmxcsr (%rsp)\n fnstcw 0x4(%rsp)\n"
	"movq %r12, 0x8(%rsp)\n movq %r13, 0x10(%rsp)\n movq %r14, 0x18(%rsp)\n"
	"movq %r15, 0x20(%rsp)\n movq %rbx, 0x28(%rsp)\n movq %rbp, 0x30(%rsp)\n"
	"movq %rsp, %rax\n movq %rdi, %rsp\n movq 0x38(%rsp), %r8\n"
	"ldmxcsr (%rsp)\n fldcw 0x4(%rsp)\n"
	"movq 0x8(%rsp), %r12\n movq 0x10(%rsp), %r13\n movq 0x18(%rsp), %r14\n"
	"movq 0x20(%rsp), %r15\n movq 0x28(%rsp), %rbx\n movq 0x30(%rsp), %rbp\n"
	"leaq 0x40(%rsp), %rsp\n jmp *%r8\n"
#endif
	".size hand_switch,.-hand_switch\n"
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
