/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack_signal raise|spin|null [alt]: sleeps in a signal handler, on another stack with `alt`. The
 * signal comes from raise(), at any instruction of a loop, or from a call of address 0.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile int sink;
static volatile unsigned long turns;
static void (*volatile nothing)(void);

static void handler(int number)
{
	sink = number;
	(void)!write(1, "ready\n", 6);
	for (;;)
		pause();
}

__attribute__((noinline)) static void interrupted(const char *way)
{
	if (!strcmp(way, "raise"))
		raise(SIGUSR1);
	else if (!strcmp(way, "null"))
		nothing();
	else
		for (;;)
			turns++;
	sink = 1;
}

__attribute__((noinline)) static void caller(const char *way)
{
	interrupted(way);
	sink = 2;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = argc > 2 ? SA_ONSTACK : 0};
	stack_t other = {.ss_size = 65536};
	struct itimerval soon = {.it_value = {.tv_usec = 100000}};
	if (argc < 2)
		return 1;
	other.ss_sp = malloc(other.ss_size);
	sigaltstack(&other, NULL);
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGVTALRM, &action, NULL);
	if (!strcmp(argv[1], "spin"))
		setitimer(ITIMER_VIRTUAL, &soon, NULL);
	caller(argv[1]);
	return 0;
}
