/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "flow/branches.h"

static void test_finds_who_leads_there(void **state)
{
	struct branches b = {.base = 0x1000};
	uint64_t from[4];
	(void)state;
	assert_false(branches_any(&b, 0x2000));
	assert_true(branches_add(&b, 0x1800, 0x2000));
	assert_true(branches_add(&b, 0x1400, 0x2000));
	assert_true(branches_add(&b, 0x1400, 0x2000)); /* followed once more */
	assert_true(branches_add(&b, 0x1500, 0x2001));
	assert_true(branches_any(&b, 0x2000));
	assert_int_equal(branches_to(&b, 0x2000, from, 4), 2);
	assert_int_equal(from[0], 0x1400);
	assert_int_equal(from[1], 0x1800);
	assert_int_equal(branches_to(&b, 0x2000, from, 1), 1);
	assert_int_equal(branches_to(&b, 0x2002, from, 4), 0);
	branches_free(&b);
	assert_false(branches_any(&b, 0x2000));
}

static void test_leaves_out_what_is_out_of_reach(void **state)
{
	struct branches b = {.base = 0x1000};
	uint64_t from[1];
	(void)state;
	assert_true(branches_add(&b, 0x1800, 0x800));
	assert_true(branches_add(&b, 0x1800, UINT64_C(0x100002000)));
	assert_false(branches_any(&b, 0x800));
	assert_int_equal(branches_to(&b, UINT64_C(0x100002000), from, 1), 0);
	assert_int_equal(branches_to(&b, 0x1ff0, from, 1), 0);
	branches_free(&b);
}

static void test_keeps_many(void **state)
{
	struct branches b = {0};
	uint64_t from[2];
	(void)state;
	for (uint64_t i = 0; i < 10000; i++)
		assert_true(branches_add(&b, 2 * i, 7 * i));
	for (uint64_t i = 0; i < 10000; i++) {
		assert_int_equal(branches_to(&b, 7 * i, from, 2), 1);
		assert_int_equal(from[0], 2 * i);
		assert_false(branches_any(&b, 7 * i + 1));
	}
	branches_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finds_who_leads_there),
		cmocka_unit_test(test_leaves_out_what_is_out_of_reach),
		cmocka_unit_test(test_keeps_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
