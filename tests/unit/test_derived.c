/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "analyze/derived.h"

#include <string.h>

#include "analyze/scopes.h"
#include "analyze/tree.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "profile/profile.h"

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

/* A profile with these metrics, and a tree of a root and one child. */
struct made {
	struct profile *p;
	struct scopes *scopes;
	struct tree *t;
	uint32_t child;
};

static struct made make(const struct profile_metric *metrics, size_t count)
{
	struct made m;
	uint32_t index;
	good(profile_new(&m.p));
	for (size_t i = 0; i < count; i++)
		good(profile_add_metric(m.p, &metrics[i], &index));
	good(scopes_new(&m.scopes));
	good(tree_new(m.scopes, count, &m.t));
	good(scopes_add(m.scopes, &(struct scope){.kind = SCOPE_FUNCTION, .name = "f"}, &index));
	good(tree_child(m.t, 0, index, &m.child));
	return m;
}

static void drop(struct made *m)
{
	tree_free(m->t);
	scopes_free(m->scopes);
	profile_free(m->p);
}

static void set(struct made *m, uint32_t node, uint32_t metric, uint64_t self, uint64_t total)
{
	m->t->self[node * m->t->metric_count + metric] = self;
	m->t->total[node * m->t->metric_count + metric] = total;
}

static const struct profile_metric transfers[] = {
	{.name = "io", .unit = "calls", .period = 1},
	{.name = "io.bytes", .unit = "bytes", .period = 1},
	{.name = "io.calls", .unit = "calls", .period = 1},
	{.name = "io.ns", .unit = "ns", .period = 1},
};

static void test_needs_both_metrics(void **state)
{
	struct made m = make(transfers, 4), without = make(transfers, 2);
	struct derived all[DERIVED_MAX], one;
	(void)state;
	assert_int_equal(derived_find(m.p, all), 2);
	assert_string_equal(all[0].name, "io.size");
	assert_string_equal(all[1].name, "io.time");
	assert_int_equal(derived_find(without.p, all), 0);
	assert_true(derived_choose(m.p, NULL, 3, &one));
	assert_string_equal(one.name, "io.time");
	assert_false(derived_choose(m.p, NULL, 0, &one));
	assert_true(derived_choose(m.p, "io.size", 0, &one));
	assert_int_equal(one.beside, 1);
	assert_false(derived_choose(m.p, "ipc", 0, &one));
	assert_true(derived_is_known("ipc"));
	assert_false(derived_is_known("io.bytes"));
	drop(&m);
	drop(&without);
}

static void test_values(void **state)
{
	struct made m = make(transfers, 4);
	struct derived size;
	double value;
	(void)state;
	assert_true(derived_choose(m.p, "io.size", 0, &size));
	set(&m, 0, 1, 0, 1200);
	set(&m, 0, 2, 0, 100);
	set(&m, m.child, 1, 30, 90);
	set(&m, m.child, 2, 10, 15);
	assert_true(derived_value(&size, m.p, m.t, 0, false, &value));
	assert_true(value == 12);
	assert_false(derived_value(&size, m.p, m.t, 0, true, &value));
	assert_true(derived_value(&size, m.p, m.t, m.child, true, &value));
	assert_true(value == 3);
	assert_true(derived_value(&size, m.p, m.t, m.child, false, &value));
	assert_true(value == 6);
	drop(&m);
}

/* Samples stand for periods, which need not be equal; and ":u" does not matter. */
static void test_periods(void **state)
{
	static const struct profile_metric counters[] = {
		{.name = "cycles:u", .unit = "cycles", .period = 1000},
		{.name = "instructions:u", .unit = "instructions", .period = 3000},
	};
	struct made m = make(counters, 2);
	struct derived ipc;
	struct buf text = {0};
	double value;
	(void)state;
	assert_true(derived_choose(m.p, NULL, 0, &ipc));
	assert_string_equal(ipc.name, "ipc");
	set(&m, 0, 0, 0, 100);
	set(&m, 0, 1, 0, 50);
	assert_true(derived_value(&ipc, m.p, m.t, 0, false, &value));
	assert_true(value == 1.5);
	derived_print(&ipc, value, &text);
	assert_string_equal(buf_text(&text), "1.50");
	buf_free(&text);
	drop(&m);
}

/* The time in a function and all that it calls, by the calls of the function alone. */
static void test_time_of_calls(void **state)
{
	static const struct profile_metric both[] = {
		{.name = "cpu-clock", .unit = "ns", .period = 1000000},
		{.name = "calls", .unit = "calls", .period = 1},
	};
	struct made m = make(both, 2);
	struct derived time;
	struct buf text = {0};
	double value;
	(void)state;
	assert_true(derived_choose(m.p, "calls.time", 0, &time));
	set(&m, m.child, 0, 1, 20);
	set(&m, m.child, 1, 10, 5000);
	assert_true(derived_value(&time, m.p, m.t, m.child, true, &value));
	assert_true(value == 2000000);
	derived_print(&time, value, &text);
	assert_string_equal(buf_text(&text), "2.00 ms");
	buf_free(&text);
	drop(&m);
}

static void test_json(void **state)
{
	struct made m = make(transfers, 4);
	struct derived all[DERIVED_MAX];
	struct buf text = {0};
	struct json j = json_to_buf(&text);
	(void)state;
	size_t count = derived_find(m.p, all);
	set(&m, 0, 1, 0, 30);
	set(&m, 0, 2, 0, 4);
	json_begin_object(&j);
	derived_json_values(all, count, m.p, m.t, 0, &j);
	json_end_object(&j);
	assert_string_equal(buf_text(&text), "{\"derived\":[7.5,0]}");
	buf_clear(&text);
	j = json_to_buf(&text);
	json_begin_object(&j);
	derived_json_values(all, count, m.p, m.t, m.child, &j);
	json_end_object(&j);
	assert_string_equal(buf_text(&text), "{\"derived\":[null,null]}");
	buf_free(&text);
	drop(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_needs_both_metrics),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_periods),
		cmocka_unit_test(test_time_of_calls),
		cmocka_unit_test(test_json),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
