/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Sums of numbers that a file may have made up. */
#include <stdint.h>

/* The largest number where the sum is larger. */
static inline uint64_t sum_add(uint64_t a, uint64_t b)
{
	uint64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}
