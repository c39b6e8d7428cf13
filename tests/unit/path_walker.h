/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Calls of a function, made by walking its graph: paths are counted as its code would, and edges are counted beside that. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "paths/numbering.h"
#include "paths/result.h"
#include "unit.h"

#define WALK_EDGES 4096u

struct walker {
	struct path_function *f;
	uint64_t state; /* of chance */
	/* What really happened, of paths that ended. */
	uint64_t *edges, *blocks, *leaves;
	uint64_t entries, left, ended;
};

struct walk { /* a call that goes on */
	int64_t sum;
	uint32_t at;
	uint32_t edges[WALK_EDGES]; /* of its path */
	uint32_t first;             /* block of its path */
	size_t count;
};

static inline uint32_t walker_chance(struct walker *w, uint32_t below)
{
	w->state = w->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(w->state >> 33) % below;
}

/* A function with this graph, which it takes. */
static inline struct path_function walker_function(const char *name, struct graph graph,
						   uint64_t most)
{
	struct path_function f = {.name = strdup(name),
				  .module = strdup("/nowhere/app"),
				  .address = graph.blocks[graph.entry].start,
				  .graph = graph};
	struct numbering_input input = {.graph = &graph, .most = most};
	assert_null(numbering_make(&input, &f.numbering));
	f.counts = calloc(f.numbering.path_count + 1, sizeof *f.counts);
	return f;
}

static inline struct walker walker_open(struct path_function *f, uint64_t seed)
{
	f->numbering.graph = &f->graph;
	return (struct walker){.f = f,
			       .state = seed,
			       .edges = calloc(f->graph.edge_count + 1, sizeof(uint64_t)),
			       .blocks = calloc(f->graph.block_count + 1, sizeof(uint64_t)),
			       .leaves = calloc(f->graph.block_count + 1, sizeof(uint64_t))};
}

static inline void walker_close(struct walker *w)
{
	free(w->edges);
	free(w->blocks);
	free(w->leaves);
}

static inline struct walk walker_call(struct walker *w)
{
	w->f->entries++;
	w->entries++;
	return (struct walk){.sum = w->f->numbering.starts[0].set,
			     .at = w->f->graph.entry,
			     .first = w->f->graph.entry};
}

/* The path has come to its end, and the code counts it. */
static inline void walker_end_path(struct walker *w, struct walk *k, int64_t add)
{
	int64_t number = k->sum + add;
	assert_true(number >= 0 && (uint64_t)number < w->f->numbering.path_count);
	w->f->counts[number]++;
	w->ended++;
	w->blocks[k->first]++;
	for (size_t i = 0; i < k->count; i++) {
		w->edges[k->edges[i]]++;
		if (!w->f->numbering.edges[k->edges[i]].cut)
			w->blocks[w->f->graph.edges[k->edges[i]].to]++;
	}
}

static inline void walker_take(struct walker *w, struct walk *k, uint32_t edge)
{
	const struct numbering_edge *e = &w->f->numbering.edges[edge];
	k->at = w->f->graph.edges[edge].to;
	assert_true(k->count < WALK_EDGES);
	k->edges[k->count++] = edge;
	if (!e->cut) {
		k->sum += e->add;
		return;
	}
	if (!e->thrown)
		walker_end_path(w, k, e->add);
	k->sum = e->set;
	k->count = 0;
	k->first = k->at;
}

static inline uint32_t walker_some_edge(struct walker *w, uint32_t block, bool thrown)
{
	const struct graph_block *b = &w->f->graph.blocks[block];
	uint32_t found = NUMBERING_OUT, count = 0;
	for (uint32_t i = b->first; i < b->first + b->count; i++)
		if ((w->f->graph.edges[i].kind == EDGE_LANDING) == thrown &&
		    !walker_chance(w, ++count))
			found = i;
	return found;
}

/* One step by chance. False: the call is over. */
static inline bool walker_step(struct walker *w, struct walk *k)
{
	const struct graph *g = &w->f->graph;
	uint32_t edge = walker_some_edge(w, k->at, false);
	uint32_t landing = walker_some_edge(w, k->at, true), at = k->at;
	bool leaves = numbering_leaves(g, at);
	if (leaves && (edge == NUMBERING_OUT || !walker_chance(w, 3))) {
		walker_end_path(w, k, w->f->numbering.leave[at]);
		w->leaves[at]++;
		if (g->blocks[at].ends != GRAPH_STOPS || landing == NUMBERING_OUT)
			w->left++;
		if (g->blocks[at].ends != GRAPH_STOPS || landing == NUMBERING_OUT ||
		    !walker_chance(w, 4))
			return false;
		walker_take(w, k, landing);
		return true;
	}
	if (landing != NUMBERING_OUT && (edge == NUMBERING_OUT || !walker_chance(w, 3)))
		edge = landing;
	if (edge == NUMBERING_OUT)
		return false;
	walker_take(w, k, edge);
	return true;
}

/* So many steps; true: the call is not over. */
static inline bool walker_go(struct walker *w, struct walk *k, unsigned steps)
{
	while (steps--)
		if (!walker_step(w, k))
			return false;
	return true;
}
