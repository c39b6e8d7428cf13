/* SPDX-License-Identifier: Apache-2.0 */
/* Probes: histograms of times, sums, names of functions, and which functions can be seen to end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "collect/kernel/bpf/shared.h"
#include "flow/graph.h"
#include "harvest/probes.h"
#include "probe/names.h"
#include "probe/sites.h"

/* The sampler and the collector have the same buckets; each begins where the one before ends. */
static void buckets_follow_each_other(void **state)
{
	(void)state;
	for (uint32_t i = 0; i + 1 < PROBE_TIMES; i++) {
		uint64_t start = probes_bucket_start(i), next = probes_bucket_start(i + 1);
		assert_true(next > start);
		assert_int_equal(probes_bucket(start), i);
		assert_int_equal(probes_bucket(next - 1), i);
		assert_int_equal(kernel_time_bucket(start), i);
		assert_int_equal(kernel_time_bucket(next - 1), i);
		assert_true(i < 8 || (double)(next - start) <= (double)start / 8 + 1);
	}
	assert_int_equal(probes_bucket(UINT64_MAX), PROBE_TIMES - 1);
	assert_int_equal(kernel_time_bucket(UINT64_MAX), PROBE_TIMES - 1);
}

static void add_times(struct probes *p, uint32_t node, uint64_t from, uint64_t to)
{
	for (uint64_t ns = from; ns <= to; ns++) {
		struct probe_sums one = {
			.calls = 1, .returned = 1, .ns = ns, .least = ns, .most = ns};
		one.times[probes_bucket(ns)] = 1;
		assert_null(probes_add(p, 0, node, &one));
	}
}

static void near(uint64_t is, uint64_t should)
{
	assert_true(is >= should - should / 16 - 1 && is <= should + should / 16 + 1);
}

static void quantiles_are_near(void **state)
{
	struct probe_function function = {.sums.least = UINT64_MAX};
	struct probes p = {.functions = &function, .count = 1};
	(void)state;
	assert_int_equal(probes_quantile(&function.sums, 0.5), 0);
	add_times(&p, 3, 1, 1000);
	add_times(&p, 5000, 1001, 10000);
	near(probes_quantile(&function.sums, 0.5), 5000);
	near(probes_quantile(&function.sums, 0.9), 9000);
	near(probes_quantile(&function.sums, 0.99), 9900);
	assert_int_equal(function.sums.least, 1);
	assert_int_equal(function.sums.most, 10000);
	assert_int_equal(function.sums.ns, 10000ull * 10001 / 2);
	assert_int_equal(p.path_count, 2);
	assert_int_equal(p.paths[0].sums.calls, 1000);
	assert_int_equal(p.paths[1].sums.calls, 9000);
	near(probes_quantile(&p.paths[0].sums, 0.5), 500);
	p.functions = NULL;
	p.count = 0;
	probes_free(&p);
}

static void calls_add_up(void **state)
{
	struct probe_function function = {.sums.least = UINT64_MAX};
	struct probes p = {.functions = &function, .count = 1};
	const struct probe_sums begun = {.calls = 5, .least = UINT64_MAX};
	const struct probe_sums wrong = {
		.returned = 1, .abandoned = 2, .ns = 7, .most = 7, .least = 7};
	/* One that was thought to be abandoned has returned after all. */
	const struct probe_sums right = {
		.returned = 1, .abandoned = -1ull, .unwound = 1, .ns = 9, .most = 9, .least = 9};
	(void)state;
	assert_null(probes_add(&p, 0, 0, &begun));
	assert_int_equal(probes_active(&function.sums), 5);
	assert_null(probes_add(&p, 0, 0, &wrong));
	assert_int_equal(probes_active(&function.sums), 2);
	assert_null(probes_add(&p, 0, 0, &right));
	assert_int_equal(function.sums.returned, 2);
	assert_int_equal(function.sums.abandoned, 1);
	assert_int_equal(probes_active(&function.sums), 1);
	assert_int_equal(p.path_count, 0);
	struct err *e = probes_add(&p, 1, 0, &begun);
	assert_non_null(e);
	err_free(e);
}

static void add_slow(struct probes *p, uint64_t ns)
{
	probes_keep_slow(p, 0, &(struct probe_slow){.ns = ns, .begun = ns + 1});
}

/* What a look adds is gone afterwards. */
static void slowest_calls_are_sorted(void **state)
{
	struct probe_function function = {0};
	struct probes p = {.functions = &function, .count = 1, .slowest = 3};
	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		add_slow(&p, i * 37 % 100);
	assert_int_equal(function.slow_count, 3);
	assert_null(probes_lend(&p));
	add_slow(&p, 98);
	add_slow(&p, 1000);
	assert_int_equal(function.slowest[0].ns, 1000);
	assert_int_equal(function.slowest[1].ns, 99);
	assert_int_equal(function.slowest[2].ns, 98);
	assert_int_equal(function.slow_count, 3);
	probes_return(&p);
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(function.slowest[i].ns, 99 - i);
		assert_int_equal(function.slowest[i].begun, 100 - i);
	}
	p.slowest = 0;
	add_slow(&p, 5000);
	assert_int_equal(function.slowest[0].ns, 99);
	free(function.slowest);
	p.functions = NULL;
	p.count = 0;
	probes_free(&p);
}

