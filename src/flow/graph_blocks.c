/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "flow/graph_build.h"

static int by_address(const void *a, const void *b)
{
	const struct leave *x = a, *y = b;
	return x->at < y->at ? -1 : x->at > y->at;
}

const struct leave *build_leave(const struct build *b, uint64_t at)
{
	size_t found = FIRST_NOT(i, b->leave_count, b->leaves[i].at < at);
	return found < b->leave_count && b->leaves[found].at == at ? &b->leaves[found] : NULL;
}

static uint8_t slot_at(const struct build *b, const struct span *s, uint64_t at)
{
	return at < s->end ? *build_slot(b, s, at) : 0;
}

/* Where the instruction at `at` ends; earlier where a jump goes into its middle (over a prefix). */
static uint64_t insn_end(const struct build *b, const struct span *s, uint64_t at)
{
	unsigned unit = b->isa->insn_min;
	uint64_t end = at + (slot_at(b, s, at) & SLOT_LENGTH) * unit;
	for (uint64_t inner = at + unit; inner < end; inner += unit)
		if (slot_at(b, s, inner) & SLOT_LEADER)
			return inner;
	return end;
}

/* The block that begins at `at`. */
static struct graph_block cut_block(const struct build *b, const struct span *s, uint64_t at)
{
	struct graph_block block = {.start = at, .ends = GRAPH_FALLS};
	block.landing = slot_at(b, s, at) & SLOT_LANDING;
	block.again = slot_at(b, s, at) & SLOT_AGAIN;
	for (;;) {
		uint8_t slot = slot_at(b, s, at);
		uint64_t whole = at + (slot & SLOT_LENGTH) * (uint64_t)b->isa->insn_min;
		uint64_t end = insn_end(b, s, at);
		block.last = at;
		block.end = end;
		if (end == whole && (slot & SLOT_LEAVES)) {
			const struct leave *leave = build_leave(b, at);
			block.ends = leave ? leave->ends : GRAPH_BAD;
			return block;
		}
		uint8_t next = slot_at(b, s, end);
		if ((next & SLOT_LEADER) || end >= s->end)
			return block;
		if (!(next & SLOT_LENGTH)) {
			block.ends =
				GRAPH_BAD; /* following stopped here: there were too many blocks */
			return block;
		}
		at = end;
	}
}

static void cut_blocks(struct build *b, struct graph *g)
{
	size_t capacity = 0;
	for (size_t i = 0; i < b->span_count; i++) {
		const struct span *s = &b->spans[i];
		for (uint64_t at = s->start; at < s->end;) {
			if (!(*build_slot(b, s, at) & SLOT_LENGTH)) {
				at += b->isa->insn_min;
				continue;
			}
			if (!build_grow(b, &g->blocks, &capacity, g->block_count,
					sizeof *g->blocks))
				return;
			g->blocks[g->block_count] = cut_block(b, s, at);
			at = g->blocks[g->block_count++].end;
		}
	}
}

static void add_edge(struct build *b, struct graph *g, size_t *capacity, uint32_t from,
		     uint64_t target, enum graph_edge_kind kind)
{
	uint32_t to = graph_find(g, target);
	if (to == GRAPH_NONE || g->blocks[to].start != target ||
	    !build_grow(b, &g->edges, capacity, g->edge_count, sizeof *g->edges))
		return;
	g->edges[g->edge_count++] = (struct graph_edge){from, to, (uint8_t)kind};
}

static int by_pair(const void *a, const void *b)
{
	const struct graph_edge *x = a, *y = b;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return (x->kind > y->kind) - (x->kind < y->kind);
}

/* Sorts the edges of one block, from the `first` on, and leaves each target once. */
static void finish_edges(struct graph *g, struct graph_block *block)
{
	size_t count = g->edge_count - block->first, kept = 0;
	if (!count)
		return;
	struct graph_edge *edges = g->edges + block->first;
	if (count > 1)
		qsort(edges, count, sizeof *edges, by_pair);
	for (size_t i = 0; i < count; i++)
		if (!kept || edges[kept - 1].to != edges[i].to)
			edges[kept++] = edges[i];
	g->edge_count = block->first + kept;
	block->count = (uint32_t)kept;
}

static void connect(struct build *b, struct graph *g)
{
	size_t capacity = 0;
	for (uint32_t i = 0; i < g->block_count && !b->failed; i++) {
		struct graph_block *block = &g->blocks[i];
		const struct leave *leave = build_leave(b, block->last);
		block->first = (uint32_t)g->edge_count;
		if (block->ends == GRAPH_FALLS || block->ends == GRAPH_BRANCHES ||
		    block->ends == GRAPH_CALLS)
			add_edge(b, g, &capacity, i, block->end, EDGE_FALL);
		if (leave && (block->ends == GRAPH_JUMPS || block->ends == GRAPH_BRANCHES))
			add_edge(b, g, &capacity, i, leave->target, EDGE_JUMP);
		if (leave && block->ends == GRAPH_SWITCHES)
			for (uint32_t k = 0; k < leave->count; k++)
				add_edge(b, g, &capacity, i, b->targets[leave->first + k],
					 EDGE_SWITCH);
		if (leave && leave->landing &&
		    (block->ends == GRAPH_CALLS || block->ends == GRAPH_STOPS))
			add_edge(b, g, &capacity, i, leave->landing, EDGE_LANDING);
		finish_edges(g, block);
	}
}

static void mark_reached(struct build *b)
{
	struct graph *g = b->graph;
	uint32_t *todo = calloc(g->block_count, sizeof *todo);
	size_t count = 0;
	if (!todo) {
		b->failed = true;
		return;
	}
	todo[count++] = g->entry;
	g->blocks[g->entry].reached = true;
	while (count) {
		const struct graph_block *block = &g->blocks[todo[--count]];
		for (uint32_t i = 0; i < block->count; i++) {
			uint32_t to = g->edges[block->first + i].to;
			if (!g->blocks[to].reached) {
				g->blocks[to].reached = true;
				todo[count++] = to;
			}
		}
	}
	free(todo);
}

void build_sketch(struct build *b, struct graph *g)
{
	memset(g, 0, sizeof *g);
	g->entry = GRAPH_NONE;
	if (b->leave_count)
		qsort(b->leaves, b->leave_count, sizeof *b->leaves, by_address);
	cut_blocks(b, g);
	if (b->failed || !g->block_count)
		return;
	connect(b, g);
	g->entry = graph_find(g, b->in->parts[0].start);
}

void build_blocks(struct build *b)
{
	struct graph *g = b->graph, made;
	build_sketch(b, &made);
	made.tables = g->tables;
	made.table_count = g->table_count;
	made.truncated = g->truncated;
	*g = made;
	if (!b->failed && g->entry != GRAPH_NONE)
		mark_reached(b);
}
