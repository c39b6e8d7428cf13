/* SPDX-License-Identifier: Apache-2.0 */
/* follow SECONDS: a loop with a branch that is taken in one round of four, by what it reads. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static unsigned numbers[4096];
static volatile unsigned long rare, often;

__attribute__((noinline)) static unsigned long walk(const unsigned *list, int count)
{
	unsigned long sum = 0;
	for (int i = 0; i < count; i++) {
		sum += list[i];
		if (list[i] & 1)
			rare += sum;
		else
			often ^= sum;
	}
	return sum;
}

int main(int argc, char **argv)
{
	double end = argc > 1 ? atof(argv[1]) : 1;
	unsigned long sum = 0;
	for (int i = 0; i < 4096; i++)
		numbers[i] = (unsigned)i * 8 + (i * 2654435761u >> 16 & 3 ? 0 : 1);
	do
		for (int i = 0; i < 100; i++)
			sum += walk(numbers, 4096);
	while ((double)clock() / CLOCKS_PER_SEC < end);
	return sum == 1;
}
