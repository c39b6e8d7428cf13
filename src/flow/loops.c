/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Havlak's nest of loops, found in almost linear time as Ramalingam (1999) does, with one
 * difference that brings it closer to what people and compilers call a loop (below).
 *
 * A depth-first search numbers the blocks and sorts the edges: those of its tree,
 * those back to an open block (its ancestor), and the rest, which go to a
 * finished one. Then, from the last number to the first, the blocks with a back
 * edge become headers: the loop is what leads backwards from the sources of those
 * edges up to the header. It is then merged into the header (union-find), so an outer
 * loop sees it as one block.
 *
 * An edge of the rest goes over from one branch of the tree to another. It matters to the
 * loops around both only, so it comes in when the lowest common ancestor of its
 * ends is up. If its target lies in a loop already then, below the header, it is another entry
 * of that loop: the loop is irreducible.
 *
 *      1          edges: 1>2 2>3 1>4 of the tree; 3>2 back; 4>3 goes over, with
 *     / \         common ancestor 1. Loop {2, 3} is made when 2 is up; when 1 is up,
 *    2   4        4>3 is seen to enter it: irreducible.
 *    |  /
 *    3<
 *
 * The difference: of the edges back to a header, those from blocks that it dominates make an
 * ordinary loop. Where there are such, the others are taken for mere entries of it: a branch that
 * reports an error and then goes on at the header is no part of the loop, even if it can be come to
 * from within, too. Only headers without an ordinary loop get an irreducible one. And of irreducible
 * loops right inside each other only the outermost is kept: which block heads an inner one is
 * an accident of the order of the search.
 */
#include "flow/loops.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "flow/graph.h"

struct nest {
	const struct graph *graph;
	uint32_t count;      /* of numbers, from 1 on; 0 is none */
	uint32_t *memory;    /* of all arrays */
	uint32_t *number;    /* of a block */
	uint32_t *block;     /* of a number */
	uint32_t *parent;    /* in the tree of the search */
	uint32_t *cursor;    /* the edge to look at next */
	uint32_t *stack;     /* of the search; later what is to be looked at */
	uint32_t *done_up;   /* union-find: the lowest ancestor that is open */
	uint32_t *merged;    /* union-find: the header that a block was merged into */
	uint32_t *header;    /* of the innermost loop that holds it; a header: of the one around */
	uint32_t *marked_up; /* union-find: the next loop around that is not marked irreducible */
	uint32_t *in_body;   /* the loop whose body it was last put into */
	uint8_t *open, *is_header, *is_irreducible;
	uint32_t *last_back; /* the block of the last back edge to a header, plus 1 */
	/* The tree of dominators, numbered so that the blocks that one dominates are those in
	   [dom_in, dom_in + dom_size). */
	uint32_t *dom_in, *dom_size;
	/* Lists of edges: the first of a number's list, and for each edge the next one, plus 1. */
	uint32_t *back_first, *over_first, *into_first;
	uint32_t *back_next; /* also of `over` */
	uint32_t *into_next, *into_from;
};

#define BLOCK_ARRAYS 16
#define EDGE_ARRAYS 3

static bool prepare(struct nest *n, const struct graph *g)
{
	size_t each = g->block_count + 2, edges = g->edge_count + 1;
	uint32_t **of_blocks[BLOCK_ARRAYS] = {
		&n->number,     &n->block,      &n->parent,    &n->cursor,
		&n->stack,      &n->done_up,    &n->merged,    &n->header,
		&n->marked_up,  &n->in_body,    &n->last_back, &n->back_first,
		&n->over_first, &n->into_first, &n->dom_in,    &n->dom_size,
	};
	uint32_t **of_edges[EDGE_ARRAYS] = {&n->back_next, &n->into_next, &n->into_from};
	n->graph = g;
	n->memory = calloc(BLOCK_ARRAYS * each + EDGE_ARRAYS * edges, sizeof *n->memory);
	n->open = calloc(3, each);
	if (!n->memory || !n->open)
		return false;
	for (size_t i = 0; i < BLOCK_ARRAYS; i++)
		*of_blocks[i] = n->memory + i * each;
	for (size_t i = 0; i < EDGE_ARRAYS; i++)
		*of_edges[i] = n->memory + BLOCK_ARRAYS * each + i * edges;
	n->is_header = n->open + each;
	n->is_irreducible = n->is_header + each;
	for (uint32_t i = 0; i < each; i++)
		n->done_up[i] = n->merged[i] = n->marked_up[i] = i;
	return true;
}

/* The root of `v`, with the way there halved. */
static uint32_t find(uint32_t *up, uint32_t v)
{
	while (up[v] != v)
		v = up[v] = up[up[v]];
	return v;
}

