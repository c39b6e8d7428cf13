/* SPDX-License-Identifier: Apache-2.0 */
/* after SECONDS: calls functions again and again, with a frame and without, for so much CPU time each; so short that
   samples are often just behind a call. */
#include <stdlib.h>
#include <time.h>

#define SHORT "nop\n\tnop\n\tnop"

__attribute__((noinline)) void leaf(void)
{
	__asm__ volatile(SHORT ::: "memory");
}

__attribute__((noinline)) void framed(void)
{
	volatile char room[64];
	room[0] = 0;
	__asm__ volatile(SHORT ::: "memory");
}

__attribute__((noinline)) void last(void)
{
	__asm__ volatile("nop" ::: "memory");
}

__attribute__((noinline)) void calls_leaf(void)
{
	for (int i = 0; i < 10000; i++) {
		leaf();
		__asm__ volatile(SHORT ::: "memory");
		last();
	}
}

__attribute__((noinline)) void calls_framed(void)
{
	for (int i = 0; i < 10000; i++) {
		framed();
		__asm__ volatile(SHORT ::: "memory");
		last();
	}
}

static double cpu_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	for (double end = cpu_seconds() + seconds; cpu_seconds() < end;)
		calls_leaf();
	for (double end = cpu_seconds() + seconds; cpu_seconds() < end;)
		calls_framed();
	return 0;
}
