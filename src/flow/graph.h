/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The control-flow graph of one procedure, from its machine code: blocks and
 * edges, over all of its parts (the compiler may have moved the cold ones away).
 *
 * Blocks end where control goes elsewhere or comes in. A call ends no block,
 * unless it never returns or an exception may make it go on at a landing pad of
 * the procedure. A jump out of the procedure is a tail call: an exit. Where an
 * indirect jump goes is read from its table; where that cannot be done the
 * block is marked, and nothing is guessed.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct image;
struct insn;
struct isa;
struct references;

struct graph_part {
	uint64_t start, end;
};

struct graph_landing { /* as trace_landing: calls that return into (start, end] may go on at target */
	uint64_t start, end, target;
};

struct graph_input {
	struct image *image;
	const struct isa *isa;
	const struct graph_part *parts; /* the first begins with the entry; others ascending */
	size_t part_count;
	const struct graph_landing *landings; /* ascending by start; those elsewhere are ignored */
	size_t landing_count;
	/* Whether the procedure (or stub) at `address` never returns. NULL: all do. */
	bool (*never_returns)(const void *context, uint64_t address);
	/* The same for a call through the fixed memory slot at `slot`. NULL: all return. */
	bool (*never_returns_slot)(const void *context, uint64_t slot);
	/* Whether who is called there may return several times, as setjmp. Such a call begins a block. NULL: nobody does. */
	bool (*returns_again)(const void *context, const struct insn *call);
	const void *context;
	/* Of the module: without it, tables that no compare bounds are not read. */
	struct references *references;
	uint32_t max_blocks; /* 0: a million */
};

enum graph_end {                   /* how a block ends */
		 GRAPH_FALLS,      /* into the next */
		 GRAPH_JUMPS,      /* always */
		 GRAPH_BRANCHES,   /* or falls through */
		 GRAPH_SWITCHES,   /* an indirect jump whose table was read */
		 GRAPH_UNRESOLVED, /* an indirect jump; where to is not known */
		 GRAPH_TAIL_CALLS, /* a jump to another procedure, also through a register or slot */
		 GRAPH_RETURNS,
		 GRAPH_STOPS, /* a trap, or a call that never returns (but may throw: EDGE_LANDING) */
		 GRAPH_CALLS, /* a call that may go on at a landing pad */
		 GRAPH_BAD, /* bytes that are no instruction, or the end of the procedure's bytes */
};

struct graph_block {
	uint64_t start, end;
	uint64_t last;         /* address of its last instruction */
	uint32_t first, count; /* of the edges that leave it */
	uint8_t ends;          /* enum graph_end */
	bool landing;          /* an exception enters here */
	bool again;            /* it begins with a call that may return several times */
	bool reached;          /* from the entry, over edges of any kind */
};

enum graph_edge_kind { EDGE_FALL, EDGE_JUMP, EDGE_SWITCH, EDGE_LANDING };

struct graph_edge {
	uint32_t from, to;
	uint8_t kind; /* enum graph_edge_kind */
};

struct graph_table { /* of a switch */
	uint64_t jump, table;
	uint64_t base; /* as in struct jump_table, like those below */
	uint32_t entries;
	uint8_t entry_size, shift;
	bool is_signed;
	bool exact; /* a compare bounds the index; else its length was told from what is around it */
};

struct graph {
	struct graph_block *blocks; /* ascending by start; blocks[entry] is the procedure's first */
	size_t block_count;
	struct graph_edge *edges; /* ascending by from; one for each pair */
	size_t edge_count;
	uint32_t entry;
	struct graph_table *tables; /* of GRAPH_SWITCHES, in no order */
	size_t table_count;
	uint32_t unresolved; /* switches whose table was not found */
	bool truncated;      /* max_blocks was met: the rest is not there */
};

struct err *graph_build(const struct graph_input *input, struct graph *out);
void graph_free(struct graph *graph);
/* The block with this address; GRAPH_NONE where there is none. */
#define GRAPH_NONE UINT32_MAX
uint32_t graph_find(const struct graph *graph, uint64_t address);
/* Can control leave it for its caller: by a return, a tail call, or a jump that is not understood? */
bool graph_returns(const struct graph *graph);
