/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of paths: whatever the graph, the sum that the code makes on a walk is the number of the path walked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "made_graph.h"
#include "paths/numbering.h"

#define BLOCKS_MAX 64u
#define NUMBERS_TRIED 3000u

static uint64_t state;

static uint32_t by_chance(uint32_t below)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(state >> 33) % below;
}

/* A walk as the code makes it: the sum, and what was really walked since the start of the path. */
struct walk {
	const struct numbering *n;
	int64_t sum;
	uint32_t blocks[BLOCKS_MAX];
	size_t count;
	struct numbering_path path;
};

static void start_path(struct walk *w, uint32_t block, int64_t set)
{
	w->sum = set;
	w->count = 0;
	w->blocks[w->count++] = block;
}

static void compare(struct walk *w, uint32_t edge)
{
	assert_int_equal(w->path.count, w->count);
	assert_memory_equal(w->path.blocks, w->blocks, w->count * sizeof *w->blocks);
	assert_int_equal(w->path.edge, edge);
}

static void end_path(struct walk *w, int64_t add, uint32_t edge)
{
	int64_t number = w->sum + add;
	assert_true(number >= 0 && (uint64_t)number < w->n->path_count);
	assert_null(numbering_decode(w->n, (uint64_t)number, &w->path));
	compare(w, edge);
}

static void walk_edge(struct walk *w, uint32_t edge)
{
	const struct numbering_edge *e = &w->n->edges[edge];
	uint32_t to = w->n->graph->edges[edge].to;
	if (!e->cut) {
		w->sum += e->add;
		assert_true(w->count < BLOCKS_MAX); /* else a block has come twice */
		w->blocks[w->count++] = to;
		return;
	}
	if (!e->thrown)
		end_path(w, e->add, edge);
	start_path(w, to, e->set);
}

/* Walks by chance, from the entry to an exit or so many steps. */
static void walk_by_chance(struct walk *w, unsigned steps)
{
	const struct graph *g = w->n->graph;
	uint32_t at = g->entry;
	start_path(w, at, w->n->starts[0].set);
	while (steps--) {
		const struct graph_block *b = &g->blocks[at];
		bool leaves = numbering_leaves(g, at);
		assert_null(numbering_decode_open(w->n, at, w->sum, &w->path));
		compare(w, NUMBERING_OUT);
		uint32_t way = by_chance(b->count + leaves);
		if (way == b->count) {
			end_path(w, w->n->leave[at], NUMBERING_OUT);
			return;
		}
		walk_edge(w, b->first + way);
		at = g->edges[b->first + way].to;
	}
}

/* Walks a path as it was told, and returns the sum that the code counts. */
static int64_t encode(const struct numbering *n, const struct numbering_path *p)
{
	const struct graph *g = n->graph;
	size_t start = 0;
	while (n->starts[start].block != p->blocks[0])
		start++;
	int64_t sum = n->starts[start].set;
	for (size_t i = 0; i + 1 < p->count; i++) {
		const struct graph_block *b = &g->blocks[p->blocks[i]];
		uint32_t edge = b->first;
		while (edge < b->first + b->count && g->edges[edge].to != p->blocks[i + 1])
			edge++;
		assert_true(edge < b->first + b->count && !n->edges[edge].cut);
		sum += n->edges[edge].add;
	}
	return sum + (p->edge == NUMBERING_OUT ? n->leave[p->blocks[p->count - 1]]
					       : n->edges[p->edge].add);
}

static void check_numbers(const struct numbering *n)
{
	struct numbering_path path = {0};
	uint64_t step = n->path_count / NUMBERS_TRIED + 1;
	for (uint64_t number = 0; number < n->path_count; number += step) {
		assert_null(numbering_decode(n, number, &path));
		assert_int_equal(encode(n, &path), number);
	}
	struct err *e = numbering_decode(n, n->path_count, &path);
	assert_non_null(e);
	err_free(e);
	numbering_path_free(&path);
}

static uint32_t group_of(const uint32_t *group, uint32_t block)
{
	while (group[block] != block)
		block = group[block];
	return block;
}

/* No more edges add than those that close a circle among the edges that are not cut. */
static void check_additions(const struct numbering *n)
{
	uint32_t group[BLOCKS_MAX];
	size_t closing = 0, adding = 0;
	for (uint32_t i = 0; i < n->graph->block_count; i++)
		group[i] = i;
	for (size_t i = 0; i < n->graph->edge_count; i++) {
		const struct graph_edge *e = &n->graph->edges[i];
		if (n->edges[i].cut || !n->ways[e->from])
			continue;
		uint32_t from = group_of(group, e->from), to = group_of(group, e->to);
		closing += from == to;
		adding += n->edges[i].add != 0;
		group[from] = to;
	}
	assert_true(adding <= closing);
}

