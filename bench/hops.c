/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that call each other by pointer, each with a frame of its own size. Built several times
 * with another HOPS each, as several shared libraries: a deep stack whose frames differ.
 */
#include "hops.h"

/* The words are used after the calls: no tail call, and no frame like another's. */
#define HOP(n)                                                                                \
	static __attribute__((noinline)) void hop_##n(const struct hops *hops, unsigned left) \
	{                                                                                     \
		volatile unsigned words[2 * (n) + 1];                                         \
		words[left % (2 * (n) + 1)] = left;                                           \
		if (!left)                                                                    \
			hops->end(hops->context);                                             \
		else if (left % 3)                                                            \
			hops->next(left)(hops, left - 1);                                     \
		else                                                                          \
			hops->next(left + 1)(hops, left - 1);                                 \
		(void)words[0];                                                               \
	}

#define HOPS_8(H, a, b, c, d, e, f, g, h) H(a) H(b) H(c) H(d) H(e) H(f) H(g) H(h)
/* clang-format off */
#define HOPS_OF(H)                             \
	HOPS_8(H, 1, 2, 3, 4, 5, 6, 7, 8)      \
	HOPS_8(H, 9, 10, 11, 12, 13, 14, 15, 16) \
	HOPS_8(H, 17, 18, 19, 20, 21, 22, 23, 24) \
	HOPS_8(H, 25, 26, 27, 28, 29, 30, 31, 32)
/* clang-format on */
HOPS_OF(HOP)

#define NAME(n) hop_##n,
hop *const HOPS[HOPS_COUNT] = {HOPS_OF(NAME)};
