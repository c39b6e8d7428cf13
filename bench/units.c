/* SPDX-License-Identifier: Apache-2.0 */
/*
 * units FILE DEPTH: calls 1000 functions in a random order, over memory that fits
 * no near cache, DEPTH calls deep (some more or fewer each time), until it is killed; and
 * appends to FILE, after each unit of work, seconds by the monotonic clock and
 * seconds of its CPU time. What a sampler takes out of the caches counts here.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define WORDS (1u << 18)
#define CALLS 60    /* of functions, at the end of a stack */
#define STACKS 400  /* in a unit */
#define FRAME 160   /* bytes, more or less */
#define SHALLOWER 6 /* frames that come and go */

static uint64_t memory[WORDS], seed = 1;
static volatile uint64_t sink;
static FILE *out;

static inline uint64_t mix(uint64_t x, uint64_t n)
{
	return x * (6364136223846793005u + 2 * n) + n;
}

#define ONE(n)                                                                        \
	__attribute__((noinline)) static uint64_t work_##n(uint64_t x)                \
	{                                                                             \
		uint64_t sum = 0;                                                     \
		for (int i = 0; i < 3; i++) {                                         \
			x = mix(x, n##u);                                             \
			sum += memory[(x >> 30) % WORDS] ^ memory[(x >> 41) % WORDS]; \
			x = mix(x, sum & 7);                                          \
			sum += memory[(x >> 35) % WORDS] * (n##u + 3);                \
		}                                                                     \
		memory[(x >> 33) % WORDS] = sum;                                      \
		return x + sum;                                                       \
	}
#define TEN(of, n) \
	of(n##0) of(n##1) of(n##2) of(n##3) of(n##4) of(n##5) of(n##6) of(n##7) of(n##8) of(n##9)
#define FIFTY(of, n, a, b, c, d, e) \
	TEN(of, n##a) TEN(of, n##b) TEN(of, n##c) TEN(of, n##d) TEN(of, n##e)
#define HUNDRED(of, n) FIFTY(of, n, 0, 1, 2, 3, 4) FIFTY(of, n, 5, 6, 7, 8, 9)
#define ALL(of) HUNDRED(of, 1) HUNDRED(of, 2) HUNDRED(of, 3) HUNDRED(of, 4) HUNDRED(of, 5) MORE(of)
#define MORE(of) HUNDRED(of, 6) HUNDRED(of, 7) HUNDRED(of, 8) HUNDRED(of, 9)
#define NAME(n) work_##n,

ALL(ONE)
static uint64_t (*const all[])(uint64_t) = {ALL(NAME)};

static double now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

__attribute__((noinline)) static uint64_t work(void)
{
	uint64_t sum = 0;
	for (int i = 0; i < CALLS; i++) {
		seed = mix(seed, 11);
		sum += all[(seed >> 33) % (sizeof all / sizeof *all)](seed);
	}
	return sum;
}

__attribute__((noinline)) static uint64_t go_deeper(unsigned depth)
{
	volatile char frame[FRAME];
	frame[depth % FRAME] = 1;
	uint64_t result = depth ? go_deeper(depth - 1) : work();
	sink += frame[0];
	return result;
}

/* Below the frames that stay. */
__attribute__((noinline)) static void run(unsigned depth)
{
	volatile char frame[FRAME];
	frame[depth % FRAME] = 1;
	if (depth)
		run(depth - 1);
	for (; !depth;) {
		for (int i = 0; i < STACKS; i++)
			sink += go_deeper((unsigned)(seed >> 40) % (2 * SHALLOWER));
		fprintf(out, "%.9f %.9f\n", now(CLOCK_MONOTONIC), now(CLOCK_PROCESS_CPUTIME_ID));
		fflush(out);
	}
	sink += frame[0];
}

int main(int argc, char **argv)
{
	out = argc == 3 ? fopen(argv[1], "w") : NULL;
	unsigned long depth = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	if (!out || depth < SHALLOWER || depth > 10000) {
		fprintf(stderr, "usage: units FILE DEPTH\n");
		return 2;
	}
	run((unsigned)depth - SHALLOWER);
	return 0;
}
