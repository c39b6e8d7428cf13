/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How paths get their numbers.
 *
 * The ways on from a block are, in this order: its edges that are not cut, its edges that are cut, and the way out of
 * the procedure. The first kind leads to as many paths as its target does, the others are the end of one path. So if
 * each way has as its value the number of paths by the ways before it, the values along a path add up to its number
 * among the paths of its start.
 *
 * The code needs fewer additions. Think of all starts and ends as one node, and of a tree in this graph that reaches
 * all blocks: values can be moved along the tree, so that its edges add nothing, and sums of whole paths are
 * the same. The tree is made of the hottest edges. Starts and ends are taken for it last: what they add costs no
 * instruction.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "flow/graph.h"
#include "flow/loops.h"
#include "paths/numbering.h"

#define USUAL_MOST 4096u
#define LOOP_WEIGHT 8.0 /* guess: a loop goes around so often */
#define DEPTH_MAX 12u

enum colour { WHITE, GREY, BLACK }; /* not seen, on the way from the entry, done */

struct arc { /* between blocks; `outside` stands for all starts and ends */
	uint32_t from, to;
	int64_t value;
	double weight;
	int64_t *add; /* where what it adds is wanted */
};

struct maker {
	struct numbering *n;
	const struct graph *graph;
	const double *weights;
	const bool *cuts;
	uint64_t most;
	double *guessed;
	uint8_t *colour; /* of blocks */
	uint32_t *
		order; /* blocks as the search leaves them: those behind an uncut edge come first */
	uint32_t *stack; /* of the search, and of the walk through the tree */
	uint32_t *next;  /* by block: the edge that the search takes next */
	size_t order_count;
	uint32_t *start_of; /* by block: index + 1 in starts */
	size_t start_room;
	uint32_t outside;
	struct arc *arcs;
	size_t arc_count, arc_room;
	uint32_t *parent;           /* union-find */
	uint32_t *first_arc, *tree; /* arcs of the tree by their ends: indexes into tree */
	bool failed;
};

bool numbering_leaves(const struct graph *graph, uint32_t block)
{
	const struct graph_block *b = &graph->blocks[block];
	uint32_t ways = 0; /* those that no exception takes */
	for (uint32_t i = b->first; i < b->first + b->count; i++)
		ways += graph->edges[i].kind != EDGE_LANDING;
	switch (b->ends) {
	case GRAPH_RETURNS:
	case GRAPH_TAIL_CALLS:
	case GRAPH_UNRESOLVED:
	case GRAPH_STOPS:
	case GRAPH_BAD:
		return true;
	case GRAPH_BRANCHES: /* a conditional jump to another procedure has only one edge */
		return ways < 2;
	default:
		return ways == 0;
	}
}

/* ---- weights ---- */

static void guess_weights(struct maker *m, const struct loops *loops)
{
	const struct graph *g = m->graph;
	for (size_t i = 0; i < g->edge_count; i++) {
		const struct graph_edge *e = &g->edges[i];
		uint32_t inner = loops->innermost[e->from], other = loops->innermost[e->to];
		uint32_t depth = inner == LOOP_NONE ? 0 : loops->loops[inner].depth;
		uint32_t to = other == LOOP_NONE ? 0 : loops->loops[other].depth;
		double weight = 1.0 / g->blocks[e->from].count;
		for (uint32_t k = 0; k < depth && k < DEPTH_MAX; k++)
			weight *= LOOP_WEIGHT;
		m->guessed[i] = to < depth ? weight / LOOP_WEIGHT : weight;
	}
	m->weights = m->guessed;
}

static struct err *know_weights(struct maker *m)
{
	struct loops loops;
	if (m->weights)
		return NULL;
	m->guessed = calloc(m->graph->edge_count + 1, sizeof *m->guessed);
	if (!m->guessed)
		return err_new("out of memory");
	struct err *e = loops_find(m->graph, &loops);
	if (e)
		return e;
	guess_weights(m, &loops);
	loops_free(&loops);
	return NULL;
}

/* ---- cuts ---- */

