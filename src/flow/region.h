/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A stretch of code that one thread traces by itself: internal to flow/.
 *
 * Slots: one word per possible instruction address. States are stored once
 * per region and named by their index; 0 is "not reached".
 */
#include "flow/branches.h"
#include "flow/frame.h"
#include "flow/trace.h"
#include "isa/insn.h"

#define SLOT_STATE 0x001fffffu    /* index of the state */
#define SLOT_DOUBT 0x00200000u    /* behind a call that may not return: see `doubts` */
#define SLOT_BRANCHED 0x00400000u /* target of a conditional branch or a jump table */
#define SLOT_SURE 0x00800000u     /* reached before anything was inferred */
#define SLOT_START 0x01000000u    /* a procedure begins here: nothing flows in */
#define SLOT_AFTER \
	0x02000000u /* reached by the return of a call (perhaps one that never returns) */
#define SLOT_REDONE 0x04000000u /* a wrong state was replaced once already */
#define SLOT_SOFT \
	0x08000000u          /* the start was inferred: control that is seen to arrive refutes it */
#define SLOT_LENGTH_SHIFT 28 /* length in units of the smallest instruction */

struct region_edge { /* control that leaves the region */
	uint64_t to;
	uint8_t after_call;
	struct frame_state state;
};

struct region_todo {
	uint64_t at;
	uint32_t state;
	uint8_t after_call;
};

struct region_mark { /* a place and the state there */
	uint64_t at;
	uint32_t state;
};

struct region_jump {
	uint64_t from, to;
};

struct region {
	const struct isa *isa;
	const struct trace_input *input;
	const struct returns *returns;
	struct image *image;
	const uint8_t *bytes; /* at `start`; the section's, so readable from `base` up to `limit` */
	uint64_t start, end, base, limit;
	bool first; /* of its section */
	uint32_t *slots;

	struct frame_state *states;
	size_t state_capacity;
	uint32_t *live; /* for each state, the registers that hold a known value */
	size_t live_capacity;
	uint32_t state_count;
	uint32_t *hash;
	uint32_t hash_size;

	struct region_todo *todo;
	size_t todo_count, todo_capacity;
	struct branches branches;  /* that were followed, within the region */
	struct region_edge *edges; /* to other regions */
	size_t edge_count, edge_capacity;
	uint64_t *calls; /* called addresses in other regions */
	size_t call_count, call_capacity;
	struct region_mark *late; /* targets of jump tables that may be procedures instead */
	size_t late_count, late_capacity;
	struct region_jump *tails; /* jumps with the stack as at the entry: perhaps to procedures */
	size_t tail_count, tail_capacity;
	struct region_mark *doubts; /* after calls that look like the end of their procedure */
	size_t doubt_count, doubt_capacity;
	struct region_mark *switches; /* indirect jumps from within a frame */
	size_t switch_count, switch_capacity;
	uint64_t *incoming; /* entries handed over by other regions */
	size_t incoming_count, incoming_capacity;
	struct region_edge *arrivals; /* edges handed over by other regions */
	size_t arrival_count, arrival_capacity;
	uint64_t *
		starts; /* where procedures were found to begin; some may have been refuted since */
	size_t start_count, start_capacity;
	bool stirred; /* something arrived since the last round */
	bool filling; /* the certain part is over: what is found now replaces nothing */
	int failed;   /* out of memory */
};

/* Makes room for one more element of an array inside a region; false where memory is out. */
bool region_grow(struct region *r, void *array, size_t *capacity, size_t count, size_t element);

uint32_t region_intern(struct region *r, const struct frame_state *state);
void region_push(struct region *r, uint64_t at, uint32_t state, bool after_call);
/* Marks a procedure's start and queues it with the entry state. */
void region_start(struct region *r, uint64_t at);
/* Takes over what other regions sent here. */
void region_arrive(struct region *r);
/* Follows everything that is queued. */
void region_drain(struct region *r);
/* Takes up the targets of jump tables that might have been procedures. */
void region_take_late(struct region *r);
/* Takes up the perhaps-procedures that nothing has reached. */
void region_take_hints(struct region *r);
/* Gives the code that nothing was seen to reach the best state that can be inferred. */
void region_fill(struct region *r);
/* The same for the code before the first procedure of the region, once the region before it is
   done. */
void region_fill_head(struct region *r);

/* Does a prologue stand here? */
bool region_opens_frame(const struct region *r, uint64_t at);

/* Whether a procedure may begin at `at`, and one-byte traps fill what is before it: makers of code do so between
   procedures, and nowhere else. */
bool region_is_filled_to(const struct region *r, uint64_t at);

static inline bool region_has(const struct region *r, uint64_t at)
{
	return at >= r->start && at < r->end;
}

static inline uint32_t *region_slot(const struct region *r, uint64_t at, unsigned unit)
{
	return &r->slots[(at - r->start) / unit];
}
