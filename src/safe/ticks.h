/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A clock that takes only a few cycles to read. The agent measures its own cost with it. Its rate is
   constant but unknown. It is the same in all processes, so the collector can convert ticks into time: it
   reads this clock next to a real one. */
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
