/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of edges from counts of paths: those of a walk, and they add up. If a count is wrong, that is found. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "made_graph.h"
#include "path_walker.h"
#include "paths/flow_check.h"
#include "paths/result.h"

#define BLOCKS_MAX 40u

static uint64_t state;

static uint32_t by_chance(uint32_t below)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(state >> 33) % below;
}

/* `throws`: with exceptions, and calls that never return. */
static struct graph graph_by_chance(bool throws)
{
	struct pair pairs[BLOCKS_MAX * 4];
	size_t blocks = 2 + by_chance(BLOCKS_MAX - 2), count = 0;
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
	for (size_t i = 0; i < g.edge_count && throws; i++)
		if (!by_chance(8) && g.edges[i].to != g.edges[i].from + 1)
			g.edges[i].kind = EDGE_LANDING;
	for (size_t i = 0; i < blocks && throws; i++)
		if (!by_chance(8))
			g.blocks[i].ends = GRAPH_STOPS;
	return g;
}

static void check_counts(const struct walker *w, const struct flow_counts *c)
{
	const struct graph *g = &w->f->graph;
	assert_memory_equal(c->edges, w->edges, g->edge_count * sizeof *w->edges);
	assert_memory_equal(c->blocks, w->blocks, g->block_count * sizeof *w->blocks);
	assert_memory_equal(c->leaves, w->leaves, g->block_count * sizeof *w->leaves);
	assert_int_equal(c->ended, w->ended);
	assert_int_equal(c->left, w->left);
	assert_int_equal(c->open, w->entries > w->left ? w->entries - w->left : 0);
}

/* Calls that end, that throw, and that somebody else's exception or exit leaves. */
static void test_walks_add_up(void **unused)
{
	static const uint64_t mosts[] = {1, 2, 7, 100, 0};
	(void)unused;
	for (unsigned round = 0; round < 3000; round++) {
		state = round;
		struct path_function f = walker_function("f", graph_by_chance(round % 3),
							 mosts[round % 5]);
		struct walker w = walker_open(&f, round);
		struct flow_counts c;
		for (unsigned k = 0; k < 30; k++) {
			struct walk walk = walker_call(&w);
			walker_go(&w, &walk, by_chance(4) ? 400 : by_chance(20));
		}
		assert_null(flow_check(&f, 0, &c));
		assert_int_equal(c.problem_count, 0);
		check_counts(&w, &c);
		flow_counts_free(&c);
		walker_close(&w);
		path_function_free(&f);
	}
}

/* Both processes end the call that one began. */
static void test_forks(void **unused)
{
	(void)unused;
	for (unsigned round = 0; round < 500; round++) {
		state = round;
		struct path_function f = walker_function("f", graph_by_chance(false), 7);
		struct walker w = walker_open(&f, round);
		struct flow_counts c;
		uint64_t forks = 0;
		for (unsigned k = 0; k < 10; k++) {
			struct walk walk = walker_call(&w);
			if (!walker_go(&w, &walk, by_chance(10)))
				continue;
			struct walk child = walk;
			forks++;
			walker_go(&w, &walk, 400);
			walker_go(&w, &child, 400);
		}
		assert_null(flow_check(&f, forks, &c));
		assert_int_equal(c.problem_count, 0);
		flow_counts_free(&c);
		walker_close(&w);
		path_function_free(&f);
	}
}

/* Twice the sum of a path that is cut was lost: the path after it begins nowhere. */
static void test_unknown_paths(void **unused)
{
	(void)unused;
	const struct pair pairs[] = {{0, 1}, {1, 2}, {1, 3}, {2, 1}};
	struct path_function f = walker_function("f", graph_make(4, pairs, 4, 16), 0);
	struct walker w = walker_open(&f, 5);
	struct numbering_path path = {0};
	struct flow_counts c;
	for (unsigned k = 0; k < 50; k++) {
		struct walk walk = walker_call(&w);
		assert_false(walker_go(&w, &walk, 400));
	}
	for (uint64_t i = 0; i < f.numbering.path_count; i++) {
		assert_null(numbering_decode(&f.numbering, i, &path));
		if (path.blocks[0] == 0 && path.edge != NUMBERING_OUT) {
			assert_true(f.counts[i] > 2);
			f.counts[i] -= 2;
		}
	}
	f.unknown = 2;
	assert_null(flow_check(&f, 0, &c));
	assert_int_equal(c.problem_count, 0);
	flow_counts_free(&c);
	f.unknown = 1;
	assert_null(flow_check(&f, 0, &c));
	assert_int_equal(c.problem_count, 1);
	assert_int_equal(c.problems[0].law, FLOW_STARTS);
	assert_int_equal(c.problems[0].block, 1);
	flow_counts_free(&c);
	numbering_path_free(&path);
	walker_close(&w);
	path_function_free(&f);
}

/* ---- what is wrong is found ---- */