static void looks_take_nothing(void **state)
{
	struct probe_function function = {0};
	struct probes p = {.functions = &function, .count = 1, .slowest = 3};
	(void)state;
	assert_null(probes_lend(&p));
	add_slow(&p, 7);
	assert_null(probes_lend(&p)); /* the next look */
	assert_int_equal(function.slow_count, 0);
	add_slow(&p, 7);
	assert_int_equal(function.slow_count, 1);
	probes_return(&p);
	assert_int_equal(function.slow_count, 0);
	free(function.slowest);
	p.functions = NULL;
	p.count = 0;
	probes_free(&p);
}

static void judged(struct probes *p, uint64_t one, uint64_t two, uint32_t wanted)
{
	p->functions[0].load_ns += one;
	p->functions[1].load_ns += two;
	assert_int_equal(probes_judge(p, 1000), wanted);
}

static void the_dearest_is_dropped(void **state)
{
	struct probe_function functions[2] = {0};
	struct probes p = {.functions = functions, .count = 2};
	(void)state;
	judged(&p, 900, 900, 0); /* no limit */
	p.budget = 0.05;
	judged(&p, 20, 30, 0);
	assert_true(p.share > 0.049 && p.share < 0.051);
	judged(&p, 20, 31, 2);
	assert_int_equal(functions[1].state, PROBE_COUNTING);
	assert_true(functions[1].dropped && probes_are_timed(&functions[1]));
	assert_string_equal(functions[1].reason,
			    "probes took 5 % of the program's time, and the budget is 5 %");
	assert_int_equal(functions[0].state, PROBE_ON);
	judged(&p, 4, 100, 0); /* nearly all is for counting */
	judged(&p, 0, 100, 0);
	functions[0].removed = true;
	judged(&p, 90, 0, 0);
	functions[0].removed = false;
	assert_int_equal(probes_judge(&p, UINT64_MAX), 0);
	judged(&p, 51, 0, 1);
	judged(&p, 500, 500, 0);
	free(functions[0].reason);
	free(functions[1].reason);
}

static void names_fit(void **state)
{
	(void)state;
	assert_int_equal(name_matches("work", "work"), NAME_WHOLE);
	assert_int_equal(name_matches("work", "wor"), NAME_NONE);
	assert_int_equal(name_matches("_ZN4shop4findEi", "_ZN4shop4findEi"), NAME_WHOLE);
	assert_int_equal(name_matches("_ZN4shop4findEi", "shop::find(int)"), NAME_WHOLE);
	assert_int_equal(name_matches("_ZN4shop4findEi", "shop::find"), NAME_SHORT);
	assert_int_equal(name_matches("_ZN4shop4findEi", "find"), NAME_TAIL);
	assert_int_equal(name_matches("_ZN4shop4findEi", "op::find"), NAME_NONE);
	assert_int_equal(name_matches("_ZN4shop4findEi", "shop::*"), NAME_WHOLE);
	assert_int_equal(name_matches("parse_line", "parse_*"), NAME_WHOLE);
	assert_int_equal(name_matches("do_parse_line", "parse_*"), NAME_NONE);
	assert_true(name_is_pattern("a*"));
	assert_false(name_is_pattern("vector::operator[]"));
}

static void ends_are_known_or_not(void **state)
{
	struct graph_block blocks[] = {
		{.start = 0x10,
		 .end = 0x20,
		 .last = 0x1c,
		 .count = 2,
		 .ends = GRAPH_BRANCHES,
		 .reached = true},
		{.start = 0x20, .end = 0x30, .last = 0x2c, .ends = GRAPH_RETURNS, .reached = true},
		{.start = 0x30,
		 .end = 0x40,
		 .last = 0x3c,
		 .ends = GRAPH_TAIL_CALLS,
		 .reached = true}};
	struct graph_edge edges[] = {{0, 1, EDGE_FALL}, {0, 2, EDGE_JUMP}};
	struct graph g = {.blocks = blocks, .block_count = 3, .edges = edges, .edge_count = 2};
	(void)state;
	assert_null(probe_judge(&g, 0x10));
	assert_non_null(probe_judge(&g, 0x14));
	g.unresolved = 1;
	assert_non_null(strstr(probe_judge(&g, 0x10), "not known"));
	g.unresolved = 0;
	blocks[0].count = 1; /* the other way leads out of the function */
	assert_non_null(strstr(probe_judge(&g, 0x10), "conditional"));
	blocks[0].count = 2;
	blocks[2].ends = GRAPH_BAD;
	assert_non_null(strstr(probe_judge(&g, 0x10), "cannot be read"));
	blocks[2].reached = false;
	assert_null(probe_judge(&g, 0x10));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets_follow_each_other),
		cmocka_unit_test(quantiles_are_near),
		cmocka_unit_test(calls_add_up),
		cmocka_unit_test(slowest_calls_are_sorted),
		cmocka_unit_test(looks_take_nothing),
		cmocka_unit_test(the_dearest_is_dropped),
		cmocka_unit_test(names_fit),
		cmocka_unit_test(ends_are_known_or_not),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
