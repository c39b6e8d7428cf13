/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals everywhere, for the stepping test: a timer whose handler runs on an alternate stack,
 * signals raised on purpose, jumps out of handlers and out of recursions, variable frames, tail
 * calls, calls of the vDSO. Ends after argv[1] rounds; the timer fires each argv[2] microseconds
 * (1000).
 */
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static volatile sig_atomic_t ticks, raised;
static sigjmp_buf out_of_handler;
static jmp_buf out_of_recursion;
static volatile unsigned sink;

__attribute__((noinline)) static unsigned work(unsigned n)
{
	char text[64];
	snprintf(text, sizeof text, "%u %g", n, n / 3.0);
	return (unsigned)strlen(text) + n % 7;
}

static void on_timer(int signal)
{
	(void)signal;
	if (++ticks % 4 == 0)
		sink += work((unsigned)ticks);
}

static void on_raise(int signal)
{
	(void)signal;
	sink += work((unsigned)++raised);
	if (raised % 3 == 0)
		siglongjmp(out_of_handler, 1);
}

__attribute__((noinline)) static unsigned recurse(unsigned depth, unsigned limit)
{
	volatile char *room = alloca(depth * 16 + 16);
	room[depth] = (char)depth;
	if (depth == limit) {
		if (limit % 2)
			longjmp(out_of_recursion, 1);
		raise(SIGUSR1);
		return work(depth);
	}
	return recurse(depth + 1, limit) + (unsigned)room[depth];
}

__attribute__((noinline)) static unsigned last(unsigned n)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return n + (unsigned)now.tv_nsec % 2;
}

__attribute__((noinline)) static unsigned through(unsigned n, unsigned (*next)(unsigned))
{
	sink += n;
	return next(n * 3); /* a tail call through a register */
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void one_round(unsigned n)
{
	int numbers[20];
	for (unsigned i = 0; i < 20; i++)
		numbers[i] = (int)(i * 7919u % 31u + n % 5);
	qsort(numbers, 20, sizeof *numbers, compare);
	sink += through(n, last);
	if (!setjmp(out_of_recursion)) {
		if (!sigsetjmp(out_of_handler, 1))
			sink += recurse(0, n % 12);
	}
}

static void start_timer(long microseconds)
{
	static char stack[1 << 16];
	const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
	const struct itimerval each = {{0, microseconds}, {0, microseconds}};
	struct sigaction timer = {.sa_handler = on_timer, .sa_flags = SA_ONSTACK | SA_RESTART};
	struct sigaction raising = {.sa_handler = on_raise};
	sigaltstack(&alternate, NULL);
	sigaction(SIGALRM, &timer, NULL);
	sigaction(SIGUSR1, &raising, NULL);
	setitimer(ITIMER_REAL, &each, NULL);
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 100;
	start_timer(argc > 2 ? atol(argv[2]) : 1000);
	for (long i = 0; i < rounds; i++)
		one_round((unsigned)i);
	printf("%d raised\n", (int)raised);
	return 0;
}
