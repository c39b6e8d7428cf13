// SPDX-License-Identifier: Apache-2.0
/*
 * heap all|threads|fork|many ROUNDS: allocates in functions of known numbers, and says these, a line each:
 *
 *    function calls bytes live peak temporary
 *
 * live: bytes that are not freed at the end. peak: those that were there when there were most. temporary: calls
 * whose memory was freed before anything else was allocated or freed. Peaks are those of the mode `all`.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone))

static void *volatile sink; /* so that the compiler leaves no call out */

KEEP static void *heap_leak(size_t size)
{
	sink = malloc(size);
	return sink;
}

KEEP static void heap_temporary(size_t size)
{
	sink = malloc(size);
	free(sink);
}

KEEP static void heap_peak(unsigned count, size_t size)
{
	void **all = heap_leak(count * sizeof *all);
	for (unsigned i = 0; i < count; i++)
		sink = all[i] = calloc(1, size);
	for (unsigned i = 0; i < count; i++)
		free(all[i]);
	free(all);
}

KEEP static void heap_grow(unsigned count, size_t step)
{
	char *at = NULL;
	for (unsigned i = 1; i <= count; i++) {
		sink = at = realloc(at, i * step);
		sink = strdup("between"); /* so that what grows is not temporary */
		free(sink);
	}
	free(at);
}

KEEP static void heap_aligned(unsigned count, size_t size)
{
	void *at;
	for (unsigned i = 0; i < count; i++) {
		if (posix_memalign(&at, 256, size))
			abort();
		sink = at;
		sink = aligned_alloc(64, size);
		free(at);
		free(sink);
		sink = memalign(4096, size);
		sink = reallocarray(sink, 2, size);
		sink = realloc(sink, 0);
	}
}

KEEP static void heap_fails(void)
{
	volatile size_t most = (size_t)-1;
	sink = malloc(most / 2);
	if (sink || calloc(most, most) || realloc(NULL, most))
		abort();
}

static unsigned rounds;

static void all(void)
{
	for (unsigned i = 0; i < rounds; i++)
		heap_leak(100);
	for (unsigned i = 0; i < rounds; i++)
		heap_temporary(i % 300);
	heap_peak(rounds, 1000);
	heap_grow(rounds, 16);
	heap_aligned(rounds, 512);
	heap_fails();
	unsigned long n = rounds, grown = 16 * n * (n + 1) / 2, temporary = 0;
	for (unsigned i = 0; i < rounds; i++)
		temporary += i % 300;
	printf("heap_leak %lu %lu %lu %lu 0\n", n + 1, 100 * n + n * sizeof(void *), 100 * n,
	       100 * n + n * sizeof(void *));
	printf("heap_temporary %lu %lu 0 0 %lu\n", n, temporary, n);
	printf("heap_peak %lu %lu 0 %lu 0\n", n, 1000 * n, 1000 * n);
	printf("heap_grow %lu %lu 0 0 %lu\n", 2 * n, grown + n * sizeof "between", n);
	/* memalign's memory is given to reallocarray at once, and that one's to realloc */
	printf("heap_aligned %lu %lu 0 0 %lu\n", 4 * n, 5 * 512 * n, 2 * n);
}

/* ---- threads: what one allocates, another frees ---- */

#define THREADS 4
#define BLOCKS 64
static void *_Atomic mail[BLOCKS];

static void *thread(void *argument)
{
	unsigned seed = (unsigned)(size_t)argument;
	for (unsigned i = 0; i < rounds; i++) {
		void *mine = heap_leak(200);
		free(__atomic_exchange_n((void **)&mail[rand_r(&seed) % BLOCKS], mine,
					 __ATOMIC_ACQ_REL));
	}
	return NULL;
}

static void threads(void)
{
	pthread_t all[THREADS];
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&all[i], NULL, thread, (void *)(i + 1)))
			abort();
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(all[i], NULL);
	unsigned long left = 0;
	for (size_t i = 0; i < BLOCKS; i++)
		left += mail[i] != NULL;
	printf("heap_leak %lu %lu %lu - -\n", THREADS * (unsigned long)rounds,
	       THREADS * 200 * (unsigned long)rounds, 200 * left);
}

/* ---- fork: a child frees what its parent has allocated, and leaks its own ---- */

static void forks(void)
{
	void *mine = heap_leak(1000);
	for (int child = 0; child < 3; child++) {
		pid_t pid = fork();
		if (!pid) {
			free(mine);
			for (unsigned i = 0; i < rounds; i++)
				heap_leak(10);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	printf("heap_leak %lu %lu %lu - 0\n", 1 + 3 * (unsigned long)rounds,
	       1000 + 30 * (unsigned long)rounds, 1000 + 30 * (unsigned long)rounds);
}

/* ---- many: for samples. Sizes are far apart ---- */

KEEP static void heap_small(void)
{
	for (int i = 0; i < 1000; i++)
		heap_temporary(24);
}

KEEP static void heap_middle(void)
{
	for (int i = 0; i < 10; i++)
		heap_temporary(3000);
}

KEEP static void heap_large(void)
{
	heap_temporary(400000);
}

static void many(void)
{
	for (unsigned i = 0; i < rounds; i++) {
		heap_small();
		heap_middle();
		heap_large();
	}
	unsigned long n = rounds;
	printf("heap_small %lu %lu 0 - %lu\n", 1000 * n, 24000 * n, 1000 * n);
	printf("heap_middle %lu %lu 0 - %lu\n", 10 * n, 30000 * n, 10 * n);
	printf("heap_large %lu %lu 0 - %lu\n", n, 400000 * n, n);
}

int main(int count, char **arguments)
{
	rounds = count > 2 ? (unsigned)atoi(arguments[2]) : 100;
	if (count > 1 && !strcmp(arguments[1], "threads"))
		threads();
	else if (count > 1 && !strcmp(arguments[1], "fork"))
		forks();
	else if (count > 1 && !strcmp(arguments[1], "many"))
		many();
	else
		all();
	return 0;
}