static struct graph graph_by_chance(void)
{
	struct pair pairs[BLOCKS_MAX * 4];
	size_t blocks = 1 + by_chance(BLOCKS_MAX - 1), count = 0;
	unsigned back = by_chance(4), fan = 1 + by_chance(3);
	for (uint32_t i = 0; i + 1 < blocks; i++) {
		pairs[count++] = (struct pair){i, i + 1};
		for (unsigned k = by_chance(fan + 1); k; k--) {
			uint32_t to = by_chance(4) < back ? by_chance((uint32_t)blocks)
							  : i + by_chance((uint32_t)blocks - i);
			pairs[count++] = (struct pair){i, to};
		}
	}
	struct graph g = graph_make(blocks, pairs, count, 16);
	for (size_t i = 0; i < g.edge_count; i++)
		if (!by_chance(12))
			g.edges[i].kind = EDGE_LANDING;
	for (size_t i = 0; i < blocks; i++)
		if (!by_chance(10))
			g.blocks[i].ends = GRAPH_STOPS;
	return g;
}

/* Irreducible graphs, loops without an end, exceptions, switches; with and without weights; few and many paths. */
static void test_by_chance(void **unused)
{
	static const uint64_t mosts[] = {1, 2, 7, 100, 0};
	(void)unused;
	for (unsigned round = 0; round < 4000; round++) {
		state = round;
		struct graph g = graph_by_chance();
		double *weights = calloc(g.edge_count + 1, sizeof *weights);
		for (size_t i = 0; i < g.edge_count; i++)
			weights[i] = by_chance(1000);
		struct numbering n;
		struct numbering_input input = {.graph = &g,
						.weights = round % 2 ? weights : NULL,
						.most = mosts[round % 5]};
		assert_null(numbering_make(&input, &n));
		check_numbers(&n);
		check_additions(&n);
		struct walk w = {.n = &n};
		for (unsigned k = 0; k < 20; k++)
			walk_by_chance(&w, 300);
		numbering_path_free(&w.path);
		numbering_free(&n);
		free(weights);
		graph_free(&g);
	}
}

/* A row of so many diamonds, the last of which goes back to the first. */
static struct graph diamonds(size_t count, bool back)
{
	struct pair *pairs = calloc(count * 4 + 2, sizeof *pairs);
	size_t n = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = 3 * i;
		pairs[n++] = (struct pair){at, at + 1};
		pairs[n++] = (struct pair){at, at + 2};
		pairs[n++] = (struct pair){at + 1, at + 3};
		pairs[n++] = (struct pair){at + 2, at + 3};
	}
	if (back) {
		pairs[n++] = (struct pair){3 * (uint32_t)count, 0};
		pairs[n++] = (struct pair){3 * (uint32_t)count, 3 * (uint32_t)count + 1};
	}
	struct graph g = graph_make(3 * count + 1 + back, pairs, n, 16);
	free(pairs);
	return g;
}

/* As many paths as there are, and no addition on the hot way around a loop. */
static void test_hot_way_is_free(void **unused)
{
	(void)unused;
	struct graph g = diamonds(4, true);
	double weights[64] = {0};
	for (size_t i = 0; i < g.edge_count; i++) /* the second side of each diamond is rare */
		weights[i] = g.edges[i].from % 3 == 2 || g.edges[i].to % 3 == 2 ? 1 : 100;
	struct numbering n;
	assert_null(numbering_make(&(struct numbering_input){.graph = &g, .weights = weights}, &n));
	assert_int_equal(n.path_count, 32); /* 16 ways through, and then back or out */
	assert_int_equal(n.start_count, 1);
	unsigned additions = 0;
	for (size_t i = 0; i < g.edge_count; i++)
		if (!n.edges[i].cut && n.edges[i].add) {
			assert_true(weights[i] < 100);
			additions++;
		}
	assert_int_equal(additions, 4); /* one in each diamond */
	check_numbers(&n);
	numbering_free(&n);
	graph_free(&g);
}

/* 2^20000 paths: cut into few, without recursion and in a moment. */
static void test_many_paths(void **unused)
{
	(void)unused;
	struct graph g = diamonds(20000, true);
	struct numbering n;
	assert_null(numbering_make(&(struct numbering_input){.graph = &g, .most = 4096}, &n));
	for (size_t i = 0; i < g.block_count; i++)
		assert_in_range(n.ways[i], 1, 4096);
	assert_true(n.cut_count > 0);
	assert_true(n.path_count <= 4096 * n.start_count);
	check_numbers(&n);
	numbering_free(&n);
	graph_free(&g);
}

/* A switch with more cases than paths are allowed: each case is a path of its own. */
static void test_large_switch(void **unused)
{
	enum { CASES = 1000 };
	struct pair pairs[2 * CASES];
	size_t n_pairs = 0;
	(void)unused;
	for (uint32_t i = 1; i <= CASES; i++) {
		pairs[n_pairs++] = (struct pair){0, i};
		pairs[n_pairs++] = (struct pair){i, 0};
	}
	struct graph g = graph_make(CASES + 1, pairs, n_pairs, 16);
	struct numbering n;
	assert_null(numbering_make(&(struct numbering_input){.graph = &g, .most = 10}, &n));
	assert_int_equal(n.ways[0], CASES);
	check_numbers(&n);
	numbering_free(&n);
	graph_free(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_chance),
		cmocka_unit_test(test_hot_way_is_free),
		cmocka_unit_test(test_many_paths),
		cmocka_unit_test(test_large_switch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
