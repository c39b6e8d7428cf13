/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A clock that costs a few cycles to read, of constant but unknown rate: the same in all
   processes, so that who reads it next to a real clock can turn it into time. */
#include <stdint.h>

static inline uint64_t ticks_now(void)
{
#if defined(__aarch64__)
	uint64_t ticks;
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
	return __builtin_ia32_rdtsc();
#endif
}
