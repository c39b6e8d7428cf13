/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of as many bytes as they need, arrays that grow, and searches in sorted ones. */
#include "unit.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/leb.h"

#include <stdlib.h>
#include <string.h>

static bool take(const void *bytes, size_t size, uint64_t *out, size_t *used)
{
	const uint8_t *at = bytes;
	bool good = leb_take(&at, at + size, out);
	*used = (size_t)(at - (const uint8_t *)bytes);
	return good;
}

static void numbers_come_back(void **state)
{
	static const uint64_t numbers[] = {
		0, 1, 127, 128, 300, 1u << 31, UINT64_C(1) << 63, UINT64_MAX - 1, UINT64_MAX};
	struct buf b = {0};
	uint64_t value;
	size_t used;
	(void)state;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		buf_clear(&b);
		leb_put(&b, numbers[i]);
		assert_true(take(b.data, b.size, &value, &used));
		assert_true(value == numbers[i]);
		assert_int_equal(used, b.size);
		assert_true(b.size <= LEB_BYTES);
		for (size_t cut = 0; cut < b.size; cut++) /* it does not end */
			assert_false(take(b.data, cut, &value, &used));
	}
	buf_free(&b);
}

static void signs_come_back(void **state)
{
	static const int64_t numbers[] = {0,   1,    -1,        63,        64,        -64,
					  -65, 8191, INT64_MAX, INT64_MIN, -INT64_MAX};
	struct buf b = {0};
	(void)state;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		int64_t value;
		buf_clear(&b);
		leb_put_signed(&b, numbers[i]);
		const uint8_t *at = (const uint8_t *)b.data, *end = at + b.size;
		assert_true(leb_take_signed(&at, end, &value));
		assert_true(value == numbers[i]);
		assert_ptr_equal(at, end);
		at = (const uint8_t *)b.data;
		assert_false(leb_take_signed(&at, end - 1, &value));
		assert_true(unzigzag(zigzag(numbers[i])) == numbers[i]);
	}
	assert_int_equal(zigzag(-1), 1);
	assert_int_equal(zigzag(1), 2);
	buf_free(&b);
}

static void padding_adds_nothing(void **state)
{
	static const uint8_t padded[] = {0x85, 0x80, 0x80, 0x00};
	static const uint8_t minus_one[] = {0xff, 0xff, 0x7f};
	static const uint8_t large[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
	uint8_t endless[64];
	const uint8_t *at = minus_one;
	uint64_t value;
	int64_t small;
	size_t used;
	(void)state;
	memset(endless, 0x80, sizeof endless);
	assert_true(take(padded, sizeof padded, &value, &used));
	assert_int_equal(value, 5);
	assert_int_equal(used, sizeof padded);
	assert_true(leb_take_signed(&at, at + sizeof minus_one, &small));
	assert_int_equal(small, -1);
	assert_false(take(large, sizeof large, &value, &used)); /* of 65 bits */
	at = large;
	assert_true(leb_take_low(&at, at + sizeof large, &value));
	assert_true(value == INT64_MAX && at == large + sizeof large);
	assert_false(take(endless, sizeof endless, &value, &used));
	assert_int_equal(value, 0);
}

static void arrays_grow(void **state)
{
	struct {
		short *items;
		size_t count, room;
	} a = {0};
	size_t before;
	(void)state;
	for (int i = 0; i < 1000; i++) {
		assert_true(ARRAY_ROOM(a.items, a.count, a.room));
		a.items[a.count++] = (short)i;
	}
	for (int i = 0; i < 1000; i++)
		assert_int_equal(a.items[i], i);
	before = a.room;
	size_t huge = SIZE_MAX / 2;
	short *items = a.items;
	assert_false(ARRAY_ROOM(items, huge, huge)); /* as it was */
	assert_ptr_equal(items, a.items);
	assert_true(huge == SIZE_MAX / 2);
	assert_int_equal(a.room, before);
	free(a.items);
}

static void the_first_that_is_not_is_found(void **state)
{
	static const int numbers[] = {1, 3, 3, 3, 7, 9, 12};
	size_t all = sizeof numbers / sizeof *numbers;
	(void)state;
	for (size_t count = 0; count <= all; count++)
		for (int wanted = 0; wanted < 14; wanted++) {
			size_t below = 0, upto = 0;
			for (size_t i = 0; i < count; i++) {
				below += numbers[i] < wanted;
				upto += numbers[i] <= wanted;
			}
			assert_int_equal(FIRST_NOT(i, count, numbers[i] < wanted), below);
			assert_int_equal(FIRST_NOT(i, count, numbers[i] <= wanted), upto);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_come_back),
		cmocka_unit_test(signs_come_back),
		cmocka_unit_test(padding_adds_nothing),
		cmocka_unit_test(arrays_grow),
		cmocka_unit_test(the_first_that_is_not_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
