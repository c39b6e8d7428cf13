/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Random gaps that follow no rhythm, without libm, for samples by bytes: if gaps are exponentially distributed
   with mean 1, an allocation of x has a sample with the chance 1 - exp(-x). */
#include <stdint.h>

/* Returns -ln(m) for 0.5 <= m <= 1: ln(m) = 2 artanh((m - 1) / (m + 1)), by its series. */
static inline double exponential_small_log(double m)
{
	double z = (1 - m) / (1 + m), square = z * z, sum = 0;
	for (int k = 25; k > 0; k -= 2)
		sum = sum * square + 1.0 / k;
	return 2 * z * sum;
}

/* Returns a gap from a random number. */
static inline double exponential_gap(uint64_t random)
{
	random = random ? random : 1;
	int halves = __builtin_clzll(random);
	uint64_t top = random << halves; /* its highest bit is set */
	double m = (double)(top >> 11) / (double)(UINT64_C(1) << 53);
	return exponential_small_log(m) + halves * 0.693147180559945309417;
}

/* Returns 1 - exp(-x), for x >= 0. */
static inline double exponential_chance(double x)
{
	if (x > 45)
		return 1;
	/* The chance of a small part of it, by the series; then twice that part, and so on. */
	double y = x / 1024;
	double chance = y * (1 - y / 2 * (1 - y / 3 * (1 - y / 4 * (1 - y / 5))));
	for (int i = 0; i < 10; i++)
		chance = chance * (2 - chance);
	return chance;
}
