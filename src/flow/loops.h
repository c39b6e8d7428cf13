/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Dominators of a graph, and its loops as a nest (Havlak 1997): reducible ones
 * and those with several entries. Time is close to linear in the graph's size,
 * recursion is not used.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct graph;

#define LOOP_NONE UINT32_MAX

struct loop {
	uint32_t header;      /* block */
	uint32_t parent;      /* the loop around it, LOOP_NONE: none */
	uint32_t depth;       /* 1: in no other */
	bool irreducible;     /* has other entries than its header */
	uint32_t block_count; /* inner loops' included */
	uint32_t back_from;   /* the block of the last jump back, by address */
	uint64_t back_at;     /* its instruction */
};

struct loops {
	struct loop *
		loops; /* parents before children; ascending by the header's address in one parent */
	size_t count;
	uint32_t *innermost; /* for each block of the graph its loop; LOOP_NONE: none */
};

struct err *loops_find(const struct graph *graph, struct loops *out);
void loops_free(struct loops *loops);

/* The immediate dominator of each block (GRAPH_NONE for the entry and what it does not reach), as
   block_count numbers that the caller frees. */
struct err *dominators_find(const struct graph *graph, uint32_t **out);
