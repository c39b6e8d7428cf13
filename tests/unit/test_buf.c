/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/buf.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void starts_empty(void **state)
{
	struct buf b = {0};
	(void)state;
	assert_string_equal(buf_text(&b), "");
	assert_null(buf_take(&b));
	buf_append(&b, NULL, 0);
	assert_int_equal(b.size, 0);
	assert_string_equal(buf_text(&b), "");
	buf_free(&b);
}

static void grows_and_stays_terminated(void **state)
{
	struct buf b = {0};
	size_t i;
	(void)state;
	for (i = 0; i < 10000; i++) {
		buf_puts(&b, "ab");
		assert_int_equal(b.data[b.size], 0);
	}
	assert_int_equal(b.size, 20000);
	assert_int_equal(strlen(buf_text(&b)), 20000);
	assert_int_equal(b.data[19999], 'b');
	assert_false(b.failed);
	buf_free(&b);
	assert_int_equal(b.size, 0);
}

static void prints_of_any_length(void **state)
{
	struct buf b = {0};
	(void)state;
	buf_printf(&b, "%d %s", 7, "seven");
	assert_string_equal(buf_text(&b), "7 seven");
	buf_printf(&b, "%500d", 1);
	assert_int_equal(b.size, 507);
	assert_int_equal(b.data[506], '1');
	buf_free(&b);
}

static void holds_any_bytes(void **state)
{
	struct buf b = {0};
	(void)state;
	buf_append(&b, "a\0b", 3);
	buf_append(&b, "\0", 1);
	assert_int_equal(b.size, 4);
	assert_memory_equal(b.data, "a\0b\0", 5);
	buf_free(&b);
}

static void hands_over(void **state)
{
	struct buf b = {0};
	char *text;
	(void)state;
	buf_puts(&b, "mine");
	text = buf_take(&b);
	assert_string_equal(text, "mine");
	assert_null(b.data);
	buf_puts(&b, "next");
	assert_string_equal(buf_text(&b), "next");
	free(text);
	buf_clear(&b);
	assert_string_equal(buf_text(&b), "");
	assert_true(b.capacity > 0);
	buf_free(&b);
}

static void failure_sticks(void **state)
{
	struct buf b = {0};
	(void)state;
	buf_puts(&b, "kept");
	assert_false(buf_reserve(&b, SIZE_MAX));
	assert_false(buf_reserve(&b, SIZE_MAX - 4));
	assert_true(b.failed);
	buf_puts(&b, "!");
	assert_string_equal(buf_text(&b), "kept!");
	assert_true(b.failed);
	assert_null(buf_take(&b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts_empty),
		cmocka_unit_test(grows_and_stays_terminated),
		cmocka_unit_test(prints_of_any_length),
		cmocka_unit_test(holds_any_bytes),
		cmocka_unit_test(hands_over),
		cmocka_unit_test(failure_sticks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
