/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "recipes/rows.h"

static uint32_t rule_number(struct rows *rows, int n)
{
	struct recipe recipe = {.cfa = RECIPE_REG, .cfa_reg = 7, .cfa_offset = n};
	return rows_rule(rows, &recipe);
}

static void expect(const struct rows *rows, size_t i, uint64_t address, uint32_t rule)
{
	assert_true(i < rows->count);
	assert_int_equal(rows->rows[i].address, address);
	assert_int_equal(rows->rows[i].rule, rule);
}

static void rules_are_stored_once(void **state)
{
	struct rows rows;
	(void)state;
	rows_init(&rows);
	assert_int_equal(rows.rule_count, 1);
	assert_int_equal(rows.rules[0].cfa, RECIPE_NONE);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 5000; i++)
			assert_int_equal(rule_number(&rows, i), i + 1);
	assert_int_equal(rows.rule_count, 5001);
	assert_int_equal(rows.rules[42].cfa_offset, 41);
	rows_free(&rows);
}

static void gaps_get_none(void **state)
{
	struct rows rows;
	uint32_t a, b;
	(void)state;
	rows_init(&rows);
	a = rule_number(&rows, 1);
	b = rule_number(&rows, 2);
	rows_add(&rows, 100, 110, a);
	rows_add(&rows, 110, 120, b);
	rows_add(&rows, 120, 125, b);
	rows_add(&rows, 130, 140, a);
	rows_finish(&rows);
	assert_int_equal(rows.count, 5);
	expect(&rows, 0, 100, a);
	expect(&rows, 1, 110, b);
	expect(&rows, 2, 125, 0);
	expect(&rows, 3, 130, a);
	expect(&rows, 4, 140, 0);
	assert_int_equal(rows_find(&rows, 99), 0);
	assert_int_equal(rows_find(&rows, 100), a);
	assert_int_equal(rows_find(&rows, 124), b);
	assert_int_equal(rows_find(&rows, 125), 0);
	assert_int_equal(rows_find(&rows, 139), a);
	assert_int_equal(rows_find(&rows, UINT64_MAX), 0);
	rows_free(&rows);
}

static void any_order_and_joined(void **state)
{
	struct rows rows;
	uint32_t a;
	(void)state;
	rows_init(&rows);
	a = rule_number(&rows, 1);
	rows_add(&rows, 300, 400, a);
	rows_add(&rows, 100, 200, a);
	rows_add(&rows, 200, 300, a);
	rows_finish(&rows);
	assert_int_equal(rows.count, 2);
	expect(&rows, 0, 100, a);
	expect(&rows, 1, 400, 0);
	rows_free(&rows);
}

static void first_added_wins(void **state)
{
	struct rows rows;
	uint32_t a, b, c;
	(void)state;
	rows_init(&rows);
	a = rule_number(&rows, 1);
	b = rule_number(&rows, 2);
	c = rule_number(&rows, 3);
	rows_add(&rows, 150, 160, a);
	rows_add(&rows, 100, 200, b);
	rows_add(&rows, 90, 155, c);
	rows_add(&rows, 100, 300, c);
	rows_finish(&rows);
	assert_int_equal(rows.count, 6);
	expect(&rows, 0, 90, c);
	expect(&rows, 1, 100, b);
	expect(&rows, 2, 150, a);
	expect(&rows, 3, 160, b);
	expect(&rows, 4, 200, c);
	expect(&rows, 5, 300, 0);
	rows_free(&rows);
}

static void finishing_twice_changes_nothing(void **state)
{
	struct rows rows;
	uint32_t a, b;
	(void)state;
	rows_init(&rows);
	a = rule_number(&rows, 1);
	b = rule_number(&rows, 2);
	rows_finish(&rows);
	assert_int_equal(rows.count, 0);
	rows_add(&rows, 10, 20, a);
	rows_add(&rows, 40, 50, a);
	rows_finish(&rows);
	rows_finish(&rows);
	assert_int_equal(rows.count, 4);
	rows_add(&rows, 0, 100, b); /* fills what is left */
	rows_finish(&rows);
	assert_int_equal(rows.count, 6);
	expect(&rows, 0, 0, b);
	expect(&rows, 1, 10, a);
	expect(&rows, 2, 20, b);
	expect(&rows, 3, 40, a);
	expect(&rows, 4, 50, b);
	expect(&rows, 5, 100, 0);
	rows_free(&rows);
}

static void nonsense_is_ignored(void **state)
{
	struct rows rows;
	uint32_t a;
	(void)state;
	rows_init(&rows);
	a = rule_number(&rows, 1);
	rows_add(&rows, 10, 10, a);
	rows_add(&rows, 20, 10, a);
	rows_add(&rows, 10, 20, 0);
	rows_add(&rows, 10, 20, 77);
	assert_int_equal(rows.count, 0);
	rows_add(&rows, 0, UINT64_MAX, a);
	rows_finish(&rows);
	assert_int_equal(rows_find(&rows, 0), a);
	assert_int_equal(rows_find(&rows, UINT64_MAX - 1), a);
	rows_free(&rows);
}

static void failure_makes_all_harmless(void **state)
{
	struct rows rows;
	(void)state;
	rows_init(&rows);
	rows.failed = 1;
	assert_int_equal(rule_number(&rows, 1), 0);
	rows_add(&rows, 1, 2, 1);
	rows_finish(&rows);
	assert_int_equal(rows.count, 0);
	assert_int_equal(rows_find(&rows, 1), 0);
	rows_free(&rows);
}

/* Every address of a small space, against the definition. */
static void random_intervals_follow_the_definition(void **state)
{
	enum { SPACE = 400, INTERVALS = 60 };
	uint32_t seed = 1;
	(void)state;
	for (int round = 0; round < 200; round++) {
		uint32_t expected[SPACE + 1] = {0};
		struct rows rows;
		rows_init(&rows);
		for (int i = 0; i < INTERVALS; i++) {
			uint32_t start, end, rule;
			seed = seed * 1664525 + 1013904223;
			start = (seed >> 8) % SPACE;
			end = start + 1 + (seed >> 20) % 30;
			end = end > SPACE ? SPACE : end;
			rule = rule_number(&rows, (int)(seed >> 28));
			rows_add(&rows, start, end, rule);
			for (uint32_t at = start; at < end; at++)
				expected[at] = expected[at] ? expected[at] : rule;
		}
		rows_finish(&rows);
		for (uint32_t at = 0; at <= SPACE; at++)
			assert_int_equal(rows_find(&rows, at), expected[at]);
		for (size_t i = 1; i < rows.count; i++) {
			assert_true(rows.rows[i - 1].address < rows.rows[i].address);
			assert_int_not_equal(rows.rows[i - 1].rule, rows.rows[i].rule);
		}
		rows_free(&rows);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_are_stored_once),
		cmocka_unit_test(gaps_get_none),
		cmocka_unit_test(any_order_and_joined),
		cmocka_unit_test(first_added_wins),
		cmocka_unit_test(finishing_twice_changes_nothing),
		cmocka_unit_test(nonsense_is_ignored),
		cmocka_unit_test(failure_makes_all_harmless),
		cmocka_unit_test(random_intervals_follow_the_definition),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