static void add_start(struct maker *m, uint32_t block)
{
	struct numbering *n = m->n;
	if (m->start_of[block])
		return;
	if (!ARRAY_ROOM(n->starts, n->start_count, m->start_room)) {
		m->failed = true;
		return;
	}
	n->starts[n->start_count++] = (struct numbering_start){.block = block};
	m->start_of[block] = (uint32_t)n->start_count;
}

static void cut(struct maker *m, uint32_t edge)
{
	m->n->edges[edge].cut = true;
	add_start(m, m->graph->edges[edge].to);
}

/* How many paths go by an edge, from its block on. */
static uint64_t ways_by(const struct numbering *n, uint32_t edge)
{
	const struct numbering_edge *e = &n->edges[edge];
	if (e->thrown)
		return 0;
	return e->cut ? 1 : n->ways[n->graph->edges[edge].to];
}

static uint64_t ways_from(const struct numbering *n, uint32_t block)
{
	const struct graph_block *b = &n->graph->blocks[block];
	uint64_t ways = numbering_leaves(n->graph, block);
	for (uint32_t i = b->first; i < b->first + b->count; i++)
		ways += ways_by(n, i);
	return ways;
}

/* The coldest edge of a block by whose cut there are fewer paths; NUMBERING_OUT: none. */
static uint32_t coldest(const struct maker *m, uint32_t block)
{
	const struct graph_block *b = &m->graph->blocks[block];
	uint32_t best = NUMBERING_OUT;
	for (uint32_t i = b->first; i < b->first + b->count; i++)
		if (ways_by(m->n, i) > 1 &&
		    (best == NUMBERING_OUT || m->weights[i] < m->weights[best]))
			best = i;
	return best;
}

/* All blocks behind it are done, but by edges that are cut. */
static void finish(struct maker *m, uint32_t block)
{
	struct numbering *n = m->n;
	uint64_t ways = ways_from(n, block);
	while (ways > m->most) {
		uint32_t edge = coldest(m, block);
		if (edge == NUMBERING_OUT)
			break;
		ways -= ways_by(n, edge) - 1;
		cut(m, edge);
		n->cut_count++;
	}
	n->ways[block] = ways;
	m->colour[block] = BLACK;
	m->order[m->order_count++] = block;
}

/* Goes through the graph, depth first. Edges back to where the search is are cut, and those of exceptions. */
static void search(struct maker *m)
{
	const struct graph *g = m->graph;
	size_t depth = 0;
	m->stack[depth++] = g->entry;
	m->colour[g->entry] = GREY;
	while (depth) {
		uint32_t block = m->stack[depth - 1];
		if (m->next[block] == g->blocks[block].count) {
			finish(m, block);
			depth--;
			continue;
		}
		uint32_t edge = g->blocks[block].first + m->next[block]++;
		uint32_t to = g->edges[edge].to;
		bool landing = g->edges[edge].kind == EDGE_LANDING;
		m->n->edges[edge].thrown = landing && numbering_leaves(g, block);
		if (landing || m->colour[to] == GREY || g->blocks[to].again ||
		    (m->cuts && m->cuts[edge]))
			cut(m, edge);
		if (m->colour[to] == WHITE) {
			m->colour[to] = GREY;
			m->stack[depth++] = to;
		}
	}
}

/* ---- values ---- */

static void add_arc(struct maker *m, struct arc arc)
{
	if (!ARRAY_ROOM(m->arcs, m->arc_count, m->arc_room)) {
		m->failed = true;
		return;
	}
	m->arcs[m->arc_count++] = arc;
}

static void value_block(struct maker *m, uint32_t block)
{
	struct numbering *n = m->n;
	const struct graph_block *b = &m->graph->blocks[block];
	int64_t value = 0;
	for (int cuts = 0; cuts < 2; cuts++)
		for (uint32_t i = b->first; i < b->first + b->count; i++) {
			struct numbering_edge *e = &n->edges[i];
			if (e->thrown || e->cut != cuts)
				continue;
			uint32_t to = cuts ? m->outside : m->graph->edges[i].to;
			add_arc(m,
				(struct arc){block, to, value, cuts ? -1 : m->weights[i], &e->add});
			value += (int64_t)ways_by(n, i);
		}
	if (numbering_leaves(m->graph, block))
		add_arc(m, (struct arc){block, m->outside, value, -1, &n->leave[block]});
}

