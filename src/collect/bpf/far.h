/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once
/*
 * Stacks of goroutines, for the collector to walk. Where the sampler walks itself, recipes lead it from the thread's
 * stack to the goroutine's (RECIPE_PARKED); a copy of one stack alone would end there.
 */
#include "collect/bpf/maps.h"

/* Where Go's runtime keeps what is needed here, in words. A version that keeps it elsewhere is seen by what the
   words say of each other, and the copy goes without. */
#define GO_STACK_LOW 0
#define GO_STACK_HIGH 1
#define GO_M 6
#define GO_SP 7
#define GO_M_SYSTEM 0   /* m.g0 */
#define GO_M_SIGNALS 10 /* m.gsignal */
#define GO_M_CURRENT 24 /* m.curg */
#define GO_STACK_MAX (1ull << 32)
#define GO_STACK_PART \
	(KERNEL_STACK - (1u << 16)) /* of a stack of which it is not known where it ends */

enum { GO_HERE, GO_THREAD, GO_SYSTEM, GO_CURRENT, GO_SIGNALS };

INLINE bool copy_go(struct kernel_far *far, uint32_t i, uint64_t address)
{
	far->go_at[i] = address;
	if (address && !(address & 7) &&
	    !bpf_probe_read_user(far->go[i], sizeof far->go[i], (void *)address))
		return true;
	far->go_at[i] = 0;
	return false;
}

/* Whether the thread runs Go; if so, its g, m and the others that it may have to do with. */
INLINE bool find_go(struct kernel_far *far, uint64_t g)
{
	const uint64_t *m = far->go[GO_THREAD];
	if (!copy_go(far, GO_HERE, g) || !copy_go(far, GO_THREAD, far->go[GO_HERE][GO_M]) ||
	    (g != m[GO_M_SYSTEM] && g != m[GO_M_CURRENT] && g != m[GO_M_SIGNALS]))
		return false;
	copy_go(far, GO_SYSTEM, m[GO_M_SYSTEM]);
	copy_go(far, GO_CURRENT, m[GO_M_CURRENT]);
	copy_go(far, GO_SIGNALS, m[GO_M_SIGNALS]);
	return true;
}

/* How much of a g's stack is beyond SP; 0: that is on another one. */
INLINE uint64_t go_beyond(const struct kernel_far *far, uint32_t i, uint64_t sp)
{
	uint64_t low = far->go[i][GO_STACK_LOW], high = far->go[i][GO_STACK_HIGH];
	return far->go_at[i] && low <= sp && sp < high && high - low < GO_STACK_MAX ? high - sp : 0;
}

/* The same for the stack that it is on, whosever that is. */
INLINE uint64_t go_stack_size(const struct kernel_far *far, uint64_t sp)
{
	uint64_t size = go_beyond(far, GO_HERE, sp);
	size = size ? size : go_beyond(far, GO_CURRENT, sp);
	size = size ? size : go_beyond(far, GO_SIGNALS, sp);
	return size ? size : go_beyond(far, GO_SYSTEM, sp);
}

/* To the next page of another stack, which goes behind what was copied before. A page that is not there
   was never touched: the stack ends beyond it. */
static long copy_far_one(uint32_t i, struct workspace **context)
{
	struct workspace *ws = *context;
	uint64_t address = ws->far.stacks[ws->other & 1].address;
	uint64_t have = ws->far.stacks[ws->other & 1].size;
	uint64_t to = ws->behind + have, from = address + have, size = 4096 - (from & 4095);
	(void)i;
	if (from >= ws->walk.cfa || to >= ws->most || to > KERNEL_STACK - 4096)
		return 1;
	if (size > ws->walk.cfa - from)
		size = ws->walk.cfa - from;
	KEEP(size);
	KEEP(to);
	if (to > KERNEL_STACK - 4096 || size > 4096)
		return 1;
	if (bpf_probe_read_user(ws->stack + to, size, (void *)from)) {
		ws->far.stacks[ws->other & 1].address = from + size;
		ws->far.stacks[ws->other & 1].size = 0;
	} else {
		ws->far.stacks[ws->other & 1].size = have + size;
	}
	return 0;
}

/* The stack of a g, unless SP is there. Where it was left properly it is known how far it goes. */
INLINE void copy_far_stack(struct workspace *ws, uint32_t i, uint64_t sp, bool parked)
{
	struct kernel_far *far = &ws->far;
	uint64_t low = far->go[i][GO_STACK_LOW], high = far->go[i][GO_STACK_HIGH];
	uint64_t from = high - low > GO_STACK_PART ? high - GO_STACK_PART : low;
	if (!far->go_at[i] || go_beyond(far, i, sp) || high - low > GO_STACK_MAX || high & 7)
		return;
	if (parked && far->go[i][GO_SP] - low < high - low)
		from = far->go[i][GO_SP];
	ws->other = i - GO_SYSTEM;
	far->stacks[ws->other & 1].address = from & ~7ull;
	ws->walk.cfa = high;
	bpf_loop(KERNEL_STACK / 4096 + 1, copy_far_one, &ws, 0);
	ws->behind += far->stacks[ws->other & 1].size;
}

/* Behind so many bytes of the stack that SP is on, and about as many as there is room for. Returns how many there are then. */
INLINE uint64_t copy_far(struct workspace *ws, uint64_t sp, uint64_t behind, uint64_t room)
{
	struct kernel_far *far = &ws->far;
	bool clean = go_beyond(far, GO_HERE, sp) != 0;
	bool system = far->go_at[GO_HERE] == far->go_at[GO_SYSTEM];
	bool current = far->go_at[GO_HERE] == far->go_at[GO_CURRENT];
	__builtin_memset(far->stacks, 0, sizeof far->stacks);
	ws->behind = behind;
	ws->most = behind + room;
	copy_far_stack(ws, GO_SYSTEM, sp, clean && current); /* in the order of far->stacks */
	copy_far_stack(ws, GO_CURRENT, sp, clean && system);
	return ws->behind;
}
