/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "flow/graph.h"
#include "flow/loops.h"
#include "made_graph.h"

#define MOST 12 /* blocks of a random graph */

static struct graph make(size_t blocks, const struct pair *pairs, size_t count)
{
	return graph_make(blocks, pairs, count, 16);
}

static struct loops find(const struct graph *g)
{
	struct loops l;
	struct err *e = loops_find(g, &l);
	assert_null(e);
	return l;
}

static const struct loop *loop_of(const struct loops *l, uint32_t header)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->loops[i].header == header)
			return &l->loops[i];
	return NULL;
}

static void test_nest(void **state)
{
	(void)state;
	/* 1 { 2 { 3 } 4 { 4 } } */
	static const struct pair pairs[] = {{0, 1}, {1, 2}, {2, 3}, {3, 2}, {3, 4},
					    {4, 4}, {4, 5}, {5, 1}, {5, 6}};
	struct graph g = make(7, pairs, 9);
	struct loops l = find(&g);
	assert_int_equal(l.count, 3);
	assert_int_equal(l.loops[0].header, 1);
	assert_int_equal(l.loops[0].depth, 1);
	assert_int_equal(l.loops[0].parent, LOOP_NONE);
	assert_int_equal(l.loops[0].block_count, 5);
	assert_int_equal(l.loops[0].back_from, 5);
	assert_int_equal(l.loops[0].back_at, 5 * 16 + 12);
	assert_int_equal(l.loops[1].header, 2);
	assert_int_equal(l.loops[1].parent, 0);
	assert_int_equal(l.loops[1].depth, 2);
	assert_int_equal(l.loops[2].header, 4);
	assert_int_equal(l.loops[2].block_count, 1);
	assert_int_equal(l.innermost[0], LOOP_NONE);
	assert_int_equal(l.innermost[3], 1);
	assert_int_equal(l.innermost[5], 0);
	assert_int_equal(l.innermost[6], LOOP_NONE);
	for (size_t i = 0; i < l.count; i++)
		assert_false(l.loops[i].irreducible);
	loops_free(&l);
	graph_free(&g);
}

static void test_irreducible(void **state)
{
	(void)state;
	static const struct pair pairs[] = {{0, 1}, {0, 2}, {1, 2}, {2, 1}, {2, 3}};
	struct graph g = make(4, pairs, 5);
	struct loops l = find(&g);
	assert_int_equal(l.count, 1);
	assert_true(l.loops[0].irreducible);
	assert_int_equal(l.loops[0].block_count, 2);
	assert_int_equal(l.innermost[1], 0);
	assert_int_equal(l.innermost[2], 0);
	loops_free(&l);
	graph_free(&g);
}

/* An ordinary loop (2, 3) whose exit (4) may go back, and may be come to without it: that is no
   part of the loop. */
static void test_error_branch(void **state)
{
	(void)state;
	static const struct pair pairs[] = {{0, 1}, {1, 2}, {1, 4}, {2, 3},
					    {3, 2}, {3, 4}, {4, 2}, {3, 5}};
	struct graph g = make(6, pairs, 8);
	struct loops l = find(&g);
	assert_int_equal(l.count, 1);
	assert_int_equal(l.loops[0].header, 2);
	assert_false(l.loops[0].irreducible);
	assert_int_equal(l.loops[0].block_count, 2);
	assert_int_equal(l.innermost[4], LOOP_NONE);
	loops_free(&l);
	graph_free(&g);
}

/* Loops of code that nothing reaches are found; its jumps say nothing about the rest. */
static void test_unreached(void **state)
{
	(void)state;
	static const struct pair pairs[] = {{0, 1}, {1, 2}, {2, 1}, {3, 4}, {4, 3}, {4, 2}};
	struct graph g = make(5, pairs, 6);
	struct loops l = find(&g);
	assert_int_equal(l.count, 2);
	assert_false(loop_of(&l, 1)->irreducible);
	assert_int_equal(loop_of(&l, 3)->block_count, 2);
	loops_free(&l);
	graph_free(&g);
}

static void test_nothing(void **state)
{
	(void)state;
	struct graph g = {.entry = GRAPH_NONE};
	struct loops l = find(&g);
	uint32_t *idom;
	assert_int_equal(l.count, 0);
	loops_free(&l);
	assert_null(dominators_find(&g, &idom));
	free(idom);
}

/* What the entry reaches without `without`, as bits. */
static uint32_t reach(const struct graph *g, uint32_t from, uint32_t without)
{
	uint32_t seen = from == without ? 0 : 1u << from, before;
	do {
		before = seen;
		for (size_t i = 0; i < g->edge_count; i++)
			if (seen >> g->edges[i].from & 1 && g->edges[i].to != without)
				seen |= 1u << g->edges[i].to;
	} while (seen != before);
	return seen;
}

static bool dominates(const struct graph *g, uint32_t x, uint32_t y)
{
	return x == y || !(reach(g, 0, x) >> y & 1);
}

static void check_dominators(const struct graph *g)
{
	uint32_t all = reach(g, 0, GRAPH_NONE), *idom;
	assert_null(dominators_find(g, &idom));
	for (uint32_t v = 0; v < g->block_count; v++) {
		uint32_t d = idom[v];
		if (v == 0 || !(all >> v & 1)) {
			assert_int_equal(d, GRAPH_NONE);
			continue;
		}
		assert_true(d != v && dominates(g, d, v));
		for (uint32_t x = 0; x < g->block_count; x++)
			if (x != v && (all >> x & 1) && dominates(g, x, v))
				assert_true(dominates(g, x, d));
	}
	free(idom);
}

