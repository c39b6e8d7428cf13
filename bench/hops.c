/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that call each other by pointer, each with a frame of its own size. Built several times
 * with another HOPS each, as several shared libraries: a deep stack whose frames differ.
 */
#include "hops.h"

/* The words are used after the calls: no tail call, and no frame like another's. */
#define HOP(n)                                                                               \
	static __attribute__((noinline)) void hop_##n(const struct hops *hops, unsigned left) \
	{                                                                                    \
		volatile unsigned words[2 * (n) + 1];                                        \
		words[left % (2 * (n) + 1)] = left;                                          \
		if (!left)                                                                   \
			hops->end(hops->context);                                            \
		else if (left % 3)                                                           \
			hops->next(left)(hops, left - 1);                                    \
		else                                                                         \
			hops->next(left + 1)(hops, left - 1);                                \
		(void)words[0];                                                              \
	}

#define HOPS_OF(H) H(1) H(2) H(3) H(4) H(5) H(6) H(7) H(8) H(9) H(10) H(11) H(12) H(13) H(14) H(15) H(16) \
	H(17) H(18) H(19) H(20) H(21) H(22) H(23) H(24) H(25) H(26) H(27) H(28) H(29) H(30) H(31) H(32)
HOPS_OF(HOP)

#define NAME(n) hop_##n,
hop *const HOPS[HOPS_COUNT] = {HOPS_OF(NAME)};
