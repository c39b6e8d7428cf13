/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Follows the machine code of a whole module from everything that is known to
 * be called and finds, for every instruction, what is known about its frame
 * (flow/frame.h), and where procedures begin.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct frame_state;
struct image;
struct isa;
struct trace;

/* While a call that returns into (start, end] is under way, an exception may make the
   procedure go on at `target` instead. */
struct trace_landing {
	uint64_t start, end, target;
};

/* A word of memory that holds the address of a procedure when the program runs. */
struct trace_slot {
	uint64_t address;
	uint64_t procedure; /* TRACE_NO_RETURN: an imported one that never returns */
};
#define TRACE_NO_RETURN UINT64_MAX

struct trace_input {
	const uint64_t *entries; /* procedures for certain: global symbols, the entry point */
	size_t entry_count;
	const uint64_t *hints; /* procedures perhaps: local symbols, code pointers in data */
	size_t hint_count;
	const uint64_t *noreturn; /* sorted: procedures and PLT stubs that never return */
	size_t noreturn_count;
	const struct trace_slot *slots; /* sorted by address */
	size_t slot_count;
	const struct trace_landing *landings; /* sorted by start */
	size_t landing_count;
};

/* `image`, `isa` and the arrays of `input` must outlive the trace. */
struct err *trace_run(struct image *image, const struct isa *isa, const struct trace_input *input,
		      struct trace **out);
void trace_free(struct trace *trace);

struct trace_point {
	uint64_t address;
	unsigned length;
	const struct frame_state *state; /* NULL: never reached */
	uint32_t state_id;               /* equal ids in one region mean equal states */
	bool start;                      /* a procedure begins here */
	bool fresh; /* the first reached place of a region: state_id starts anew */
};

/* Calls `each` for all instructions that were reached, in ascending order of address; with
   `gaps` also, once per gap, with state NULL and the gap's length. */
void trace_each(const struct trace *trace, bool gaps,
		void (*each)(void *context, const struct trace_point *place), void *context);

/* The state at an instruction, NULL where it was not reached or no instruction begins there. */
const struct frame_state *trace_at(const struct trace *trace, uint64_t address);

/* Addresses where procedures begin, ascending; owned by the trace. */
size_t trace_starts(const struct trace *trace, const uint64_t **out);

/* The executable bytes at `address` and how many follow, NULL where there are none. */
const uint8_t *trace_bytes(const struct trace *trace, uint64_t address, size_t *size);
