/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program that `make try` looks at: one thread solves eight queens again and
 * again, recursively, another waits for it. Optimized, without frame pointers.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define QUEENS 8

static atomic_ulong solutions;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t enough = PTHREAD_COND_INITIALIZER;

static inline int attacked(const int *column, int row, int candidate)
{
	int i;

	for (i = 0; i < row; i++) {
		int d = column[i] - candidate;

		if (d == 0 || d == row - i || d == i - row)
			return 1;
	}
	return 0;
}

static __attribute__((noinline)) void place_queen(int *column, int row)
{
	int candidate;

	if (row == QUEENS) {
		atomic_fetch_add(&solutions, 1);
		return;
	}
	for (candidate = 0; candidate < QUEENS; candidate++) {
		if (attacked(column, row, candidate))
			continue;
		column[row] = candidate;
		place_queen(column, row + 1);
	}
}

static void *solve(void *unused)
{
	int column[QUEENS] = {0};

	(void)unused;
	for (;;)
		place_queen(column, 0);
	return NULL;
}

static __attribute__((noinline)) void wait_for_solutions(void)
{
	pthread_mutex_lock(&lock);
	for (;;)
		pthread_cond_wait(&enough, &lock);
}

int main(void)
{
	pthread_t solver;

	alarm(600); /* nobody need remember to end it */
	if (pthread_create(&solver, NULL, solve, NULL))
		return 1;
	wait_for_solutions();
	return 0;
}
