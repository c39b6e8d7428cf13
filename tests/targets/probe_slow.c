/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of work() that take as long as their argument says, in microseconds: fast ones, and slow ones among them, by several
   callers, in threads, in a signal handler, in a coroutine that ends on another thread, and in a child process. For each slow
   one, it prints when it began and how long it took, by its own clock, its thread and who called. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))
#define FAST 20000

static volatile unsigned long sink;

static unsigned long long now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (unsigned long long)t.tv_sec * 1000000000 + (unsigned long long)t.tv_nsec;
}

APART void work(unsigned us)
{
	unsigned long long end = now(CLOCK_MONOTONIC) + us * 1000ull;
	while (us && now(CLOCK_MONOTONIC) < end)
		usleep(us / 10 + 1);
	sink++;
}

/* Prints nothing by stdio: it also runs in a handler. */
APART void slowly(unsigned us, const char *caller)
{
	char line[200];
	unsigned long long time = now(CLOCK_REALTIME), start = now(CLOCK_MONOTONIC);
	work(us);
	int size = snprintf(line, sizeof line, "slow %u %llu %llu %d %s\n", us,
			    now(CLOCK_MONOTONIC) - start, time, (int)gettid(), caller);
	if (write(1, line, (size_t)size) != size)
		abort();
}

/* ---- threads ---- */

APART void *in_thread(void *number)
{
	for (long i = 0; i < FAST; i++) {
		work(0);
		if (i == FAST / 2)
			slowly(30000 + 7000 * (unsigned)(long)number, "in_thread");
	}
	return NULL;
}

APART void crowd(int count)
{
	pthread_t threads[16];
	for (long i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, in_thread, (void *)i);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

/* ---- a handler ---- */

static void on_signal(int number)
{
	(void)number;
	slowly(25000, "on_signal");
	sink++; /* it is no jump */
}

APART void interrupted(void)
{
	signal(SIGUSR1, on_signal);
	for (int i = 0; i < FAST; i++) {
		work(0);
		if (i == 77)
			raise(SIGUSR1);
	}
}

/* ---- a coroutine ---- */

static ucontext_t fiber, back;
static sem_t begun, ended;
static char stack[256 << 10];

APART void fiber_work(unsigned us)
{
	usleep(us);
	swapcontext(&fiber, &back);
	sink++;
}

static void in_fiber(void)
{
	fiber_work(50000);
}

static void *resume(void *unused)
{
	swapcontext(&back, &fiber);
	return unused;
}

APART void migrate(void)
{
	pthread_t thread;
	getcontext(&fiber);
	fiber.uc_stack.ss_sp = stack;
	fiber.uc_stack.ss_size = sizeof stack;
	fiber.uc_link = &back;
	makecontext(&fiber, in_fiber, 0);
	swapcontext(&back, &fiber);
	pthread_create(&thread, NULL, resume, NULL);
	pthread_join(thread, NULL);
}

/* ---- a child ---- */

APART void in_child(void)
{
	pid_t child = fork();
	if (!child) {
		slowly(45000, "in_child");
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "threads"))
			crowd(6);
		else if (!strcmp(argv[i], "handler"))
			interrupted();
		else if (!strcmp(argv[i], "fiber"))
			migrate();
		else if (!strcmp(argv[i], "child"))
			in_child();
		else if (!strcmp(argv[i], "wait"))
			getchar();
		else if (!strcmp(argv[i], "killed"))
			kill(getpid(), SIGKILL);
	}
	return 0;
}
