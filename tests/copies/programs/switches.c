/* SPDX-License-Identifier: Apache-2.0 */
/* Switches with tables of all sizes, in loops, in each other, of narrow indexes. */
#include <stdio.h>

static unsigned state = 12345;

static unsigned next(unsigned most)
{
	state = state * 1103515245 + 12345;
	return (state >> 16) % most;
}

__attribute__((noinline)) static int small(int n, int x)
{
	switch (n) {
	case 0:
		return x + 1;
	case 1:
		return x * 3;
	case 2:
		x ^= 5;
		/* fall through */
	case 3:
		return x - 7;
	case 4:
		return x / 3;
	case 5:
		return x % 11;
	case 6:
		return x << 2;
	default:
		return x;
	}
}

#define MUCH(n)                                     \
	x = (x ^ (n)) * 31 + (x >> 3) - (n)*7;      \
	x = (x ^ (n + 1)) * 37 + (x >> 5) - (n)*11; \
	x = (x ^ (n + 2)) * 41 + (x >> 2) - (n)*13; \
	y += x % (n + 3);
#define CASE(n)                                                             \
	case n:                                                             \
		MUCH(n) MUCH(n + 1) MUCH(n + 5) MUCH(n + 9) if (y & 1) x++; \
		break;
#define CASES(n)    \
	CASE(n)     \
	CASE(n + 1) \
	CASE(n + 2) \
	CASE(n + 3) CASE(n + 4) CASE(n + 5) CASE(n + 6) CASE(n + 7) CASE(n + 8) CASE(n + 9)

__attribute__((noinline)) static unsigned large(unsigned n, unsigned x)
{
	unsigned y = 0;
	switch (n) {
		CASES(10)
		CASES(20)
		CASES(30)
		CASES(40)
		CASES(50)
		CASES(60)
	default:
		x = 1;
	}
	return x + y;
}

__attribute__((noinline)) static unsigned machine(const unsigned char *code)
{
	unsigned a = 1, b = 2, steps = 0;
	for (;; code++) {
		if (++steps > 3000)
			return a;
		switch (*code & 15) {
		case 0:
			return a ^ b;
		case 1:
			a += b;
			break;
		case 2:
			b -= a;
			break;
		case 3:
			a = a << 3 | a >> 29;
			break;
		case 4:
			switch (b & 7) {
			case 0:
				a++;
				break;
			case 1:
				b++;
				break;
			case 2:
				a ^= b;
				break;
			case 3:
				b ^= 0x55;
				continue;
			case 4:
				a = small((int)(a & 7), (int)b);
				break;
			case 5:
				a *= 3;
				/* fall through */
			case 6:
				a -= 9;
			}
			break;
		case 5:
			if (a > b)
				b++;
			break;
		case 6:
			a = large(b % 70, a);
			break;
		case 9:
			b = a;
			break;
		case 10:
			a = ~a;
			break;
		default:
			b += 7;
		}
	}
}

int main(void)
{
	unsigned char code[200];
	unsigned sum = 0;
	for (int i = 0; i < 60; i++)
		sum = sum * 31 + (unsigned)small((int)next(9), (int)next(1000));
	for (int i = 0; i < 60; i++)
		sum = sum * 31 + large(next(80), sum);
	for (int k = 0; k < 12; k++) {
		for (int i = 0; i < 199; i++)
			code[i] = (unsigned char)(next(60) ? 1 + next(15) : 0);
		code[199] = 0;
		sum = sum * 31 + machine(code);
	}
	printf("%u\n", sum);
	return 0;
}