static void value_all(struct maker *m)
{
	struct numbering *n = m->n;
	for (size_t i = 0; i < n->start_count; i++) {
		struct numbering_start *s = &n->starts[i];
		s->first = n->path_count;
		n->path_count += n->ways[s->block];
		add_arc(m, (struct arc){m->outside, s->block, (int64_t)s->first, -1, &s->set});
	}
	for (size_t i = 0; i < m->order_count; i++)
		value_block(m, m->order[i]);
}

/* ---- the tree ---- */

static int by_weight(const void *a, const void *b)
{
	const struct arc *x = a, *y = b;
	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	/* The order must not depend on the sort. */
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->value < y->value ? -1 : x->value > y->value;
}

static uint32_t root_of(uint32_t *parent, uint32_t node)
{
	while (parent[node] != node) {
		parent[node] = parent[parent[node]];
		node = parent[node];
	}
	return node;
}

/* Joins the ends of an arc. False: they are joined already. */
static bool join(struct maker *m, const struct arc *arc)
{
	uint32_t from = root_of(m->parent, arc->from), to = root_of(m->parent, arc->to);
	m->parent[from] = to;
	return from != to;
}

/* Moves the arcs of the tree to the front of `arcs`, and returns how many these are. */
static size_t choose_tree(struct maker *m)
{
	size_t count = 0;
	qsort(m->arcs, m->arc_count, sizeof *m->arcs, by_weight);
	for (uint32_t i = 0; i <= m->outside; i++)
		m->parent[i] = i;
	for (size_t i = 0; i < m->arc_count; i++)
		if (join(m, &m->arcs[i])) {
			struct arc swapped = m->arcs[count];
			m->arcs[count++] = m->arcs[i];
			m->arcs[i] = swapped;
		}
	return count;
}

/* Lists the first `count` arcs at both of their ends. */
static void index_tree(struct maker *m, size_t count)
{
	uint32_t *first = m->first_arc;
	for (size_t i = 0; i < count; i++) {
		first[m->arcs[i].from + 1]++;
		first[m->arcs[i].to + 1]++;
	}
	for (uint32_t i = 0; i <= m->outside; i++)
		first[i + 1] += first[i];
	for (size_t i = 0; i < count; i++) {
		m->tree[m->next[m->arcs[i].from] + first[m->arcs[i].from]] = (uint32_t)i;
		m->next[m->arcs[i].from]++;
		m->tree[m->next[m->arcs[i].to] + first[m->arcs[i].to]] = (uint32_t)i;
		m->next[m->arcs[i].to]++;
	}
}

/* Walks the tree from outside. behind[b]: what the values of the tree's arcs on the way add up to. */
static void walk_tree(struct maker *m)
{
	int64_t *behind = m->n->behind;
	size_t depth = 0;
	memset(m->colour, WHITE, m->outside + 1);
	m->stack[depth++] = m->outside;
	m->colour[m->outside] = BLACK;
	while (depth) {
		uint32_t at = m->stack[--depth];
		for (uint32_t k = m->first_arc[at]; k < m->first_arc[at + 1]; k++) {
			const struct arc *arc = &m->arcs[m->tree[k]];
			bool forward = arc->from == at;
			uint32_t to = forward ? arc->to : arc->from;
			if (m->colour[to] != WHITE)
				continue;
			m->colour[to] = BLACK;
			behind[to] = behind[at] + (forward ? arc->value : -arc->value);
			m->stack[depth++] = to;
		}
	}
}

