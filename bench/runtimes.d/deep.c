/* SPDX-License-Identifier: Apache-2.0 */
/* deep SECONDS FRAMES: works below that many frames, the lower half of which come and go. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;

__attribute__((noinline)) static void spin(unsigned n)
{
	while (n--)
		sink += n;
}

__attribute__((noinline)) static unsigned down(unsigned n, time_t end, unsigned half)
{
	unsigned sum = 0;
	if (n == 0) {
		spin(100000);
		return 1;
	}
	do
		sum += down(n - 1, end, half) + 1;
	while (n == half && time(NULL) < end);
	return sum + (unsigned)sink;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 5);
	unsigned frames = argc > 2 ? (unsigned)atoi(argv[2]) : 20000;
	printf("%u\n", down(frames, end, frames / 2));
	return 0;
}
