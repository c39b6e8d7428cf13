/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must hold.
 *
 * Counts of edges are made of whole paths, so at each block as much comes in as goes out, whatever the counts are. What can be
 * wrong is where paths begin and end.
 *
 *  1. A path starts at the entry, by a call: these are counted, as entries. Or it starts where the path before it was cut: that
 *     one was counted, and tells where. Or it starts where an exception is caught, or where setjmp and the like return once
 *     more: that is not counted.
 *  2. A path that started is counted once, if it comes to its end. So of the paths of a start, no more can have ended than began,
 *     unless others come there so:
 *
 *         ended(start) <= entries (if it is the entry) + paths that were cut at an edge to it
 *
 *  3. A call ends once, so the function is not left more often than it was entered. Whoever is caught by an exception is still
 *     in the same call. But a call that never returns ends a path, and its exception may be caught in the same function: then
 *     this was not the end. Such ends are left out. And what calls vfork may be left by the child, too:
 *
 *         left <= entries
 *
 * How often exceptions come to a start cannot be bounded any better: each of them left a path open before, and the sum of (2)
 * over all other starts, together with (3), says just that.
 *
 * A path of which the sum was lost may have been cut at any edge, and then another path began at its target. A path in which the
 * process forks ends in both processes. Both are allowed for, as often as they were counted.
 */
#include "paths/flow_check.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "paths/result.h"

static bool may_be_caught(const struct graph *g, uint32_t block)
{
	const struct graph_block *b = &g->blocks[block];
	for (uint32_t i = b->first; i < b->first + b->count; i++)
		if (g->edges[i].kind == EDGE_LANDING)
			return b->ends == GRAPH_STOPS;
	return false;
}

static struct err *prepare(const struct path_function *f, struct flow_counts *c)
{
	*c = (struct flow_counts){0};
	c->edges = calloc(f->graph.edge_count + 1, sizeof *c->edges);
	c->blocks = calloc(f->graph.block_count + 1, sizeof *c->blocks);
	c->leaves = calloc(f->graph.block_count + 1, sizeof *c->leaves);
	c->starts = calloc(f->numbering.start_count + 1, sizeof *c->starts);
	c->problems = calloc(f->numbering.start_count + 1, sizeof *c->problems);
	return c->edges && c->blocks && c->leaves && c->starts && c->problems
		       ? NULL
		       : err_new("out of memory");
}

/* The edge that leads from one block to the next of a path; NUMBERING_OUT: there is none. */
static uint32_t find_edge(const struct numbering *n, uint32_t from, uint32_t to)
{
	const struct graph_block *b = &n->graph->blocks[from];
	for (uint32_t i = b->first; i < b->first + b->count; i++)
		if (n->graph->edges[i].to == to && !n->edges[i].cut)
			return i;
	return NUMBERING_OUT;
}

static void add_path(const struct path_function *f, const struct numbering_path *path,
		     uint64_t count, struct flow_counts *c)
{
	for (size_t i = 0; i < path->count; i++) {
		c->blocks[path->blocks[i]] += count;
		if (i + 1 == path->count)
			break;
		uint32_t edge = find_edge(&f->numbering, path->blocks[i], path->blocks[i + 1]);
		if (edge != NUMBERING_OUT)
			c->edges[edge] += count;
	}
	if (path->edge != NUMBERING_OUT)
		c->edges[path->edge] += count;
	else
		c->leaves[path->blocks[path->count - 1]] += count;
}

static struct err *add_paths(const struct path_function *f, struct flow_counts *c)
{
	const struct numbering *n = &f->numbering;
	struct numbering_path path = {0};
	struct err *e = NULL;
	for (size_t s = 0; s < n->start_count && !e; s++) {
		uint64_t end = s + 1 < n->start_count ? n->starts[s + 1].first : n->path_count;
		for (uint64_t i = n->starts[s].first; i < end && !e; i++) {
			if (!f->counts[i])
				continue;
			c->taken++;
			c->ended += f->counts[i];
			c->starts[s].ended += f->counts[i];
			e = numbering_decode(n, i, &path);
			if (!e)
				add_path(f, &path, f->counts[i], c);
		}
	}
	numbering_path_free(&path);
	return e;
}

/* How often each start was begun. `of`: for each block, its start + 1; all 0. */
static void count_begun(const struct path_function *f, uint32_t *of, struct flow_counts *c)
{
	const struct numbering *n = &f->numbering;
	for (size_t s = 0; s < n->start_count; s++) {
		of[n->starts[s].block] = (uint32_t)s + 1;
		c->starts[s].freely = f->graph.blocks[n->starts[s].block].again;
	}
	c->starts[0].begun = f->entries;
	for (size_t i = 0; i < f->graph.edge_count; i++) {
		uint32_t start = of[f->graph.edges[i].to];
		if (!n->edges[i].cut || !start)
			continue;
		c->starts[start - 1].begun += c->edges[i];
		c->starts[start - 1].freely |= n->edges[i].thrown;
	}
}

static void add_problem(struct flow_counts *c, enum flow_law law, uint32_t block, uint64_t begun,
			uint64_t ended)
{
	c->problems[c->problem_count++] = (struct flow_problem){law, block, begun, ended};
}

static bool goes_on_again(const struct graph *g)
{
	for (size_t i = 0; i < g->block_count; i++)
		if (g->blocks[i].again)
			return true;
	return false;
}

static void judge(const struct path_function *f, uint64_t forks, struct flow_counts *c)
{
	uint64_t excess = 0;
	for (size_t s = 0; s < f->numbering.start_count; s++) {
		const struct flow_start *start = &c->starts[s];
		if (!start->freely && start->ended > start->begun)
			excess += start->ended - start->begun;
	}
	for (size_t s = 0; s < f->numbering.start_count && excess > f->unknown + forks; s++) {
		const struct flow_start *start = &c->starts[s];
		if (!start->freely && start->ended > start->begun)
			add_problem(c, FLOW_STARTS, f->numbering.starts[s].block, start->begun,
				    start->ended);
	}
	if (c->left > f->entries + forks && !goes_on_again(&f->graph))
		add_problem(c, FLOW_CALLS, f->graph.entry, f->entries, c->left);
}

struct err *flow_check(const struct path_function *f, uint64_t forks, struct flow_counts *out)
{
	uint32_t *start_of = calloc(f->graph.block_count + 1, sizeof *start_of);
	struct err *e = prepare(f, out);
	if (!e && !start_of)
		e = err_new("out of memory");
	if (!e)
		e = add_paths(f, out);
	if (!e) {
		count_begun(f, start_of, out);
		for (uint32_t i = 0; i < f->graph.block_count; i++)
			out->left += may_be_caught(&f->graph, i) ? 0 : out->leaves[i];
		out->open = f->entries > out->left ? f->entries - out->left : 0;
		judge(f, forks, out);
	}
	free(start_of);
	if (e)
		flow_counts_free(out);
	return e;
}

void flow_counts_free(struct flow_counts *c)
{
	free(c->edges);
	free(c->blocks);
	free(c->leaves);
	free(c->starts);
	free(c->problems);
	*c = (struct flow_counts){0};
}

void flow_problem_print(const struct path_function *f, const struct flow_problem *p,
			struct buf *out)
{
	if (p->law == FLOW_CALLS)
		buf_printf(out, "%" PRIu64 " calls have ended, but only %" PRIu64 " began",
			   p->ended, p->begun);
	else
		buf_printf(out,
			   "%" PRIu64 " paths from 0x%" PRIx64 " have ended, but only %" PRIu64
			   " began",
			   p->ended, f->graph.blocks[p->block].start, p->begun);
}