/* Calls that all came to their end, of a loop with a branch in a loop. */
static struct path_function nest(struct walker *w)
{
	const struct pair pairs[] = {{0, 1}, {1, 2}, {2, 3}, {2, 4}, {3, 5},
				     {4, 5}, {5, 2}, {5, 6}, {6, 1}, {6, 7}};
	struct path_function f = walker_function("nest", graph_make(8, pairs, 10, 16), 0);
	*w = walker_open(&f, 9);
	for (unsigned k = 0; k < 200; k++) {
		struct walk walk = walker_call(w);
		while (walker_step(w, &walk))
			;
	}
	return f;
}

static bool is_found(struct path_function *f)
{
	struct flow_counts c;
	f->numbering.graph = &f->graph;
	assert_null(flow_check(f, 0, &c));
	bool found = c.problem_count;
	for (size_t i = 0; i < c.problem_count; i++) {
		struct buf text = {0};
		assert_true(c.problems[i].ended > c.problems[i].begun);
		flow_problem_print(f, &c.problems[i], &text);
		assert_non_null(strstr(buf_text(&text), " have ended, but only "));
		buf_free(&text);
	}
	/* Without a problem, a call is missed. */
	found |= c.open > 0;
	flow_counts_free(&c);
	return found;
}

static void test_wrong_entries(void **unused)
{
	(void)unused;
	struct walker w;
	struct path_function f = nest(&w);
	assert_false(is_found(&f));
	f.entries--;
	assert_true(is_found(&f));
	f.entries += 2;
	assert_true(is_found(&f));
	walker_close(&w);
	path_function_free(&f);
}

/* One more or less of each path: only a round of a loop leaves no trace elsewhere. */
static void test_wrong_paths(void **unused)
{
	(void)unused;
	struct walker w;
	struct path_function f = nest(&w);
	struct numbering_path path = {0};
	unsigned tried = 0;
	f.numbering.graph = &f.graph;
	for (uint64_t i = 0; i < f.numbering.path_count; i++) {
		assert_null(numbering_decode(&f.numbering, i, &path));
		bool round = path.edge != NUMBERING_OUT &&
			     f.graph.edges[path.edge].to == path.blocks[0];
		f.counts[i]++;
		assert_int_equal(is_found(&f), !round);
		f.counts[i]--;
		if (!f.counts[i])
			continue;
		f.counts[i]--;
		assert_int_equal(is_found(&f), !round);
		f.counts[i]++;
		tried++;
	}
	assert_true(tried > 8);
	assert_false(is_found(&f));
	numbering_path_free(&path);
	walker_close(&w);
	path_function_free(&f);
}

/* Counts that were counted for another path, of another start. */
static void test_swapped_paths(void **unused)
{
	(void)unused;
	struct walker w;
	struct path_function f = nest(&w);
	unsigned tried = 0;
	f.numbering.graph = &f.graph;
	for (size_t s = 1; s < f.numbering.start_count; s++) {
		uint64_t x = f.numbering.starts[0].first, y = f.numbering.starts[s].first;
		uint64_t end = f.numbering.starts[1].first;
		while (x < end && !f.counts[x])
			x++;
		if (x == end || f.counts[x] == f.counts[y])
			continue;
		uint64_t kept = f.counts[x];
		f.counts[x] = f.counts[y];
		f.counts[y] = kept;
		assert_true(is_found(&f));
		f.counts[y] = f.counts[x];
		f.counts[x] = kept;
		tried++;
	}
	assert_true(tried);
	walker_close(&w);
	path_function_free(&f);
}

/* ---- results ---- */

static void test_join(void **unused)
{
	(void)unused;
	struct path_result r = {0};
	struct walker w;
	uint64_t sum = 0;
	for (unsigned i = 0; i < 20; i++) {
		struct path_function f = nest(&w);
		f.address = i % 5;
		sum += f.entries;
		walker_close(&w);
		assert_null(path_result_add(&r, &f));
		assert_null(f.counts);
	}
	struct path_function refused = {.name = strdup("nest"),
					.module = strdup("/nowhere/app"),
					.address = 3,
					.state = PATH_REFUSED,
					.reason = "unresolved jump"};
	assert_null(path_result_add(&r, &refused));
	path_result_join(&r);
	assert_int_equal(r.count, 6);
	for (size_t i = 0; i < r.count; i++) {
		struct flow_counts c;
		assert_ptr_equal(r.functions[i].numbering.graph, &r.functions[i].graph);
		if (r.functions[i].state == PATH_REFUSED)
			continue;
		assert_int_equal(r.functions[i].entries, 800);
		sum -= r.functions[i].entries;
		assert_null(flow_check(&r.functions[i], 0, &c));
		assert_int_equal(c.problem_count, 0);
		assert_int_equal(c.open, 0);
		flow_counts_free(&c);
	}
	assert_int_equal(sum, 0);
	path_result_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walks_add_up),  cmocka_unit_test(test_forks),
		cmocka_unit_test(test_unknown_paths), cmocka_unit_test(test_wrong_entries),
		cmocka_unit_test(test_wrong_paths),   cmocka_unit_test(test_swapped_paths),
		cmocka_unit_test(test_join),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