static void note_edge(struct nest *n, uint32_t *first, uint32_t at, uint32_t edge)
{
	n->back_next[edge] = first[at];
	first[at] = edge + 1;
}

/* An edge from the open block `v`. Returns the number of a block that it discovers, else 0. */
static uint32_t classify(struct nest *n, uint32_t v, uint32_t root, uint32_t edge)
{
	uint32_t to = n->graph->edges[edge].to, w = n->number[to];
	if (!w) {
		n->number[to] = w = ++n->count;
		n->block[w] = to;
		n->parent[w] = v;
		return w;
	}
	if (w < root)
		return 0; /* from code that nothing reaches: says nothing of the rest */
	if (n->open[w])
		note_edge(n, n->back_first, w, edge);
	else
		note_edge(n, n->over_first, w > v ? v : find(n->done_up, w), edge);
	return 0;
}

static void search_from(struct nest *n, uint32_t block)
{
	uint32_t depth = 0, root = ++n->count;
	n->number[block] = root;
	n->block[root] = block;
	n->open[root] = 1;
	n->stack[depth++] = root;
	while (depth) {
		uint32_t v = n->stack[depth - 1];
		const struct graph_block *b = &n->graph->blocks[n->block[v]];
		if (n->cursor[v] < b->count) {
			uint32_t w = classify(n, v, root, b->first + n->cursor[v]++);
			if (w) {
				n->open[w] = 1;
				n->stack[depth++] = w;
			}
			continue;
		}
		n->open[v] = 0;
		if (n->parent[v])
			n->done_up[v] = n->parent[v];
		depth--;
	}
}

/* `idom`: of blocks. A dominator has a lower number than what it dominates. */
static void number_dominators(struct nest *n, const uint32_t *idom)
{
	uint32_t *next = n->stack; /* number for the next block that this one dominates */
	for (uint32_t v = n->count; v; v--) {
		uint32_t above = idom[n->block[v]];
		n->dom_size[v]++;
		if (above != GRAPH_NONE)
			n->dom_size[n->number[above]] += n->dom_size[v];
	}
	for (uint32_t v = 1; v <= n->count; v++) {
		uint32_t above = idom[n->block[v]];
		if (above != GRAPH_NONE) {
			n->dom_in[v] = next[n->number[above]];
			next[n->number[above]] += n->dom_size[v];
		}
		next[v] = n->dom_in[v] + 1;
	}
}

/* In code that nothing reaches there are no dominators: all of it has dom_in 0 and size 1. */
static bool dominates(const struct nest *n, uint32_t x, uint32_t y)
{
	return n->dom_in[y] - n->dom_in[x] < n->dom_size[x];
}

/* All loops around `z`, but not one that it heads, have another entry. */
static void mark_irreducible(struct nest *n, uint32_t z)
{
	for (uint32_t t = n->header[z]; t; t = n->header[t]) {
		t = find(n->marked_up, t);
		n->is_irreducible[t] = 1;
		if (n->header[t])
			n->marked_up[t] = n->header[t];
	}
}

/* Edges between branches of the tree below `x` come in. */
static void bring_in(struct nest *n, uint32_t x)
{
	const struct graph_edge *edges = n->graph->edges;
	for (uint32_t i = n->over_first[x]; i; i = n->back_next[i - 1]) {
		uint32_t y = n->number[edges[i - 1].from], z = n->number[edges[i - 1].to];
		uint32_t to = find(n->merged, z);
		n->into_from[i - 1] = find(n->merged, y);
		n->into_next[i - 1] = n->into_first[to];
		n->into_first[to] = i;
		mark_irreducible(n, z);
	}
}

static void put_in_body(struct nest *n, uint32_t x, uint32_t y, uint32_t *count)
{
	y = find(n->merged, y);
	if (y == x || n->in_body[y] == x)
		return;
	n->in_body[y] = x;
	n->stack[(*count)++] = y;
}

/* The sources of the back edges that make the loop of `x` go to its body. Other edges back to it are
   entries, for the loops around it to see. */
static uint32_t begin_body(struct nest *n, uint32_t x)
{
	const struct graph_edge *edges = n->graph->edges;
	uint32_t count = 0;
	bool ordinary = false;
	for (uint32_t i = n->back_first[x]; i && !ordinary; i = n->back_next[i - 1])
		ordinary = dominates(n, x, n->number[edges[i - 1].from]);
	for (uint32_t i = n->back_first[x]; i; i = n->back_next[i - 1]) {
		uint32_t from = edges[i - 1].from, y = n->number[from];
		if (ordinary && !dominates(n, x, y)) {
			n->into_from[i - 1] = y;
			n->into_next[i - 1] = n->into_first[x];
			n->into_first[x] = i;
			continue;
		}
		n->is_header[x] = 1;
		if (from + 1 > n->last_back[x])
			n->last_back[x] = from + 1;
		put_in_body(n, x, y, &count);
	}
	return count;
}

