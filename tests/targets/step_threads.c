/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that work, wait for each other and end, for the stepping and comparing tests. Runs for
   argv[1] rounds. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
static unsigned turn, total;

__attribute__((noinline)) static unsigned work(unsigned depth)
{
	char text[100];
	if (!depth) {
		snprintf(text, sizeof text, "%f", (double)turn);
		return (unsigned)strlen(text);
	}
	return work(depth - 1) + 1;
}

struct worker {
	unsigned number;
	long rounds;
};

static void *work_in_turn(void *context)
{
	const struct worker *me = context;
	for (long i = 0; i < me->rounds; i++) {
		unsigned done = 0;
		for (unsigned k = 0; k < 50; k++)
			done += work((me->number + k) % 20);
		pthread_mutex_lock(&lock);
		while (turn % THREADS != me->number)
			pthread_cond_wait(&turn_changed, &lock);
		total += done;
		turn++;
		pthread_cond_broadcast(&turn_changed);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	struct worker workers[THREADS];
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){i, argc > 1 ? atol(argv[1]) : 20};
		if (i)
			pthread_create(&threads[i], NULL, work_in_turn, &workers[i]);
	}
	work_in_turn(&workers[0]);
	for (unsigned i = 1; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%u\n", total);
	return 0;
}
