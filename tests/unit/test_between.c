/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "profile/between.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "profile/profile.h"

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

/* Modules and threads in an order that is told, as two snapshots may have them in different ones. */
static struct profile *new_profile(const char *const modules[2], const int threads[2])
{
	struct profile *p;
	uint32_t index;
	good(profile_new(&p));
	good(profile_add_metric(
		p, &(struct profile_metric){.name = "cpu-clock", .unit = "ns", .period = 1},
		&index));
	good(profile_add_process(
		p,
		&(struct profile_process){.pid = 10, .name = "app", .command = "app", .rank = -1},
		&index));
	for (int i = 0; i < 2; i++) {
		good(profile_add_module(p,
					&(struct profile_module){.kind = PROFILE_FILE,
								 .path = modules[i],
								 .build_id = "",
								 .problem = ""},
					&index));
		good(profile_add_thread(
			p, &(struct profile_thread){.process = 0, .tid = threads[i], .name = "t"},
			&index));
	}
	return p;
}

/* Counts samples of a path of two frames in the same module. */
static void count(struct profile *p, uint32_t thread, uint32_t module, uint64_t outer,
		  uint64_t inner, uint64_t samples)
{
	uint32_t node;
	good(profile_child(p, 0, PROFILE_CALL, module, outer, &node));
	good(profile_child(p, node, PROFILE_EXACT, module, inner, &node));
	good(profile_count(p, node, thread, 0, samples));
}

static uint64_t samples_at(const struct profile *p, const struct profile_value *values,
			   size_t value_count, int tid, const char *path, uint64_t inner)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < value_count; i++) {
		const struct profile_node *n = &p->nodes[values[i].node];
		assert_true(!i || values[i - 1].node <= values[i].node);
		if (p->threads[values[i].thread].tid == tid && n->address == inner &&
		    !strcmp(p->modules[n->module].path, path))
			sum += values[i].count;
	}
	return sum;
}

static void test_same_places(void **state)
{
	const char *const modules[] = {"a", "b"};
	const int threads[] = {10, 11};
	struct profile *before = new_profile(modules, threads),
		       *now = new_profile(modules, threads);
	struct profile_value *values;
	size_t value_count;
	(void)state;
	count(before, 0, 1, 1, 2, 5);
	count(now, 0, 1, 1, 2, 8);
	count(now, 1, 2, 1, 3, 4);
	good(profile_settle(before));
	good(profile_settle(now));
	good(between_values(before, now, &values, &value_count));
	assert_int_equal(value_count, 2);
	assert_int_equal(samples_at(now, values, value_count, 10, "a", 2), 3);
	assert_int_equal(samples_at(now, values, value_count, 11, "b", 3), 4);
	free(values);
	good(between_values(now, now, &values, &value_count));
	assert_int_equal(value_count, 0);
	free(values);
	profile_free(before);
	profile_free(now);
}

static void test_other_places(void **state)
{
	const char *const modules[] = {"a", "b"}, *const turned[] = {"b", "a"};
	const int threads[] = {10, 11}, others[] = {11, 10};
	struct profile *before = new_profile(modules, threads), *now = new_profile(turned, others);
	struct profile_value *values;
	size_t value_count;
	uint32_t *to;
	(void)state;
	count(before, 0, 1, 1, 2, 5);
	count(before, 0, 1, 1, 3, 5);
	count(before, 1, 2, 1, 2, 7);
	/* The same three, more of some, in another order; one is new. */
	count(now, 0, 1, 9, 9, 1);
	count(now, 0, 1, 1, 2, 10);
	count(now, 1, 2, 1, 3, 5);
	count(now, 1, 2, 1, 2, 6);
	good(profile_settle(before));
	good(profile_settle(now));
	good(between_values(before, now, &values, &value_count));
	assert_int_equal(value_count, 3);
	assert_int_equal(samples_at(now, values, value_count, 11, "b", 9), 1);
	assert_int_equal(samples_at(now, values, value_count, 11, "b", 2), 3);
	assert_int_equal(samples_at(now, values, value_count, 10, "a", 2), 1);
	free(values);
	to = between_modules(before, now);
	assert_int_equal(to[0], 0);
	assert_int_equal(to[1], 2);
	assert_int_equal(to[2], 1);
	free(to);
	to = between_threads(before, now);
	assert_int_equal(to[0], 1);
	free(to);
	profile_free(before);
	profile_free(now);
}

/* What is gone, or has become less, is nothing. */
static void test_strangers(void **state)
{
	const char *const modules[] = {"a", "b"}, *const strange[] = {"x", "b"};
	const int threads[] = {10, 11}, others[] = {12, 11};
	struct profile *before = new_profile(modules, threads), *now = new_profile(strange, others);
	struct profile_value *values;
	size_t value_count;
	uint32_t *to;
	(void)state;
	count(before, 0, 1, 1, 2, 5);
	count(before, 1, 2, 1, 2, 5);
	count(now, 1, 2, 1, 2, 4);
	count(now, 0, 1, 1, 2, 6);
	good(profile_settle(before));
	good(profile_settle(now));
	good(between_values(before, now, &values, &value_count));
	assert_int_equal(value_count, 1);
	assert_int_equal(samples_at(now, values, value_count, 12, "x", 2), 6);
	free(values);
	to = between_modules(before, now);
	assert_int_equal(to[1], BETWEEN_NONE);
	free(to);
	profile_free(before);
	profile_free(now);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_places),
		cmocka_unit_test(test_other_places),
		cmocka_unit_test(test_strangers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
