/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of known costs: chains of so many multiplications, each of which needs the one before. path_costs ROUNDS [THREADS] */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MUL                                \
	x *= UINT64_C(0x9e3779b97f4a7c15); \
	__asm__ volatile("" : "+r"(x));
#define MUL10 MUL MUL MUL MUL MUL MUL MUL MUL MUL MUL
#define MUL50 MUL10 MUL10 MUL10 MUL10 MUL10

/* The second branch goes as the first one: 60, or 310. */
__attribute__((noinline)) uint64_t together(uint64_t x, unsigned kind)
{
	if (kind & 1) {
		MUL50 MUL50
	} else {
		MUL10 MUL10
	}
	MUL10 MUL10 if (kind & 1)
	{
		MUL50 MUL50 MUL50 MUL10 MUL10 MUL10 MUL10
	}
	else
	{
		MUL10 MUL10
	}
	return x;
}

/* All four: 20 + 20, 20 + 200, 100 + 20, 100 + 200. */
__attribute__((noinline)) uint64_t apart(uint64_t x, unsigned kind)
{
	if (kind & 1) {
		MUL50 MUL50
	} else {
		MUL10 MUL10
	}
	if (kind & 2) {
		MUL50 MUL50 MUL50 MUL50
	} else {
		MUL10 MUL10
	}
	return x;
}

__attribute__((noinline)) uint64_t leaf(uint64_t x)
{
	MUL50 MUL50 return x;
}

/* The sum is kept while it calls: 150, or 50; and 200 in what it calls. */
__attribute__((noinline)) uint64_t caller(uint64_t x, unsigned kind)
{
	if (kind & 1) {
		MUL50 MUL50
	} else {
		x++;
	}
	x ^= leaf(x);
	x ^= leaf(x + 1);
	if (kind & 1) {
		x += 2;
	}
	MUL50
	return x;
}

static unsigned long rounds;

static void *work(void *unused)
{
	uint64_t x = 1;
	(void)unused;
	for (unsigned long i = 0; i < rounds; i++) {
		unsigned kind = (unsigned)(i * 2654435761u >> 20) & 3;
		x += together(x, kind);
		x += apart(x, kind);
		x += caller(x, kind);
	}
	return (void *)(uintptr_t)x;
}

int main(int argc, char **argv)
{
	pthread_t threads[16];
	unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
	uint64_t sum = 0;
	void *x;
	rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	for (unsigned i = 0; i < count && i < 16; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (unsigned i = 0; i < count && i < 16; i++) {
		pthread_join(threads[i], &x);
		sum += (uintptr_t)x;
	}
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