/* The blocks that come to `h` again over a block that it dominates, and not through it before. */
static uint32_t natural_loop(const struct graph *g, uint32_t all, uint32_t h)
{
	uint32_t body = 0;
	for (size_t i = 0; i < g->edge_count; i++) {
		uint32_t latch = g->edges[i].from;
		if (g->edges[i].to != h || !(all >> latch & 1) || !dominates(g, h, latch))
			continue;
		body |= 1u << h;
		for (uint32_t v = 0; v < g->block_count; v++)
			if ((all >> v & 1) && v != h && (reach(g, v, h) >> latch & 1))
				body |= 1u << v;
	}
	return body;
}

static uint32_t members(const struct loops *l, size_t blocks, uint32_t loop)
{
	uint32_t found = 0;
	for (uint32_t v = 0; v < blocks; v++)
		for (uint32_t at = l->innermost[v]; at != LOOP_NONE; at = l->loops[at].parent)
			if (at == loop)
				found |= 1u << v;
	return found;
}

static void check_loop(const struct graph *g, const struct loops *l, uint32_t i, uint32_t all)
{
	const struct loop *x = &l->loops[i];
	uint32_t body = members(l, g->block_count, i), last = 0;
	bool entered = false;
	assert_true(body >> x->header & 1);
	assert_int_equal(x->block_count, __builtin_popcount(body));
	assert_true(x->parent == LOOP_NONE || x->parent < i);
	assert_false(x->irreducible && x->parent != LOOP_NONE && l->loops[x->parent].irreducible);
	assert_int_equal(x->depth, x->parent == LOOP_NONE ? 1 : l->loops[x->parent].depth + 1);
	for (size_t k = 0; k < g->edge_count; k++) {
		struct graph_edge e = g->edges[k];
		bool from_in = body >> e.from & 1, to_in = body >> e.to & 1;
		entered |= (all >> e.from & 1) && !from_in && to_in && e.to != x->header;
		if (from_in && e.to == x->header)
			last = e.from;
	}
	if (all >> x->header & 1) {
		assert_int_equal(x->irreducible, entered);
		assert_int_equal(x->back_from, last);
	}
}

static void check_loops(const struct graph *g)
{
	uint32_t all = reach(g, 0, GRAPH_NONE), headers = 0;
	struct loops l = find(g);
	for (uint32_t i = 0; i < l.count; i++) {
		check_loop(g, &l, i, all);
		headers |= 1u << l.loops[i].header;
	}
	for (uint32_t v = 0; v < g->block_count; v++) {
		uint32_t body = all >> v & 1 ? natural_loop(g, all, v) : 0;
		const struct loop *x = loop_of(&l, v);
		if (body) {
			assert_non_null(x);
			assert_int_equal(members(&l, g->block_count, (uint32_t)(x - l.loops)),
					 body);
		} else if (x && (all >> v & 1)) {
			assert_true(x->irreducible);
		}
	}
	/* Every cycle has a header, or is in an irreducible loop. */
	struct graph rest = {.blocks = g->blocks, .block_count = g->block_count};
	rest.edges = calloc(g->edge_count + 1, sizeof *rest.edges);
	for (size_t i = 0; i < g->edge_count; i++)
		if (!(headers >> g->edges[i].to & 1))
			rest.edges[rest.edge_count++] = g->edges[i];
	for (size_t i = 0; i < rest.edge_count; i++) {
		uint32_t in = l.innermost[rest.edges[i].to];
		if (reach(&rest, rest.edges[i].to, GRAPH_NONE) >> rest.edges[i].from & 1)
			assert_true(in != LOOP_NONE && l.loops[in].irreducible);
	}
	free(rest.edges);
	loops_free(&l);
}

static void test_random(void **state)
{
	(void)state;
	uint32_t seed = 1;
	for (unsigned round = 0; round < 6000; round++) {
		struct pair pairs[MOST * 3];
		seed = seed * 1664525 + 1013904223;
		uint32_t blocks = 2 + (seed >> 16) % (MOST - 1),
			 count = blocks + (seed >> 8) % blocks;
		for (uint32_t i = 0; i < count; i++) {
			seed = seed * 1664525 + 1013904223;
			pairs[i].from = (seed >> 10) % blocks;
			pairs[i].to = (seed >> 20) % blocks;
		}
		struct graph g = make(blocks, pairs, count);
		check_dominators(&g);
		check_loops(&g);
		graph_free(&g);
	}
}

/* Deep nests and long chains take neither stack nor time: each would need hours if it were
   quadratic. */
static void test_large(void **state)
{
	(void)state;
	enum { N = 300000 };
	struct pair *pairs = calloc(3 * N, sizeof *pairs);
	uint32_t *idom;
	/* Nested loops i..2N-i, then a ladder, each rung of which is an irreducible loop. */
	for (unsigned shape = 0; shape < 2; shape++) {
		size_t count = 0;
		for (uint32_t i = 0; i + 1 < N; i++) {
			pairs[count++] = (struct pair){i, i + 1};
			if (shape == 0 && i < N / 2)
				pairs[count++] = (struct pair){N - 1 - i, i + 1};
			if (shape == 1 && i + 2 < N)
				pairs[count++] = (struct pair){i, i + 2};
			if (shape == 1 && i > 1)
				pairs[count++] = (struct pair){i, i - 1};
		}
		struct graph g = make(N, pairs, count);
		struct loops l = find(&g);
		assert_int_equal(l.count, shape ? 1 : N / 2);
		assert_null(dominators_find(&g, &idom));
		assert_int_equal(idom[1], 0);
		free(idom);
		loops_free(&l);
		graph_free(&g);
	}
	free(pairs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nest),         cmocka_unit_test(test_irreducible),
		cmocka_unit_test(test_error_branch), cmocka_unit_test(test_unreached),
		cmocka_unit_test(test_nothing),      cmocka_unit_test(test_random),
		cmocka_unit_test(test_large),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
