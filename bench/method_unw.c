/* SPDX-License-Identifier: Apache-2.0 */
/* libunwind: its general step with a cache of its own per thread, and its cached fast trace. */
#include "methods.h"

#define UNW_LOCAL_ONLY
#include <libunwind.h>

static bool prepare_step(void)
{
	return unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_PER_THREAD) == 0;
}

static __attribute__((noinline)) size_t walk_step_general(uintptr_t *frames)
{
	unw_context_t context;
	unw_cursor_t cursor;
	unw_word_t pc;
	size_t n = 0;
	unw_getcontext(&context);
	if (unw_init_local(&cursor, &context) < 0)
		return 0;
	do {
		if (unw_get_reg(&cursor, UNW_REG_IP, &pc) < 0 || !pc)
			break;
		frames[n++] = pc;
	} while (n < FRAMES_MAX && unw_step(&cursor) > 0);
	return n;
}

static __attribute__((noinline)) size_t walk_fast(uintptr_t *frames)
{
	int n = unw_backtrace((void **)frames, FRAMES_MAX);
	__asm__ volatile("" : : : "memory");
	return n > 0 ? (size_t)n : 0;
}

const struct method method_unw_step = {"unw_step", "libunwind, general step, cache per thread",
				       prepare_step, walk_step_general};
const struct method method_unw_backtrace = {"unw_backtrace", "libunwind, cached fast trace", NULL,
					    walk_fast};
