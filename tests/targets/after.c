/* SPDX-License-Identifier: Apache-2.0 */
/* after ROUNDS: calls functions again and again, with a frame and without, so short that samples are often just
   behind a call. */
#include <stdlib.h>

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
	for (int i = 0; i < 1000000; i++) {
		leaf();
		__asm__ volatile(SHORT ::: "memory");
		last();
	}
}

__attribute__((noinline)) void calls_framed(void)
{
	for (int i = 0; i < 1000000; i++) {
		framed();
		__asm__ volatile(SHORT ::: "memory");
		last();
	}
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1;
	for (int i = 0; i < rounds; i++)
		calls_leaf();
	for (int i = 0; i < rounds; i++)
		calls_framed();
	return 0;
}
