/* SPDX-License-Identifier: Apache-2.0 */
/* swap SECONDS: is by turns at the end of two deep stacks, each for a short while, so that no sample has much in common with the one before. */
#include <stdlib.h>
#include <time.h>

#define DEPTH 250
#define WHILE 30e-6 /* seconds */

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

__attribute__((noinline)) int spin(void)
{
	volatile int turns = 0;
	for (double end = now() + WHILE; now() < end;)
		turns++;
	return turns;
}

__attribute__((noinline)) int one_side(int depth)
{
	int result = depth ? one_side(depth - 1) : spin();
	__asm__ volatile("" : "+r"(result));
	return result + 1;
}

__attribute__((noinline)) int other_side(int depth)
{
	int result = depth ? other_side(depth - 1) : spin();
	__asm__ volatile("" : "+r"(result));
	return result + 2;
}

int main(int argc, char **argv)
{
	for (double end = now() + (argc > 1 ? atof(argv[1]) : 1); now() < end;) {
		one_side(DEPTH);
		other_side(DEPTH);
	}
	return 0;
}
