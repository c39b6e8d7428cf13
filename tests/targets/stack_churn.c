/* SPDX-License-Identifier: Apache-2.0 */
/* stack_churn MILLISECONDS: starts threads that end at once, four at a time, then ends itself. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static void *brief(void *unused)
{
	nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	return unused;
}

int main(int argc, char **argv)
{
	struct timespec start, now;
	long limit = argc > 1 ? atol(argv[1]) : 1000;
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		pthread_t threads[4];
		for (int i = 0; i < 4; i++)
			if (pthread_create(&threads[i], NULL, brief, NULL))
				return 1;
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 <
		 limit);
	return 0;
}
