/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Control-flow graphs by their edges. */
#include <stdlib.h>

#include "flow/graph.h"

#define GRAPH_INSN 4 /* bytes of an instruction */

struct pair {
	uint32_t from, to;
};

static inline int graph_by_pair(const void *a, const void *b)
{
	const struct graph_edge *x = a, *y = b;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

/* A graph with these edges, block 0 first, and blocks of so many bytes. Blocks without a way on return. */
static inline struct graph graph_make(size_t blocks, const struct pair *pairs, size_t count,
				      uint64_t bytes)
{
	struct graph g = {
		.blocks = calloc(blocks, sizeof *g.blocks),
		.block_count = blocks,
		.edges = calloc(count + 1, sizeof *g.edges),
	};
	for (size_t i = 0; i < count; i++)
		g.edges[i] = (struct graph_edge){pairs[i].from, pairs[i].to, EDGE_JUMP};
	qsort(g.edges, count, sizeof *g.edges, graph_by_pair);
	for (size_t i = 0; i < count; i++)
		if (!g.edge_count || graph_by_pair(&g.edges[g.edge_count - 1], &g.edges[i]))
			g.edges[g.edge_count++] = g.edges[i];
	for (size_t i = 0; i < blocks; i++)
		g.blocks[i] = (struct graph_block){.start = bytes * i,
						   .end = bytes * (i + 1),
						   .last = bytes * (i + 1) - GRAPH_INSN};
	for (size_t i = g.edge_count; i-- > 0;) {
		g.blocks[g.edges[i].from].first = (uint32_t)i;
		g.blocks[g.edges[i].from].count++;
	}
	for (size_t i = 0; i < blocks; i++)
		g.blocks[i].ends = g.blocks[i].count == 0   ? GRAPH_RETURNS
				   : g.blocks[i].count == 1 ? GRAPH_JUMPS
				   : g.blocks[i].count == 2 ? GRAPH_BRANCHES
							    : GRAPH_SWITCHES;
	return g;
}
