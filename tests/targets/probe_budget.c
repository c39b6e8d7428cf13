/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that are called very often, and others that are called rarely, for some seconds: in threads, in a signal handler,
   in recursion that a longjmp leaves, and in child processes. It prints how often each was called, by its own counts.
   Arguments: seconds; how many threads; or "killed" and how many calls of hot() are made before the process kills itself. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))
#define ROUND 2000

static struct counts {
	_Atomic unsigned long hot, rare, jumping, tailing;
} * counts;
static volatile int over;
static __thread volatile unsigned long sink, handled;

APART void hot(unsigned long n)
{
	sink += n;
}

/* Its calls are fewer than a thousandth of those of hot(). */
APART void rare(unsigned long n)
{
	hot(n);
	sink++;
}

/* It ends by a jump. */
APART void tailing(unsigned long n)
{
	hot(n + 1);
}

APART void jumping(unsigned depth, jmp_buf *out)
{
	hot(depth);
	if (!depth)
		longjmp(*out, 1);
	jumping(depth - 1, out);
	sink++;
}

static void on_timer(int number)
{
	(void)number;
	hot(1);
	handled++;
}

APART void jump_around(void)
{
	jmp_buf out;
	if (!setjmp(out))
		jumping(4, &out);
	counts->jumping += 5;
	counts->hot += 5;
}

APART void *call_all(void *unused)
{
	for (unsigned long i = 0; !over; i++) {
		for (int k = 0; k < ROUND; k++)
			hot(i);
		rare(i);
		tailing(i);
		counts->hot += ROUND + 2;
		counts->rare++;
		counts->tailing++;
		if (i % 64 == 0)
			jump_around();
	}
	hot(0); /* now it is seen what a longjmp has left */
	counts->hot += handled + 1;
	return unused;
}

static void breed(void)
{
	pid_t child = fork();
	if (!child) {
		for (int i = 0; i < ROUND; i++)
			hot(1);
		counts->hot += ROUND;
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static void run(int seconds, int threads)
{
	pthread_t all[16];
	sigset_t timer;
	struct itimerval often = {{0, 500}, {0, 500}}, never = {0};
	signal(SIGALRM, on_timer);
	for (int i = 0; i < threads; i++)
		pthread_create(&all[i], NULL, call_all, NULL);
	sigemptyset(&timer);
	sigaddset(&timer, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &timer, NULL); /* the others get it */
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < seconds * 10; i++) {
		breed();
		usleep(100000);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	over = 1;
	for (int i = 0; i < threads; i++)
		pthread_join(all[i], NULL);
}

int main(int argc, char **argv)
{
	counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "killed")) {
		for (long i = atol(argv[2]); i; i--)
			hot(1);
		kill(getpid(), SIGKILL);
	}
	run(atoi(argv[1]), atoi(argv[2]));
	printf("hot %lu\nrare %lu\njumping %lu\ntailing %lu\n", counts->hot, counts->rare,
	       counts->jumping, counts->tailing);
	return 0;
}
