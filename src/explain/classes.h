/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which blocks and edges of a control-flow graph run equally often, whatever the program does: those that
 * lie on the same cycles, if every exit leads back to the entry (Johnson, Pearson and Pingali, 1994). Time
 * is linear in the size of the graph, and recursion is not used.
 *
 * The graph becomes a network: each block is an arc from its head to its tail, so that blocks and edges are
 * arcs alike. Node 0 is outside: an arc goes from there to the entry, and from each exit to there. Blocks
 * that never come to an exit (an infinite loop) get one, and blocks that nothing leads to get an arc from
 * outside. So the network is strongly connected.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct graph;

struct network_arc {
	uint32_t from, to; /* nodes */
};

/* Arcs: first those of the blocks, then those of the edges, then the one of the entry, then the others from
   and to outside. */
struct network {
	struct network_arc *arcs;
	size_t arc_count, node_count;
	size_t block_count, edge_count; /* of the graph */
	uint32_t entry;                 /* the arc of the entry */
	bool incomplete;                /* edges are missing */
};

struct err *network_make(const struct graph *graph, struct network *out);
void network_free(struct network *network);

/* The class of each arc: arc_count numbers below *class_count, that the caller frees. */
struct err *network_classes(const struct network *network, uint32_t **out, size_t *class_count);

static inline uint32_t network_head(uint32_t block)
{
	return 1 + 2 * block;
}
static inline uint32_t network_tail(uint32_t block)
{
	return 2 + 2 * block;
}
