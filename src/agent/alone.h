/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether the process has only one thread. Then memory that threads share can be written without the instructions for
 * that, each of which waits for all that the CPU has begun before.
 *
 * libc tells it. It says so no longer before it makes a thread, and does that in the thread that is alone. So what
 * begins alone also ends so.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern const char *alone_told __attribute__((visibility("hidden"))); /* NULL: it is not known */

/* Asks libc to tell. Called once. */
void alone_start(void);

static inline bool is_alone(void)
{
	return alone_told && *(const volatile char *)alone_told;
}

/* Adds to a number that other threads, if there are any, add to. Returns what it was. */
static inline uint64_t alone_add(_Atomic uint64_t *number, uint64_t more)
{
	if (!is_alone())
		return atomic_fetch_add_explicit(number, more, memory_order_relaxed);
	uint64_t before = atomic_load_explicit(number, memory_order_relaxed);
	atomic_store_explicit(number, before + more, memory_order_relaxed);
	return before;
}
