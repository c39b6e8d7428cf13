/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once
/*
 * The brake. If a walk took longer than a period, the program would get no CPU time: stacks of 20 000 frames, each
 * on a page of its own, take a millisecond or two. So some time must pass between two walks of a thread, as a
 * multiple of what the last one took. It is counted in samples, since other threads may have the CPU meanwhile.
 * Samples that come earlier are not walked. They count for the path of the last walk. take.h uses it. For time off the
 * CPU, see off.h.
 */
#include "collect/kernel/bpf/maps.h"

#define BRAKE 4u /* walks take a fifth of the CPU time, at most */
/* What a walk can cost at most, in ns. What is measured may have time in it in which the machine did something
   else. */
#define BRAKE_FRAME 500u
#define BRAKE_BESIDES 20000u

/* After a walk of so many frames that began at `start`. */
INLINE void brake_set(struct memo *memo, uint64_t frames, uint64_t start)
{
	uint64_t cost = bpf_ktime_get_ns() - start, most = BRAKE_BESIDES + frames * BRAKE_FRAME;
	memo->rest = BRAKE * (cost < most ? cost : most) / settings.walk_ns;
}

/* Whether the thread of the memo has a sample that must not be walked. */
INLINE bool brake_holds(struct memo *memo)
{
	if (!memo->rest || !memo->count)
		return false;
	memo->rest--;
	return true;
}

/* Instead of a walk: the path is that of the memo. */
INLINE void brake_repeat(struct walk *w, const struct memo *memo)
{
	w->met = 1;
	w->base = memo->base;
	w->known = memo->count;
	w->fresh = 0;
	w->end = (uint16_t)memo->end;
}
