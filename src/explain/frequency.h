/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How often each block and edge of a procedure ran, told from samples of time alone.
 *
 * A sample says where time went: an instruction that ran often and one that waited long look the same. But
 * blocks that must run equally often (a cycle equivalence class: explain/classes.h) share one frequency,
 * most instructions wait for nothing, and what flows into a block flows out of it. estimate.c says how
 * these are joined.
 *
 * Edges that were seen (branch records of the CPU, or code that was followed from samples) and blocks that
 * were counted are optional: they only make the result better.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct frequency_costs;
struct graph;
struct isa;

enum frequency_kind { /* of instructions, by what they may wait for */
		      FREQUENCY_PLAIN,
		      FREQUENCY_LOAD,
		      FREQUENCY_STORE,
		      FREQUENCY_BRANCH, /* conditional */
		      FREQUENCY_JUMP,   /* always, direct */
		      FREQUENCY_CALL,   /* calls and indirect jumps and returns */
		      FREQUENCY_VECTOR, /* floating point and vectors */
		      FREQUENCY_SLOW,   /* multiplies, divides, atomics, barriers, system calls */
		      FREQUENCY_KINDS,
};

struct frequency_insn {
	uint64_t address;
	double samples; /* its own; fractions where samples were moved to where they belong */
	uint8_t kind;   /* enum frequency_kind */
};

struct frequency_observation { /* control was seen to go there so many times */
	uint64_t from, to;     /* the last instruction of a block, and the first of the next */
	double count;
	double squares; /* where each counts by a weight: the sum of their squares; 0: as if all were 1 */
};

struct frequency_anchor { /* counted, not sampled */
	uint64_t address; /* of an instruction */
	double executions;
};

struct frequency_input {
	const struct graph *graph;
	const struct frequency_insn
		*insns; /* of all its blocks, ascending; also those without samples */
	size_t insn_count;
	double cycles_per_sample; /* how long a sample stands for. 0: executions are left in units of it */
	const struct frequency_observation *observations;
	size_t observation_count;
	const struct frequency_anchor *anchors;
	size_t anchor_count;
	const struct frequency_anchor *limits; /* it ran at most so often, about */
	size_t limit_count;
	const struct isa *isa; /* of the code; NULL: any */
	double width; /* plain instructions that the CPU finishes in a cycle, at best; 0: not known */
	double entries; /* calls of the procedure, as its callers' frequencies tell; 0: not known */
	/* What instructions cost, as learned from the whole program. NULL: from this procedure, and what is
	   usual. */
	const struct frequency_costs *costs;
};

/* How sure an estimate is: of those of high confidence, nine in ten are within 15 %. */
enum frequency_confidence { FREQUENCY_LOW, FREQUENCY_MEDIUM, FREQUENCY_HIGH };

struct frequency {
	double executions;
	double low, high;   /* nine in ten are between these */
	uint32_t class;     /* blocks and edges of one class run equally often */
	uint8_t confidence; /* enum frequency_confidence */
};

struct frequency_result {
	struct frequency *blocks; /* of each block and edge of the graph */
	struct frequency *edges;
	size_t block_count, edge_count, class_count;
	struct frequency entries; /* how often the procedure was called */
	bool incomplete; /* edges of the graph are missing: each block is a class of its own */
};

/* Between blocks and edges, what comes in equals what goes out (but for entries and exits), unless edges are
   missing. */
struct err *frequency_estimate(const struct frequency_input *input, struct frequency_result *out);
void frequency_free(struct frequency_result *result);

/* Learns from the samples of many procedures of one program what its instructions cost. Their `costs` are
   ignored. The result is the caller's: frequency_forget. */
struct err *frequency_learn(const struct frequency_input *inputs, size_t count,
			    struct frequency_costs **out);
void frequency_forget(struct frequency_costs *costs); /* NULL is fine */

/* The kind of the instruction at `code`. */
enum frequency_kind frequency_kind_of(const struct isa *isa, const uint8_t *code, size_t size);
