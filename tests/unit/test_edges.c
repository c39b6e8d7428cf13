/* SPDX-License-Identifier: Apache-2.0 */
/* Edges that were seen: in the profile, in its file, and as explain weighs them. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "explain/frequency.h"
#include "explain/seen.h"
#include "flow/graph.h"
#include "profile/profile.h"

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

static struct profile *new_profile(const char *first, const char *second)
{
	struct profile *p;
	uint32_t index;
	good(profile_new(&p));
	for (int i = 0; i < 2; i++)
		good(profile_add_module(p,
					&(struct profile_module){.kind = PROFILE_FILE,
								 .path = i ? second : first,
								 .build_id = "",
								 .problem = ""},
					&index));
	p->complete = true;
	return p;
}

static void add(struct profile *p, uint32_t begin_module, uint64_t begin, uint32_t module,
		uint64_t from, uint64_t to, uint64_t count)
{
	good(profile_edge(p, &(struct profile_edge){.begin_module = begin_module,
						    .begin = begin,
						    .module = module,
						    .from = from,
						    .to = to,
						    .count = count}));
}

static void check(const struct profile_edge *e, uint32_t begin_module, uint64_t begin,
		  uint32_t module, uint64_t from, uint64_t to, uint64_t count)
{
	assert_int_equal(e->begin_module, begin_module);
	assert_true(e->begin == begin && e->from == from && e->to == to);
	assert_int_equal(e->module, module);
	assert_int_equal(e->count, count);
}

static void equal_ones_add_up(void **state)
{
	struct profile *p = new_profile("/a", "/b");
	(void)state;
	add(p, 2, 0x50, 2, 0x60, 0x70, 1);
	add(p, 1, 0x10, 1, 0x20, 0x30, 2);
	add(p, 1, 0x10, 0, 0, 0, 5);
	add(p, 1, 0x10, 1, 0x20, 0x30, 3);
	add(p, 1, 0x10, 1, 0x20, 0x08, 0); /* nothing */
	good(profile_settle(p));
	assert_int_equal(p->edge_count, 3);
	check(&p->edges[0], 1, 0x10, 0, 0, 0, 5);
	check(&p->edges[1], 1, 0x10, 1, 0x20, 0x30, 5);
	check(&p->edges[2], 2, 0x50, 2, 0x60, 0x70, 1);
	struct err *e = profile_edge(p, &(struct profile_edge){.begin_module = 3, .count = 1});
	assert_non_null(e);
	err_free(e);
	profile_free(p);
}

static void the_file_has_them(void **state)
{
	struct profile *p = new_profile("/a", "/b"), *q, *other = new_profile("/b", "/c");
	struct buf bytes = {0};
	char *damage = NULL;
	(void)state;
	for (uint64_t i = 0; i < 40000; i++) /* several sections */
		add(p, 1 + i % 2, 0xffff000000 + i * 4, 2, UINT64_MAX - i, i, 1 + i % 7);
	good(profile_pack(p, &bytes));
	good(profile_parse(bytes.data, bytes.size, &q, &damage));
	assert_null(damage);
	assert_int_equal(q->edge_count, p->edge_count);
	for (size_t i = 0; i < p->edge_count; i++)
		check(&q->edges[i], p->edges[i].begin_module, p->edges[i].begin, p->edges[i].module,
		      p->edges[i].from, p->edges[i].to, p->edges[i].count);
	/* Modules of the other one have other numbers. */
	add(other, 1, 0x10, 2, 0x20, 0x30, 4);
	good(profile_merge(q, other));
	good(profile_settle(q));
	assert_int_equal(q->edge_count, p->edge_count + 1);
	bool found = false;
	for (size_t i = 0; i < q->edge_count; i++)
		if (q->edges[i].begin == 0x10) {
			check(&q->edges[i], 2, 0x10, 3, 0x20, 0x30, 4);
			found = true;
		}
	assert_true(found);
	buf_free(&bytes);
	profile_free(p);
	profile_free(q);
	profile_free(other);
}

/* Two blocks: one waits long, and half of the trails that begin there go one way. Trails that begin at the other one, which
   ran as often but is rarely met, all go the other way. */
static void trails_count_by_executions(void **state)
{
	struct profile *p = new_profile("/a", "/b");
	struct graph_block blocks[] = {{.start = 0x10, .end = 0x20, .last = 0x1c},
				       {.start = 0x20, .end = 0x30, .last = 0x2c}};
	struct graph graph = {.blocks = blocks, .block_count = 2};
	struct frequency_insn insns[] = {{0x10, 9000, 0}, {0x20, 1000, 0}};
	struct frequency runs[] = {{.executions = 100}, {.executions = 100}};
	struct frequency_result result = {.blocks = runs, .block_count = 2};
	struct frequency_observation *list;
	struct seen *seen;
	size_t count;
	(void)state;
	add(p, 1, 0x10, 0, 0, 0, 900);
	add(p, 1, 0x10, 1, 0x1c, 0x10, 900);
	add(p, 1, 0x20, 0, 0, 0, 100);
	add(p, 1, 0x20, 1, 0x1c, 0x20, 100);
	good(profile_settle(p));
	good(seen_open(p, &seen));
	assert_non_null(seen);
	good(seen_list(seen, 1, &graph, &list, &count));
	assert_int_equal(count, 2);
	assert_true(list[0].count == 900 && list[1].count == 100);
	free(list);
	seen_weigh(seen, 1, &graph, insns, 2, &result);
	seen_settle(seen);
	good(seen_list(seen, 1, &graph, &list, &count));
	assert_int_equal(count, 2);
	double part = list[1].count / (list[0].count + list[1].count);
	assert_true(part > 0.47 && part < 0.53);
	/* They tell less than as many that count alike. */
	assert_true(list[1].squares > list[1].count);
	free(list);
	good(seen_list(seen, 2, &graph, &list, &count));
	assert_int_equal(count, 0);
	free(list);
	seen_close(seen);
	profile_free(p);
	p = new_profile("/a", "/b");
	good(seen_open(p, &seen));
	assert_null(seen);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_ones_add_up),
		cmocka_unit_test(the_file_has_them),
		cmocka_unit_test(trails_count_by_executions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
