/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deep stay|move|sites|signal|fork|thread DEPTH SIZE SECONDS: works below DEPTH calls of deep_level, with frames
 * of at least SIZE bytes (64 or 4096).
 *
 * stay: all the time. move: it returns, and calls again to other depths, between DEPTH / 2 and DEPTH. sites: it returns to the first
 * frame, and calls from one of two places there; inner frames are the same, word by word. signal: it works in a
 * handler, on a stack of its own. fork: a child of its works there, too. thread: a thread with a large stack does.
 * Prints how often it worked below `left` and below `right` (sites).
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PIECE 100000
#define THREAD_STACK ((size_t)256 << 20)

static volatile unsigned long sink;
static const char *mode;
static long most, large;
static double end;

/* Of its own: a machine that is busy with others makes it longer, not less. */
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

__attribute__((noinline)) void deep_work(void)
{
	for (int i = 0; i < PIECE; i++)
		sink += (unsigned long)i;
}

static void on_signal(int signal)
{
	(void)signal;
	while (now() < end)
		deep_work();
}

static void at_the_bottom(void)
{
	if (!strcmp(mode, "fork") && !fork()) {
		while (now() < end)
			deep_work();
		_exit(0);
	}
	if (!strcmp(mode, "signal"))
		raise(SIGUSR1);
	do
		deep_work();
	while (strcmp(mode, "move") && strcmp(mode, "sites") && now() < end);
}

#define LEVEL(NAME, SIZE)                              \
	__attribute__((noinline)) void NAME(long left) \
	{                                              \
		volatile char own[SIZE];               \
		own[0] = (char)left;                   \
		if (left > 1)                          \
			NAME(left - 1);                \
		else                                   \
			at_the_bottom();               \
		sink += (unsigned long)own[0];         \
	}
LEVEL(deep_level, 40)
LEVEL(deep_large, 4000)

static void down(long depth)
{
	if (large)
		deep_large(depth);
	else
		deep_level(depth);
}

/* The same frame, and the same code after it: only where they return to in main tells them apart. */
__attribute__((noinline)) void deep_left(long depth)
{
	down(depth);
	sink++;
}

__attribute__((noinline)) void deep_right(long depth)
{
	down(depth);
	sink += 2;
}

static void *run(void *unused)
{
	unsigned long worked[2] = {0};
	(void)unused;
	for (unsigned i = 0; now() < end; i++) {
		long depth = strcmp(mode, "move") ? most : most / 2 + rand() % (most / 2) + 1;
		/* one side for some ms, which has three times as much */
		unsigned side = !strcmp(mode, "sites") && i / 16 % 4 == 0;
		worked[side]++;
		if (side)
			deep_right(depth);
		else
			deep_left(depth);
	}
	printf("%lu %lu\n", worked[0], worked[1]);
	return NULL;
}

int main(int argc, char **argv)
{
	static char stack[1 << 16];
	pthread_attr_t attributes;
	pthread_t thread;
	if (argc != 5)
		return 2;
	mode = argv[1];
	most = atol(argv[2]);
	large = atol(argv[3]) > 64;
	end = now() + atof(argv[4]);
	sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal, .sa_flags = SA_ONSTACK},
		  NULL);
	if (!strcmp(mode, "thread")) {
		pthread_attr_init(&attributes);
		pthread_attr_setstacksize(&attributes, THREAD_STACK);
		pthread_create(&thread, &attributes, run, NULL);
		pthread_join(thread, NULL);
	} else {
		run(NULL);
	}
	while (wait(NULL) > 0)
		;
	return 0;
}