static void find_loop(struct nest *n, uint32_t x)
{
	uint32_t count = begin_body(n, x);
	for (uint32_t done = 0; done < count; done++) {
		uint32_t y = n->stack[done];
		put_in_body(n, x, n->parent[y], &count);
		for (uint32_t i = n->into_first[y]; i; i = n->into_next[i - 1])
			put_in_body(n, x, n->into_from[i - 1], &count);
	}
	for (uint32_t done = 0; done < count; done++) {
		n->header[n->stack[done]] = x;
		n->merged[n->stack[done]] = x;
	}
}

static void join_irreducible(struct nest *n)
{
	uint32_t *instead = n->stack; /* of a header */
	for (uint32_t v = 1; v <= n->count; v++) {
		uint32_t around = n->header[v] ? instead[n->header[v]] : 0;
		n->header[v] = around;
		instead[v] = v;
		if (around && n->is_header[v] && n->is_irreducible[v] &&
		    n->is_irreducible[around]) {
			n->is_header[v] = 0;
			instead[v] = around;
		}
	}
}

static int by_depth(const void *a, const void *b)
{
	const struct loop *x = a, *y = b;
	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	return x->header < y->header ? -1 : x->header > y->header;
}

/* `depth`: of the loop of each header, by number. */
static void list_loops(struct nest *n, struct loops *out, uint32_t *depth)
{
	const struct graph *g = n->graph;
	uint32_t *index = n->stack; /* of a header's loop */
	for (uint32_t x = 1; x <= n->count; x++) {
		if (!n->is_header[x])
			continue;
		depth[x] = n->header[x] ? depth[n->header[x]] + 1 : 1;
		out->loops[out->count++] = (struct loop){
			.header = n->block[x],
			.depth = depth[x],
			.irreducible = n->is_irreducible[x],
			.back_from = n->last_back[x] - 1,
			.back_at = g->blocks[n->last_back[x] - 1].last,
		};
	}
	qsort(out->loops, out->count, sizeof *out->loops, by_depth);
	for (uint32_t i = 0; i < out->count; i++)
		index[n->number[out->loops[i].header]] = i;
	for (uint32_t i = 0; i < out->count; i++) {
		uint32_t around = n->header[n->number[out->loops[i].header]];
		out->loops[i].parent = around ? index[around] : LOOP_NONE;
	}
	for (uint32_t i = 0; i < g->block_count; i++) {
		uint32_t v = n->number[i], x = n->is_header[v] ? v : n->header[v];
		out->innermost[i] = x ? index[x] : LOOP_NONE;
		if (x)
			out->loops[index[x]].block_count++;
	}
	for (size_t i = out->count; i-- > 0;)
		if (out->loops[i].parent != LOOP_NONE)
			out->loops[out->loops[i].parent].block_count += out->loops[i].block_count;
}

static void find_loops(struct nest *n, const uint32_t *idom, struct loops *out)
{
	const struct graph *g = n->graph;
	size_t headers = 0;
	if (g->entry != GRAPH_NONE)
		search_from(n, g->entry);
	for (uint32_t i = 0; i < g->block_count; i++)
		if (!n->number[i])
			search_from(n, i);
	number_dominators(n, idom);
	for (uint32_t x = n->count; x; x--) {
		bring_in(n, x);
		find_loop(n, x);
		headers += n->is_header[x];
	}
	out->loops = calloc(headers + 1, sizeof *out->loops);
	out->innermost = malloc((g->block_count + 1) * sizeof *out->innermost);
	join_irreducible(n);
	if (out->loops && out->innermost)
		list_loops(n, out, n->cursor);
}

struct err *loops_find(const struct graph *graph, struct loops *out)
{
	struct nest n = {0};
	uint32_t *idom;
	struct err *e = dominators_find(graph, &idom);
	memset(out, 0, sizeof *out);
	if (e)
		return e;
	bool good = prepare(&n, graph);
	if (good) {
		find_loops(&n, idom, out);
		good = out->loops && out->innermost;
	}
	free(idom);
	free(n.memory);
	free(n.open);
	if (good)
		return NULL;
	loops_free(out);
	return err_new("out of memory");
}

void loops_free(struct loops *loops)
{
	free(loops->loops);
	free(loops->innermost);
	memset(loops, 0, sizeof *loops);
}