static void place_additions(struct maker *m)
{
	struct numbering *n = m->n;
	memset(m->next, 0, (m->outside + 1) * sizeof *m->next);
	index_tree(m, choose_tree(m));
	walk_tree(m);
	for (size_t i = 0; i < m->arc_count; i++) {
		const struct arc *a = &m->arcs[i];
		*a->add = a->value + n->behind[a->from] - n->behind[a->to];
	}
	for (size_t i = 0; i < m->graph->edge_count; i++)
		if (n->edges[i].cut)
			n->edges[i].set = n->starts[m->start_of[m->graph->edges[i].to] - 1].set;
}

/* ---- all of it ---- */

static bool prepare(struct maker *m)
{
	struct numbering *n = m->n;
	size_t blocks = m->graph->block_count, edges = m->graph->edge_count;
	m->outside = (uint32_t)blocks;
	n->edges = calloc(edges + 1, sizeof *n->edges);
	n->leave = calloc(blocks + 1, sizeof *n->leave);
	n->ways = calloc(blocks + 1, sizeof *n->ways);
	n->behind = calloc(blocks + 1, sizeof *n->behind);
	m->colour = calloc(blocks + 1, sizeof *m->colour);
	m->order = calloc(blocks + 1, sizeof *m->order);
	m->stack = calloc(blocks + 1, sizeof *m->stack);
	m->next = calloc(blocks + 1, sizeof *m->next);
	m->start_of = calloc(blocks + 1, sizeof *m->start_of);
	m->parent = calloc(blocks + 1, sizeof *m->parent);
	m->first_arc = calloc(blocks + 2, sizeof *m->first_arc);
	m->tree = calloc(2 * (blocks + 1), sizeof *m->tree);
	return n->edges && n->leave && n->ways && n->behind && m->colour && m->order && m->stack &&
	       m->next && m->start_of && m->parent && m->first_arc && m->tree;
}

static void forget(struct maker *m)
{
	free(m->guessed);
	free(m->colour);
	free(m->order);
	free(m->stack);
	free(m->next);
	free(m->start_of);
	free(m->parent);
	free(m->first_arc);
	free(m->tree);
	free(m->arcs);
}

struct err *numbering_make(const struct numbering_input *input, struct numbering *out)
{
	struct maker m = {.n = out,
			  .graph = input->graph,
			  .weights = input->weights,
			  .cuts = input->cuts,
			  .most = input->most ? input->most : USUAL_MOST};
	*out = (struct numbering){.graph = input->graph};
	struct err *e = prepare(&m) ? know_weights(&m) : err_new("out of memory");
	if (!e) {
		add_start(&m, m.graph->entry);
		search(&m);
		value_all(&m);
		if (m.failed)
			e = err_new("out of memory");
	}
	if (!e)
		place_additions(&m);
	forget(&m);
	if (e)
		numbering_free(out);
	return e;
}

void numbering_free(struct numbering *numbering)
{
	free(numbering->edges);
	free(numbering->leave);
	free(numbering->starts);
	free(numbering->ways);
	free(numbering->behind);
	*numbering = (struct numbering){0};
}

/* ---- a numbering that was made before ---- */

/* Counts the ways on from all blocks of one start. The graph is foreign. */
static struct err *count_ways(struct maker *m, uint32_t start)
{
	const struct graph *g = m->graph;
	size_t depth = 0;
	if (m->colour[start] == BLACK)
		return NULL;
	m->stack[depth++] = start;
	m->colour[start] = GREY;
	while (depth) {
		uint32_t block = m->stack[depth - 1];
		if (m->next[block] == g->blocks[block].count) {
			m->n->ways[block] = ways_from(m->n, block);
			if (m->n->ways[block] > m->most)
				return err_new("too many paths");
			m->colour[block] = BLACK;
			depth--;
			continue;
		}
		uint32_t edge = g->blocks[block].first + m->next[block]++;
		uint32_t to = g->edges[edge].to;
		if (m->n->edges[edge].cut || m->colour[to] == BLACK)
			continue;
		if (m->colour[to] == GREY)
			return err_new("paths that go in a circle");
		m->colour[to] = GREY;
		m->stack[depth++] = to;
	}
	return NULL;
}

