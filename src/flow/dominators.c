/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lengauer and Tarjan 1979, the simple version (O(m log n)), without recursion.
 * Everything below is in terms of numbers in preorder, from 1 on, so that 0 is
 * "none" and the arrays need no other mark.
 */
#include <stdlib.h>

#include "base/err.h"
#include "flow/graph.h"
#include "flow/loops.h"

struct search {
	const struct graph *graph;
	uint32_t count;     /* of blocks that were reached */
	uint32_t *memory;   /* of all arrays */
	uint32_t *number;   /* of a block; 0: not reached */
	uint32_t *block;    /* of a number */
	uint32_t *parent;   /* in the tree of the search */
	uint32_t *semi;     /* semidominator */
	uint32_t *ancestor; /* in the forest of what was linked */
	uint32_t *label;    /* with the least semidominator on the way up */
	uint32_t *bucket;   /* first of those whose semidominator this is … */
	uint32_t *next;     /* … and the next one */
	uint32_t *idom;
	uint32_t *stack;
	uint32_t *into; /* first predecessor of a block in `from`; one more for the end */
	uint32_t *from;
};

#define ARRAYS 12

static bool prepare(struct search *s, const struct graph *g)
{
	size_t each = g->block_count + 2;
	uint32_t **arrays[ARRAYS] = {&s->number,   &s->block, &s->parent, &s->semi,
				     &s->ancestor, &s->label, &s->bucket, &s->next,
				     &s->idom,     &s->stack, &s->into,   &s->from};
	s->graph = g;
	s->memory = calloc(each * (ARRAYS - 1) + g->edge_count + 1, sizeof *s->memory);
	for (size_t i = 0; s->memory && i < ARRAYS; i++)
		*arrays[i] = s->memory + i * each;
	return s->memory != NULL;
}

static void collect_predecessors(struct search *s)
{
	const struct graph *g = s->graph;
	for (size_t i = 0; i < g->edge_count; i++)
		s->into[g->edges[i].to + 1]++;
	for (size_t i = 0; i < g->block_count; i++)
		s->into[i + 1] += s->into[i];
	for (size_t i = g->edge_count; i-- > 0;)
		s->from[--s->into[g->edges[i].to + 1]] = g->edges[i].from;
	/* Each element now is where the block before it begins: shift them back. */
	for (size_t i = 0; i < g->block_count; i++)
		s->into[i] = s->into[i + 1];
	s->into[g->block_count] = (uint32_t)g->edge_count;
}

/* Numbers all that the entry reaches. `next` serves as the edge to look at. */
static void number_blocks(struct search *s)
{
	const struct graph *g = s->graph;
	uint32_t depth = 0;
	s->number[g->entry] = s->count = 1;
	s->block[1] = g->entry;
	s->stack[depth++] = 1;
	while (depth) {
		uint32_t v = s->stack[depth - 1];
		const struct graph_block *b = &g->blocks[s->block[v]];
		if (s->next[v] == b->count) {
			depth--;
			continue;
		}
		uint32_t to = g->edges[b->first + s->next[v]++].to;
		if (s->number[to])
			continue;
		s->number[to] = ++s->count;
		s->block[s->count] = to;
		s->parent[s->count] = v;
		s->stack[depth++] = s->count;
	}
	for (uint32_t v = 1; v <= s->count; v++) {
		s->next[v] = 0;
		s->semi[v] = s->label[v] = v;
	}
}

/* The label of `v`, the way up from it made short. */
static uint32_t evaluate(struct search *s, uint32_t v)
{
	uint32_t depth = 0;
	if (!s->ancestor[v])
		return v;
	for (uint32_t u = v; s->ancestor[s->ancestor[u]]; u = s->ancestor[u])
		s->stack[depth++] = u;
	while (depth) {
		uint32_t u = s->stack[--depth], above = s->ancestor[u];
		if (s->semi[s->label[above]] < s->semi[s->label[u]])
			s->label[u] = s->label[above];
		s->ancestor[u] = s->ancestor[above];
	}
	return s->label[v];
}

static void find_semidominator(struct search *s, uint32_t w)
{
	uint32_t b = s->block[w];
	for (uint32_t i = s->into[b]; i < s->into[b + 1]; i++) {
		uint32_t v = s->number[s->from[i]];
		if (!v)
			continue;
		uint32_t u = evaluate(s, v);
		if (s->semi[u] < s->semi[w])
			s->semi[w] = s->semi[u];
	}
}

static void find_idoms(struct search *s)
{
	for (uint32_t w = s->count; w >= 2; w--) {
		uint32_t p = s->parent[w];
		find_semidominator(s, w);
		s->next[w] = s->bucket[s->semi[w]];
		s->bucket[s->semi[w]] = w;
		s->ancestor[w] = p;
		for (uint32_t v = s->bucket[p]; v; v = s->next[v]) {
			uint32_t u = evaluate(s, v);
			s->idom[v] = s->semi[u] < s->semi[v] ? u : p;
		}
		s->bucket[p] = 0;
	}
	for (uint32_t w = 2; w <= s->count; w++)
		if (s->idom[w] != s->semi[w])
			s->idom[w] = s->idom[s->idom[w]];
}

struct err *dominators_find(const struct graph *graph, uint32_t **out)
{
	struct search s = {0};
	*out = malloc((graph->block_count + 1) * sizeof **out);
	if (!*out || !prepare(&s, graph)) {
		free(*out);
		*out = NULL;
		return err_new("out of memory");
	}
	if (graph->entry != GRAPH_NONE) {
		collect_predecessors(&s);
		number_blocks(&s);
		find_idoms(&s);
	}
	for (size_t i = 0; i < graph->block_count; i++) {
		uint32_t v = s.number[i];
		(*out)[i] = v > 1 ? s.block[s.idom[v]] : GRAPH_NONE;
	}
	free(s.memory);
	return NULL;
}
