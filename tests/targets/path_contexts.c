/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of many kinds, each function in several contexts: directly, by pointers, by libc, by jumps as the last act, by
 * themselves and by each other; some are left by longjmp, and some have frames of their own kinds. Says what it has computed.
 *
 * path_contexts threads | fork | signals: the same on threads, in processes, and in handlers that come at any time.
 */
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define APART __attribute__((noinline))

static _Thread_local jmp_buf back;
static _Thread_local unsigned sum;

APART static int leaf(int x)
{
	if (x % 3 == 0)
		return x / 3;
	return x & 4 ? x + 1 : x - 1;
}

APART static int twice(int x)
{
	int y = leaf(x);
	sum += (unsigned)y;
	return leaf(y + 1) + 1;
}

/* The last act is a jump. */
APART static int jumps_on(int x)
{
	sum += (unsigned)x;
	if (x & 1)
		return twice(x + 1);
	return leaf(x + 2);
}

APART static int by_pointer(int (*function)(int), int x)
{
	int y = function(x);
	sum ^= (unsigned)y;
	return y + 1;
}

APART static int self(int n)
{
	if (n < 2)
		return leaf(n);
	return self(n - 1) + self(n - 2) + 1;
}

APART static int odd_one(int n);
APART static int even_one(int n)
{
	int y = n ? odd_one(n - 1) : leaf(n + 7);
	return y + 2;
}

APART static int odd_one(int n)
{
	int y = n ? even_one(n - 1) : twice(n + 5);
	return y - 1;
}

static int compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;
	return leaf(x) == leaf(y) ? x - y : leaf(x) - leaf(y);
}

APART static int sorts(int seed)
{
	int all[12];
	for (int i = 0; i < 12; i++)
		all[i] = (i * 7 + seed) % 13;
	qsort(all, 12, sizeof *all, compare);
	return all[3];
}

/* Its frame is known by the frame pointer alone. */
APART static int grows(int n)
{
	volatile char *room = alloca((size_t)n * 16 + 1);
	room[0] = (char)leaf(n);
	int y = twice(room[0]);
	return y + room[0];
}

APART static void leaps(int n)
{
	if (leaf(n) > 0 && n < 3)
		longjmp(back, n + 1);
	leaps(n - 1);
	sum++;
}

APART static int lands(int n)
{
	volatile int tries = 0;
	int came = setjmp(back);
	tries++;
	if (!came)
		leaps(n);
	return twice(tries + came);
}

/* libc is left by it. */
static int leaps_out(const void *a, const void *b)
{
	if (leaf(*(const int *)a + *(const int *)b) > 3)
		longjmp(back, 1);
	return 0;
}

APART static int sorts_no_more(void)
{
	int all[] = {1, 2, 3, 4, 5};
	if (!setjmp(back))
		qsort(all, 5, sizeof *all, leaps_out);
	return jumps_on(all[2]);
}

APART static int many(int a, int b, int c, int d, int e, int f, int g, int h)
{
	return leaf(a + b) + leaf(c + d) * leaf(e) - f + g * h;
}

APART static int all_of_it(int n)
{
	static int (*const functions[])(int) = {leaf,     twice, jumps_on, self,
						even_one, sorts, grows,    lands};
	int y = 0;
	for (int i = 0; i < n; i++)
		y += by_pointer(functions[i % 8], i % 6 + 1);
	y += jumps_on(n) + jumps_on(n + 1) + odd_one(4) + sorts_no_more();
	y += many(n, 2, 3, 4, 5, 6, leaf(n), 8);
	return y;
}

static void handles(int signal)
{
	(void)signal;
	unsigned before = sum;
	twice(5);
	sum = before;
}

static volatile int ended;
static pthread_t stormed;

static void *storm(void *nothing)
{
	while (!ended)
		pthread_kill(stormed, SIGUSR1);
	return nothing;
}

static void *thread(void *rounds)
{
	int y = 0;
	for (int i = 0; i < *(int *)rounds; i++)
		y += all_of_it(16 + i % 3);
	return (void *)(long)y;
}

static int threads(int rounds)
{
	pthread_t all[8];
	int y = 0;
	for (int turn = 0; turn < 3; turn++) {
		for (int i = 0; i < 8; i++)
			if (pthread_create(&all[i], NULL, thread, &rounds))
				return 1;
		for (int i = 0; i < 8; i++) {
			void *result;
			pthread_join(all[i], &result);
			y += (int)(long)result;
		}
	}
	printf("%d\n", y);
	return 0;
}

/* A process that goes on where it is. */
APART static int forks(int depth)
{
	int status = 0, y = all_of_it(9 + depth);
	pid_t child = depth ? fork() : 0;
	if (child > 0) {
		waitpid(child, &status, 0);
		y += WEXITSTATUS(status);
	} else if (depth) {
		y += forks(depth - 1) + twice(depth);
		_exit(y & 63);
	}
	return y + leaf(depth);
}

int main(int argc, char **argv)
{
	int rounds = 20;
	if (argc > 1 && !strcmp(argv[1], "threads"))
		return threads(rounds);
	if (argc > 1 && !strcmp(argv[1], "fork")) {
		printf("%d\n", forks(4));
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "signals")) {
		pthread_t other;
		signal(SIGUSR1, handles);
		stormed = pthread_self();
		rounds = 30000;
		if (pthread_create(&other, NULL, storm, NULL))
			return 1;
		thread(&rounds);
		ended = 1;
		pthread_join(other, NULL);
		printf("%u\n", sum);
		return 0;
	}
	signal(SIGUSR1, handles);
	for (int i = 0; i < 3; i++) {
		int y = all_of_it(10 + i);
		raise(SIGUSR1);
		printf("%d %u\n", y, sum);
	}
	return 0;
}
