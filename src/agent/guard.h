/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A lock for a few instructions, without libc. A thread that may be interrupted by a handler of the program must
   not come here again from that handler: see call_enter(). */
#include <stdatomic.h>
#include <stdint.h>

#include "safe/syscall.h"

#define GUARD_SPINS 64 /* then the CPU is left to others */

static inline void guard_lock(_Atomic uint32_t *guard)
{
	for (int spins = 0; atomic_exchange_explicit(guard, 1, memory_order_acquire); spins++)
		if (spins >= GUARD_SPINS)
			SAFE_SYSCALL(SYS_sched_yield, 0, 0, 0, 0);
}

static inline void guard_unlock(_Atomic uint32_t *guard)
{
	atomic_store_explicit(guard, 0, memory_order_release);
}
