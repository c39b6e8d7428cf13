/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "explain/classes.h"
#include "flow/graph.h"

struct maker {
	const struct graph *graph;
	struct network *network;
	size_t room;
	uint32_t *first; /* of each block, where the edges that lead to it begin in `into` */
	uint32_t *into;
	bool *seen; /* reached from outside, or reaches it */
	uint32_t *todo;
	size_t todo_count;
	bool failed;
};

static void add_arc(struct maker *k, uint32_t from, uint32_t to)
{
	struct network *n = k->network;
	if (!ARRAY_ROOM(n->arcs, n->arc_count, k->room)) {
		k->failed = true;
		return;
	}
	n->arcs[n->arc_count++] = (struct network_arc){from, to};
}

/* Whether control may leave the procedure at a block's end. A conditional jump to another procedure has
   only one edge. */
static bool is_exit(const struct graph_block *block)
{
	switch (block->ends) {
	case GRAPH_RETURNS:
	case GRAPH_TAIL_CALLS:
	case GRAPH_UNRESOLVED:
	case GRAPH_STOPS:
	case GRAPH_BAD:
		return true;
	case GRAPH_BRANCHES:
		return block->count < 2;
	default:
		return block->count == 0;
	}
}

/* An exception comes from outside: it is not counted as a way out of the call that it passes. */
static bool is_flow(const struct graph_edge *edge)
{
	return edge->kind != EDGE_LANDING;
}

static void add_graph(struct maker *k)
{
	const struct graph *g = k->graph;
	for (uint32_t i = 0; i < g->block_count; i++)
		add_arc(k, network_head(i), network_tail(i));
	for (size_t i = 0; i < g->edge_count; i++)
		add_arc(k, is_flow(&g->edges[i]) ? network_tail(g->edges[i].from) : 0,
			network_head(g->edges[i].to));
	k->network->entry = (uint32_t)k->network->arc_count;
	add_arc(k, 0, network_head(g->entry));
	for (uint32_t i = 0; i < g->block_count; i++)
		if (is_exit(&g->blocks[i]))
			add_arc(k, network_tail(i), 0);
}

static void index_edges(struct maker *k)
{
	const struct graph *g = k->graph;
	for (size_t i = 0; i < g->edge_count; i++)
		k->first[g->edges[i].to + 1]++;
	for (size_t i = 0; i < g->block_count; i++)
		k->first[i + 1] += k->first[i];
	for (size_t i = g->edge_count; i-- > 0;)
		k->into[--k->first[g->edges[i].to + 1]] = (uint32_t)i;
	/* Each entry went down to where its own block begins: one to the left is where it belongs. */
	memmove(k->first, k->first + 1, g->block_count * sizeof *k->first);
	k->first[g->block_count] = (uint32_t)g->edge_count;
}

static void see(struct maker *k, uint32_t block)
{
	if (k->seen[block])
		return;
	k->seen[block] = true;
	k->todo[k->todo_count++] = block;
}

/* ---- what nothing leads to ---- */

static void flood_forward(struct maker *k)
{
	const struct graph *g = k->graph;
	while (k->todo_count) {
		const struct graph_block *block = &g->blocks[k->todo[--k->todo_count]];
		for (uint32_t i = block->first; i < block->first + block->count; i++)
			if (is_flow(&g->edges[i]))
				see(k, g->edges[i].to);
	}
}

static void enter(struct maker *k, uint32_t block)
{
	if (k->seen[block])
		return;
	add_arc(k, 0, network_head(block));
	see(k, block);
	flood_forward(k);
}

static void add_entries(struct maker *k)
{
	const struct graph *g = k->graph;
	see(k, g->entry);
	for (size_t i = 0; i < g->edge_count; i++)
		if (!is_flow(&g->edges[i]))
			see(k, g->edges[i].to);
	flood_forward(k);
	for (uint32_t i = 0; i < g->block_count; i++)
		if (k->first[i] == k->first[i + 1])
			enter(k, i);
	for (uint32_t i = 0; i < g->block_count; i++)
		enter(k, i);
}

/* ---- what leads nowhere ---- */

static void flood_backward(struct maker *k)
{
	while (k->todo_count) {
		uint32_t block = k->todo[--k->todo_count];
		for (uint32_t i = k->first[block]; i < k->first[block + 1]; i++)
			if (is_flow(&k->graph->edges[k->into[i]]))
				see(k, k->graph->edges[k->into[i]].from);
	}
}

static bool jumps_back(const struct graph *g, uint32_t block)
{
	const struct graph_block *b = &g->blocks[block];
	for (uint32_t i = b->first; i < b->first + b->count; i++)
		if (is_flow(&g->edges[i]) && g->edges[i].to <= block)
			return true;
	return false;
}

static void leave(struct maker *k, uint32_t block)
{
	if (k->seen[block])
		return;
	add_arc(k, network_tail(block), 0);
	see(k, block);
	flood_backward(k);
}

/* An infinite loop is left where it jumps back, so that all of it stays in one class. */
static void add_exits(struct maker *k)
{
	const struct graph *g = k->graph;
	memset(k->seen, 0, g->block_count * sizeof *k->seen);
	for (uint32_t i = 0; i < g->block_count; i++)
		if (is_exit(&g->blocks[i]))
			see(k, i);
	flood_backward(k);
	for (uint32_t i = (uint32_t)g->block_count; i-- > 0;)
		if (jumps_back(g, i))
			leave(k, i);
	for (uint32_t i = (uint32_t)g->block_count; i-- > 0;)
		leave(k, i);
}

struct err *network_make(const struct graph *graph, struct network *out)
{
	struct maker k = {.graph = graph, .network = out};
	memset(out, 0, sizeof *out);
	if (!graph->block_count || graph->entry >= graph->block_count)
		return err_new("the procedure has no code");
	k.first = calloc(graph->block_count + 1, sizeof *k.first);
	k.into = calloc(graph->edge_count + 1, sizeof *k.into);
	k.seen = calloc(graph->block_count, sizeof *k.seen);
	k.todo = calloc(graph->block_count, sizeof *k.todo);
	k.failed = !k.first || !k.into || !k.seen || !k.todo;
	if (!k.failed) {
		index_edges(&k);
		add_graph(&k);
		add_entries(&k);
		add_exits(&k);
	}
	free(k.first);
	free(k.into);
	free(k.seen);
	free(k.todo);
	out->node_count = 1 + 2 * graph->block_count;
	out->block_count = graph->block_count;
	out->edge_count = graph->edge_count;
	out->incomplete = graph->unresolved || graph->truncated;
	for (size_t i = 0; i < graph->block_count; i++)
		out->incomplete |= graph->blocks[i].ends == GRAPH_UNRESOLVED;
	if (!k.failed)
		return NULL;
	network_free(out);
	return err_new("out of memory");
}

void network_free(struct network *network)
{
	free(network->arcs);
	memset(network, 0, sizeof *network);
}