static struct err *restore(struct maker *m, const uint32_t *starts, size_t count)
{
	struct numbering *n = m->n;
	struct err *e = NULL;
	for (size_t i = 0; i < count && !e; i++) {
		e = m->start_of[starts[i]] ? err_new("a start twice") : count_ways(m, starts[i]);
		add_start(m, starts[i]);
		if (e || m->failed)
			return e ? e : err_new("out of memory");
		n->starts[i].first = n->path_count;
		n->path_count += n->ways[starts[i]];
		if (n->path_count > m->most)
			e = err_new("too many paths");
	}
	return e;
}

struct err *numbering_restore(const struct graph *graph, const bool *cuts, const uint32_t *starts,
			      size_t start_count, uint64_t most, struct numbering *out)
{
	size_t blocks = graph->block_count;
	struct maker m = {.n = out, .graph = graph, .most = most};
	*out = (struct numbering){.graph = graph,
				  .edges = calloc(graph->edge_count + 1, sizeof *out->edges),
				  .ways = calloc(blocks + 1, sizeof *out->ways)};
	m.colour = calloc(blocks + 1, sizeof *m.colour);
	m.stack = calloc(blocks + 1, sizeof *m.stack);
	m.next = calloc(blocks + 1, sizeof *m.next);
	m.start_of = calloc(blocks + 1, sizeof *m.start_of);
	bool good = out->edges && out->ways && m.colour && m.stack && m.next && m.start_of;
	for (size_t i = 0; i < graph->edge_count && good; i++) {
		const struct graph_edge *e = &graph->edges[i];
		out->edges[i].cut = cuts[i];
		out->edges[i].thrown = cuts[i] && e->kind == EDGE_LANDING &&
				       numbering_leaves(graph, e->from);
	}
	struct err *e = good ? restore(&m, starts, start_count) : err_new("out of memory");
	forget(&m);
	if (e)
		numbering_free(out);
	return e;
}

/* ---- decoding ---- */

/* The way on from a block for the path with the number `*rest` from there on. *rest becomes the number from the next
   block on. */
static uint32_t way_on(const struct numbering *n, uint32_t block, uint64_t *rest)
{
	const struct graph_block *b = &n->graph->blocks[block];
	for (int cuts = 0; cuts < 2; cuts++)
		for (uint32_t i = b->first; i < b->first + b->count; i++) {
			uint64_t ways = n->edges[i].cut == cuts ? ways_by(n, i) : 0;
			if (*rest < ways)
				return i;
			*rest -= ways;
		}
	return NUMBERING_OUT;
}

struct err *numbering_decode(const struct numbering *n, uint64_t number, struct numbering_path *out)
{
	out->count = 0;
	out->edge = NUMBERING_OUT;
	if (number >= n->path_count)
		return err_new("there is no path with the number %llu", (unsigned long long)number);
	size_t start = FIRST_NOT(i, n->start_count, n->starts[i].first <= number) - 1;
	uint64_t rest = number - n->starts[start].first;
	for (uint32_t block = n->starts[start].block;;) {
		if (!ARRAY_ROOM(out->blocks, out->count, out->room))
			return err_new("out of memory");
		out->blocks[out->count++] = block;
		out->edge = way_on(n, block, &rest);
		if (out->edge == NUMBERING_OUT || n->edges[out->edge].cut)
			return NULL;
		block = n->graph->edges[out->edge].to;
	}
}

struct err *numbering_decode_open(const struct numbering *n, uint32_t block, int64_t sum,
				  struct numbering_path *out)
{
	/* Of the paths that begin so, the one that goes on by the first ways has the smallest number. */
	int64_t number = block < n->graph->block_count ? sum + n->behind[block] : -1;
	struct err *e = number < 0 ? err_new("no path has this sum")
				   : numbering_decode(n, (uint64_t)number, out);
	if (e)
		return e;
	for (size_t i = 0; i < out->count; i++)
		if (out->blocks[i] == block) {
			out->count = i + 1;
			out->edge = NUMBERING_OUT;
			return NULL;
		}
	return err_new("no path has this sum");
}

void numbering_path_free(struct numbering_path *path)
{
	free(path->blocks);
	*path = (struct numbering_path){0};
}
