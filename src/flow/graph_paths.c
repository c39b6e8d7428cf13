/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways from the entry: the shortest in blocks, for each block, by one breadth-first search
 * over what is known so far. Code that loads the address of a table at the procedure's begin, and
 * jumps through it thousands of instructions later, is understood that way.
 */
#include <stdlib.h>
#include <string.h>

#include "flow/graph_build.h"

#define MAX_RUNS 128u
#define MAX_SIZE 65536u /* of a way, in bytes */

static bool is_any_unresolved(const struct build *b)
{
	for (size_t i = 0; i < b->leave_count; i++)
		if (b->leaves[i].ends == GRAPH_UNRESOLVED)
			return true;
	return false;
}

static void search(struct build *b)
{
	const struct graph *g = &b->sketch;
	uint32_t *todo = malloc(g->block_count * sizeof *todo);
	size_t done = 0, count = 0;
	if (!todo) {
		b->failed = true;
		return;
	}
	memset(b->came_from, 0xff, g->block_count * sizeof *b->came_from);
	for (size_t i = 0; i < g->edge_count; i++)
		b->ways[g->edges[i].to]++;
	b->came_from[g->entry] = g->entry;
	todo[count++] = g->entry;
	while (done < count) {
		uint32_t v = todo[done++];
		for (uint32_t i = 0; i < g->blocks[v].count; i++) {
			uint32_t to = g->edges[g->blocks[v].first + i].to;
			if (b->came_from[to] != GRAPH_NONE)
				continue;
			b->came_from[to] = v;
			todo[count++] = to;
		}
	}
	free(todo);
}

void build_forget_paths(struct build *b)
{
	graph_free(&b->sketch);
	free(b->came_from);
	free(b->ways);
	b->came_from = b->ways = NULL;
}

bool build_find_paths(struct build *b)
{
	build_forget_paths(b);
	if (!is_any_unresolved(b))
		return false;
	build_sketch(b, &b->sketch);
	if (b->failed || b->sketch.entry == GRAPH_NONE)
		return false;
	b->came_from = malloc(b->sketch.block_count * sizeof *b->came_from);
	b->ways = calloc(b->sketch.block_count, sizeof *b->ways);
	b->failed = !b->came_from || !b->ways;
	if (!b->failed)
		search(b);
	return !b->failed;
}

bool build_path_table(struct build *b, uint64_t jump, struct jump_table *out)
{
	struct code_run runs[MAX_RUNS];
	const struct graph *g = &b->sketch;
	uint32_t v = b->came_from ? graph_find(g, jump) : GRAPH_NONE;
	unsigned first = MAX_RUNS;
	uint64_t size = 0;
	if (v == GRAPH_NONE || b->came_from[v] == GRAPH_NONE || g->blocks[v].last != jump)
		return false;
	for (; first && size < MAX_SIZE; v = b->came_from[v]) {
		const struct graph_block *block = &g->blocks[v];
		const struct span *s = build_span(b, block->start);
		size += block->end - block->start;
		runs[--first] = (struct code_run){s->bytes + (block->start - s->start),
						  block->end - block->start, block->start,
						  b->ways[v] > 1};
		if (v == g->entry)
			break;
	}
	b->cost += size;
	return b->isa->find_jump_table(runs + first, MAX_RUNS - first, out);
}
