/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Writes the code of an island. Only the files plan_*.c use it. */
#include <stdbool.h>
#include <string.h>

#include "patch/plan.h"

struct emit {
	struct patch_plan *plan;
	uint64_t island;                /* where the code will run */
	bool failed;                    /* there was no room, or something was out of reach */
	bool unknown;                   /* an instruction cannot be moved */
	uint64_t goes[PATCH_STEPS_MAX]; /* where jumps of the window go to */
	size_t goes_count;
};

/* Notes where a jump of the window goes to. */
static inline void emit_goes(struct emit *e, uint64_t target)
{
	if (e->goes_count == PATCH_STEPS_MAX)
		e->failed = true;
	else
		e->goes[e->goes_count++] = target;
}

/* Says what became of it. The window must be known. */
static inline enum patch_refusal emit_end(const struct emit *e)
{
	const struct patch_plan *p = e->plan;
	if (e->unknown)
		return PATCH_UNKNOWN;
	for (size_t i = 0; i < e->goes_count; i++)
		if (e->goes[i] >= p->at && e->goes[i] < p->at + p->window)
			return PATCH_JUMPED_INTO;
	return e->failed ? PATCH_OUT_OF_REACH : PATCH_NONE;
}

/* The address of what is written next. */
static inline uint64_t emit_here(const struct emit *e)
{
	return e->island + e->plan->island_size;
}

static inline void emit_bytes(struct emit *e, const void *bytes, size_t size)
{
	if (size > PATCH_ISLAND_MAX - e->plan->island_size) {
		e->failed = true;
		return;
	}
	memcpy(e->plan->island + e->plan->island_size, bytes, size);
	e->plan->island_size += size;
}

/* Notes that the instruction of the window at this offset stands here. */
static inline void emit_step(struct emit *e, size_t from)
{
	struct patch_plan *p = e->plan;
	if (p->step_count == PATCH_STEPS_MAX) {
		e->failed = true;
		return;
	}
	p->steps[p->step_count].from = (uint8_t)from;
	p->steps[p->step_count++].to = (uint16_t)p->island_size;
}

/* Whether a distance can be said with so many bits, signed. */
static inline bool emit_fits(int64_t distance, unsigned bits)
{
	int64_t limit = (int64_t)1 << (bits - 1);
	return distance >= -limit && distance < limit;
}
