/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A graph while it is made: internal to flow/graph*.c.
 *
 * First the code is followed (graph_follow.c): every unit of the procedure has
 * a slot that says which instruction begins there and whether a block does. Then
 * indirect jumps are read (graph_switch.c), which leads to more code. At last
 * the slots are cut into blocks (graph_blocks.c).
 */
#include "flow/graph.h"
#include "isa/insn.h"

#define SLOT_LENGTH 0x0fu  /* of the instruction, in units; 0: none begins here */
#define SLOT_LEADER 0x10u  /* control comes here from elsewhere: a block begins */
#define SLOT_LEAVES 0x20u  /* the instruction ends its block: see struct leave */
#define SLOT_LANDING 0x40u /* an exception may come here */
#define SLOT_AGAIN 0x80u   /* a call that may return several times */

struct span { /* a part of the procedure that the file has bytes of */
	uint64_t start, end;
	const uint8_t *bytes;
	uint8_t *slots;
};

struct leave { /* an instruction that ends a block */
	uint64_t at, target;
	uint64_t landing;      /* 0: none */
	uint32_t first, count; /* of its targets, where it has a table */
	uint8_t ends;          /* enum graph_end */
	bool computed; /* an indirect jump to the sum of a base and an entry: no tail call */
};

struct build {
	const struct graph_input *in;
	const struct isa *isa;
	struct graph *graph;
	struct span *spans; /* ascending, disjoint */
	size_t span_count;
	uint64_t *todo;
	size_t todo_count, todo_capacity;
	struct leave *leaves; /* in the order in which they were met; at last ascending */
	size_t leave_count, leave_capacity;
	uint64_t *targets; /* of jump tables */
	size_t target_count, target_capacity;
	size_t table_capacity; /* of graph->tables */
	size_t leaders;        /* blocks, about */
	size_t cost;           /* of searches for jump tables */
	struct graph sketch;   /* of what is known so far … */
	uint32_t *
		came_from; /* … and for each of its blocks the one before, on a way from the entry */
	uint32_t *ways;    /* … and how many edges lead to it */
	bool failed;       /* out of memory */
};

/* Makes room for one more element of an array; false where memory is out. */
bool build_grow(struct build *b, void *array, size_t *capacity, size_t count, size_t element);
/* The part with this address, NULL where it is not in the procedure. */
struct span *build_span(const struct build *b, uint64_t at);
static inline uint8_t *build_slot(const struct build *b, const struct span *s, uint64_t at)
{
	return &s->slots[(at - s->start) / b->isa->insn_min];
}

/* Follows the code from `at`, and all that it leads to. */
void build_follow(struct build *b, uint64_t at);
/* Control comes to `at` from elsewhere; false: it is not in the procedure. */
bool build_leads(struct build *b, uint64_t at);
void build_drain(struct build *b);
/* Follows what nothing was seen to lead to, padding left out. */
void build_gaps(struct build *b);
/* Reads the jump tables, follows where they lead, until nothing is new. */
void build_switches(struct build *b);
/* Finds ways from the entry to all indirect jumps that are not resolved; false: there are none. */
bool build_find_paths(struct build *b);
void build_forget_paths(struct build *b);
/* The table of such a jump, by the code of the way to it. */
bool build_path_table(struct build *b, uint64_t jump, struct jump_table *out);
/* How the instruction at `at` ends its block; NULL: it does not. After build_sketch. */
const struct leave *build_leave(const struct build *b, uint64_t at);
/* Blocks and edges as they are known so far. */
void build_sketch(struct build *b, struct graph *out);
/* Cuts slots into blocks and puts edges between them. */
void build_blocks(struct build *b);
/* Tells tail calls from indirect jumps whose targets are not known. */
void build_tail_calls(struct build *b);
