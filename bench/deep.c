/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deep stay|move DEPTH WORK: a program that is DEPTH frames deep nearly all the
 * time. `stay`: it works at the bottom, in a few procedures that come and go.
 * `move`: it also climbs, in steps of random height and now and then to the
 * top, and down again by other calls, so that the next sample finds other
 * frames. WORK is the number of pieces of work, about 0.015 ms each.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE 12000   /* rounds of one piece of work */
#define TO_THE_TOP 64 /* one climb in so many goes all the way */
#define ELSEWHERE 64  /* one call in so many is another than last time */

static uint64_t state = 88172645463325252u;
static unsigned depth, climb;
static unsigned long work;
static int moves;

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

__attribute__((noinline)) static uint64_t piece(uint64_t x)
{
	for (int i = 0; i < PIECE; i++)
		x = x * 6364136223846793005u + (x >> 29);
	return x;
}

__attribute__((noinline)) static uint64_t bottom(unsigned kind)
{
	return kind ? piece(kind) + bottom(kind - 1) : piece(1);
}

/* Works; returns how many frames to leave. */
static unsigned at_the_bottom(void)
{
	for (;;) {
		unsigned kind = (unsigned)(next() & 3);
		state += bottom(kind) & 1;
		if (work <= kind + 1)
			return work = 0, depth;
		work -= kind + 1;
		if (moves && !(next() & 7))
			return next() % TO_THE_TOP ? 1 + (unsigned)(next() & 63) : depth;
	}
}

/* Procedures with frames of different size, so that no two callers look alike. */
static void down(unsigned left);

#define LEVEL(NAME, BYTES)                                        \
	__attribute__((noinline)) static void NAME(unsigned left) \
	{                                                         \
		volatile unsigned char own[BYTES];                \
		own[left % (BYTES)] = (unsigned char)left;        \
		do                                                \
			down(left - 1);                           \
		while (work && !climb);                           \
		climb -= climb > 0;                               \
		own[0] = own[left % (BYTES)];                     \
	}
LEVEL(level_a, 16)
LEVEL(level_b, 80)
LEVEL(level_c, 200)

__attribute__((noinline)) static void down(unsigned left)
{
	if (!left) {
		climb = at_the_bottom();
		return;
	}
	switch ((moves && !(next() % ELSEWHERE) ? next() : left) % 3) {
	case 0:
		level_a(left);
		break;
	case 1:
		level_b(left);
		break;
	default:
		level_c(left);
	}
	state++; /* no call in the place of a return */
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	moves = !strcmp(argv[1], "move");
	depth = (unsigned)strtoul(argv[2], NULL, 10) / 2; /* two frames each */
	work = strtoul(argv[3], NULL, 10);
	while (work)
		level_a(depth);
	printf("%llu\n", (unsigned long long)state);
	return 0;
}
