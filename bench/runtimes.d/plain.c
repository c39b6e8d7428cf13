/* SPDX-License-Identifier: Apache-2.0 */
/* plain SECONDS: calls through a library's qsort, recursion, and floating point. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

__attribute__((noinline)) static double fill(double *values, int n, unsigned seed)
{
	double sum = 0;
	for (int i = 0; i < n; i++) {
		seed = seed * 1103515245u + 12345u;
		values[i] = sin(seed * 1e-9);
		sum += values[i];
	}
	return sum;
}

__attribute__((noinline)) static unsigned tree(unsigned depth)
{
	return depth ? tree(depth - 1) + tree(depth - 1) + 1 : 1;
}

int main(int argc, char **argv)
{
	static double values[10000];
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 5);
	double sum = 0;
	for (unsigned n = 1; time(NULL) < end; n++) {
		sum += fill(values, 10000, n) + tree(14);
		qsort(values, 10000, sizeof *values, compare);
	}
	printf("%g\n", sum);
	return 0;
}
