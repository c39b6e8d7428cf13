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

#include "hand_switch.h"

#define STACK (256 << 10)

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
