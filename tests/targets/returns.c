/* SPDX-License-Identifier: Apache-2.0 */
/* Calls whose numbers are known: each takes several samples. "returns [ROUNDS [MS]]"; MS of CPU time for each. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned sink;
static long part_ns = 6000000; /* some samples at 1000 Hz */

__attribute__((noinline)) static long cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

__attribute__((noinline)) static void turn(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		sink += i;
}

/* Returns a value of each kind, so that a lost register is seen. */
struct pair {
	double a, b;
};

__attribute__((noinline)) struct pair work(double a)
{
	long end = cpu_ns() + part_ns;
	while (cpu_ns() < end)
		turn(2000);
	return (struct pair){a, a + 1};
}

__attribute__((noinline)) long middle(long a, int count)
{
	double sum = 0;
	for (int i = 0; i < count; i++) {
		struct pair p = work(i);
		sum += p.a + p.b;
	}
	return a + (long)sum;
}

__attribute__((noinline)) long other(long a)
{
	struct pair p = work(1.5);
	return a + (long)(p.a + p.b);
}

__attribute__((noinline)) long outer(int rounds)
{
	long sum = 0;
	for (int i = 0; i < rounds; i++) {
		sum = middle(sum, 3);
		sum = other(sum);
	}
	return sum;
}

__attribute__((noinline)) long recurse(int depth)
{
	if (!depth)
		return (long)work(2).b;
	long below = recurse(depth - 1);
	sink = (unsigned)below; /* so that no loop is made of it */
	return below + 1;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 20;
	if (argc > 2)
		part_ns = atol(argv[2]) * 1000000;
	printf("%ld %ld\n", outer(rounds), recurse(50));
	return 0;
}
