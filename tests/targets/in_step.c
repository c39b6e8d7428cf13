/* SPDX-License-Identifier: Apache-2.0 */
/* in_step ROUNDS US US: CPU time in two functions in turn, each for so many microseconds, over and over. Says
   how much each had. Exit status 3: the machine itself stood still meanwhile, as virtual ones do now and then; its
   clocks go on, but nothing can be sampled. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

enum { STILL_NS = 20000000 };
static volatile unsigned work;
static uint64_t last;
static int still;

/* Some microseconds have passed since the last call. */
static uint64_t look(void)
{
	uint64_t now = cpu_ns();
	still |= last && now - last > STILL_NS;
	last = now;
	return now;
}

__attribute__((noinline)) static uint64_t first(uint64_t until)
{
	while (look() < until)
		for (int i = 0; i < 1000; i++)
			work++;
	return look();
}

__attribute__((noinline)) static uint64_t second(uint64_t until)
{
	while (look() < until)
		for (int i = 0; i < 1000; i++)
			work += 2;
	return look();
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	int rounds = atoi(argv[1]);
	uint64_t lengths[] = {strtoull(argv[2], NULL, 10) * 1000,
			      strtoull(argv[3], NULL, 10) * 1000};
	uint64_t start = cpu_ns(), now = start, due = start, spent[2] = {0};
	for (int i = 0; i < rounds; i++) {
		uint64_t begin = now;
		now = first(due += lengths[0]);
		spent[0] += now - begin;
		begin = now;
		now = second(due += lengths[1]);
		spent[1] += now - begin;
	}
	printf("first %llu\nsecond %llu\n", (unsigned long long)(spent[0] / 1000),
	       (unsigned long long)(spent[1] / 1000));
	return still ? 3 : 0;
}
