/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fibers SECONDS swap|hand: two stacks take turns all the time, by swapcontext, or by a switch written by hand, as
 * boost.context has it. Who may call whom is known: first calls first_work, that first_leaf; second and what
 * it calls are on the other stack.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#define STACK (256 << 10)

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
	".size hand_switch,.-hand_switch\n");

static ucontext_t one, other;
static void *suspended;
static int by_hand;
static volatile unsigned long turns;

__attribute__((noinline)) void first_leaf(void)
{
	turns++;
	if (by_hand)
		suspended = hand_switch(suspended);
	else
		swapcontext(&one, &other);
	turns++;
}

__attribute__((noinline)) void first_work(int n)
{
	volatile char room[64 + 16 * 3];
	room[n] = 1;
	first_leaf();
	room[0] = room[n];
}

__attribute__((noinline)) int first(double seconds)
{
	struct timespec begin, now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	do {
		for (int i = 0; i < 500; i++)
			first_work(i % 8);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while ((double)(now.tv_sec - begin.tv_sec) +
			 1e-9 * (double)(now.tv_nsec - begin.tv_nsec) <
		 seconds);
	return (int)turns;
}

__attribute__((noinline)) void second_leaf(void)
{
	turns++;
	if (by_hand)
		suspended = hand_switch(suspended);
	else
		swapcontext(&other, &one);
	turns++;
}

__attribute__((noinline)) void second_work(int n)
{
	volatile char room[200];
	room[n] = 1;
	second_leaf();
	room[0] = room[n];
}

__attribute__((noinline)) void second(void)
{
	for (int i = 0;; i++)
		second_work(i % 8);
}

/* hand_switch comes here for the first time, with what was left as the result. */
__attribute__((noinline, used)) void second_by_hand(void *left)
{
	suspended = left;
	second();
}

void begin(void);
__asm__(".text\n.p2align 4\n.globl begin\n.type begin,%function\nbegin:\n.cfi_startproc\n"
#if defined(__aarch64__)
	".cfi_undefined x30\n bl second_by_hand\n brk #0\n"
#elif defined(__x86_64__)
	".cfi_undefined rip\n movq %rax, %rdi\n call second_by_hand\n ud2\n"
#endif
	".cfi_endproc\n.size begin,.-begin\n");

/* What hand_switch takes from the stack that it comes to. */
static void *prepare(char *stack)
{
#if defined(__aarch64__)
	char *top = stack + STACK - 0xb0;
	void *where[2] = {top + 152, top + 160};
#else
	char *top = stack + STACK - 0x40;
	void *where[2] = {top + 0x38, top + 0x38};
	unsigned control[2] = {0x1f80, 0x37f};
	memcpy(top, control, sizeof control);
#endif
	void (*to)(void) = begin;
	for (int i = 0; i < 2; i++)
		memcpy(where[i], &to, sizeof to);
	return top;
}

int main(int argc, char **argv)
{
	char *stack = calloc(1, STACK);
	by_hand = argc > 2 && !strcmp(argv[2], "hand");
	suspended = prepare(stack);
	getcontext(&other);
	other.uc_stack.ss_sp = stack;
	other.uc_stack.ss_size = STACK;
	if (!by_hand)
		makecontext(&other, second, 0);
	printf("%d\n", first(argc > 1 ? atof(argv[1]) : 1) > 0);
	return 0;
}
