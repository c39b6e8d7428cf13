/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often each of its lines runs is known, ROUNDS times over: `mix` is inlined into a loop of 1000 rounds, of which
 * 3 in 4 go one way; `seldom` is called in each 100th, and two functions through a pointer.
 */
#include <stdio.h>
#include <stdlib.h>

volatile int fifty = 50; /* loops that the compiler does not unroll */

static inline __attribute__((always_inline)) unsigned mix(unsigned x)
{
	x ^= x << 13;
	x ^= x >> 17;
	return x ^ x << 5;
}

__attribute__((noinline)) static unsigned seldom(unsigned x)
{
	for (int i = 0, most = fifty; i < most; i++)
		x = x * 31 + mix(x);
	return x;
}

__attribute__((noinline)) unsigned twice(unsigned x)
{
	for (int i = 0, most = fifty; i < most; i++)
		x += mix(x) / 3;
	return x;
}

__attribute__((noinline)) unsigned thrice(unsigned x)
{
	for (int i = 0, most = fifty; i < most; i++)
		x -= mix(x) / 5;
	return x;
}

unsigned (*volatile chosen[])(unsigned) = {twice, thrice};
volatile unsigned seen;

__attribute__((noinline)) unsigned work(unsigned x)
{
	for (int i = 0; i < 1000; i++) {
		x = mix(x);
		if (x & 3)
			seen = x;
		else
			x += seen / 7;
		if (i % 100 == 0)
			x += seldom(x) + chosen[i / 100 & 1](x);
	}
	return x;
}

int main(int argc, char **argv)
{
	unsigned x = 1, rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
	for (unsigned i = 0; i < rounds; i++)
		x = work(x);
	printf("%u\n", x);
	return 0;
}
