/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "store/pack.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "profile/profile.h"

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

static void counts_come_back(void **state)
{
	struct pack_count rows[] = {
		{7, 2, 1, UINT64_MAX, 3}, {7, 2, 1, 0x1000, 5},  {900000, 2, 1, 0x1000, 1},
		{7, 1, 2, 0x10, 9},       {7, 2, 1, 0x1000, 10}, {0, 0, 1, 0, UINT64_MAX},
		{7, 3, 1, 0x10, 0},
	};
	struct pack_count *got;
	struct buf b = {0};
	size_t count = pack_settle_counts(rows, sizeof rows / sizeof *rows), got_count;
	(void)state;
	assert_int_equal(count, 5);
	good(pack_counts(rows, count, 3, &b));
	good(unpack_counts(b.data, b.size, &got, &got_count));
	assert_int_equal(got_count, count);
	assert_memory_equal(got, rows, count * sizeof *rows);
	assert_true(rows[2].process == 7 && rows[2].address == 0x1000 && rows[2].count == 15);
	free(got);
	buf_free(&b);
}

static void sums_end_at_the_most(void **state)
{
	struct pack_path rows[] = {{1, 1, 1, UINT64_MAX}, {1, 1, 1, 2}};
	(void)state;
	assert_int_equal(pack_settle_paths(rows, 2), 1);
	assert_true(rows[0].count == UINT64_MAX);
}

static void many_rows_are_small(void **state)
{
	enum { ROWS = 20000 };
	struct pack_path *rows = calloc(ROWS, sizeof *rows), *got;
	struct buf b = {0};
	size_t got_count;
	(void)state;
	for (size_t i = 0; i < ROWS; i++)
		rows[i] = (struct pack_path){i * 3, 1 + i % 5, 1, 1 + i % 7};
	assert_int_equal(pack_settle_paths(rows, ROWS), ROWS);
	good(pack_paths(rows, ROWS, 3, &b));
	assert_true(b.size < ROWS);
	good(unpack_paths(b.data, b.size, &got, &got_count));
	assert_int_equal(got_count, ROWS);
	assert_memory_equal(got, rows, ROWS * sizeof *rows);
	free(got);
	free(rows);
	buf_free(&b);
}

/* Around each power of two, in each column whose low bits stand apart. */
static void numbers_of_all_sizes(void **state)
{
	struct pack_count rows[192], *got;
	struct pack_path paths[192], *got_paths;
	struct buf b = {0}, c = {0};
	size_t count, got_count;
	(void)state;
	for (unsigned i = 0; i < 192; i++) {
		uint64_t n = (UINT64_C(1) << i / 3) - 1 + i % 3 * (i / 3 < 63);
		rows[i] = (struct pack_count){1 + i % 5, 1 + i, 1, n, n ? n : 1};
		paths[i] = (struct pack_path){n, 1 + i, 1, n ? n : 1};
	}
	count = pack_settle_counts(rows, 192);
	good(pack_counts(rows, count, 3, &b));
	good(unpack_counts(b.data, b.size, &got, &got_count));
	assert_int_equal(got_count, count);
	assert_memory_equal(got, rows, count * sizeof *rows);
	count = pack_settle_paths(paths, 192);
	good(pack_paths(paths, count, 3, &c));
	good(unpack_paths(c.data, c.size, &got_paths, &got_count));
	assert_int_equal(got_count, count);
	assert_memory_equal(got_paths, paths, count * sizeof *paths);
	free(got);
	free(got_paths);
	buf_free(&b);
	buf_free(&c);
}

/* As version 2 had them. */
static void older_rows_can_be_read(void **state)
{
	static const uint8_t counts[] = {1,    3, 2, 5, 7, 1, 0, 1, 0x80, 0x20, 0x10,
					 0x20, 0, 1, 1, 1, 1, 1, 0, 4,    0xac, 0x02};
	static const uint8_t paths[] = {1, 3, 2, 5, 4, 3, 1, 0, 0, 1, 0, 1, 1, 1, 9, 0, 0x83, 1};
	const struct pack_count rows[] = {
		{5, 1, 1, 0x1000, 1}, {12, 1, 1, 0x1010, 5}, {12, 2, 1, 0x20, 301}};
	const struct pack_path others[] = {{3, 5, 1, 10}, {4, 9, 1, 1}, {4, 5, 1, 132}};
	struct pack_count *got;
	struct pack_path *got_paths;
	size_t count;
	(void)state;
	good(unpack_counts(counts, sizeof counts, &got, &count));
	assert_int_equal(count, 3);
	assert_memory_equal(got, rows, sizeof rows);
	good(unpack_paths(paths, sizeof paths, &got_paths, &count));
	assert_int_equal(count, 3);
	assert_memory_equal(got_paths, others, sizeof others);
	free(got);
	free(got_paths);
}

static void nodes_come_back(void **state)
{
	const struct pack_node rows[] = {
		{0, 1, PROFILE_CALL, 0x1000},
		{100, 2, PROFILE_CALL, 0xffffffff80001000u},
		{101, PACK_IMAGE_MAX, PROFILE_EXACT, 0x20},
		{3, 1, PROFILE_CALL, 0x1000},
		{0, 0, PROFILE_PARTIAL, 4},
	};
	struct pack_node *got;
	struct buf b = {0};
	size_t got_count;
	(void)state;
	good(pack_nodes(rows, 5, 100, 3, &b));
	good(unpack_nodes(b.data, b.size, 100, &got, &got_count));
	assert_int_equal(got_count, 5);
	for (size_t i = 0; i < 5; i++)
		assert_true(got[i].parent == rows[i].parent && got[i].image == rows[i].image &&
			    got[i].address == rows[i].address && got[i].kind == rows[i].kind);
	free(got);
	/* The same bytes for a smaller first number have parents that are not there. */
	struct err *e = unpack_nodes(b.data, b.size, 1, &got, &got_count);
	assert_non_null(e);
	err_free(e);
	buf_free(&b);
}

static void nothing_is_nothing(void **state)
{
	struct pack_count *counts;
	struct pack_path *paths;
	struct pack_node *nodes;
	struct buf b = {0};
	size_t count;
	(void)state;
	good(pack_counts(NULL, 0, 3, &b));
	good(pack_paths(NULL, 0, 3, &b));
	good(pack_nodes(NULL, 0, 1, 3, &b));
	assert_int_equal(b.size, 0);
	good(unpack_counts(NULL, 0, &counts, &count));
	good(unpack_paths(NULL, 0, &paths, &count));
	good(unpack_nodes(NULL, 0, 1, &nodes, &count));
	assert_true(!counts && !paths && !nodes);
}

/* Each byte changed, and each length: an error, or rows that are sound; never worse. */
static void damage_is_noticed(void **state)
{
	struct pack_count rows[200], *got;
	struct buf b = {0};
	size_t got_count, unnoticed = 0;
	(void)state;
	for (size_t i = 0; i < 200; i++)
		rows[i] = (struct pack_count){1 + i % 3, 1 + i / 50, 1, i * i * 4, 1 + i % 11};
	size_t count = pack_settle_counts(rows, 200);
	good(pack_counts(rows, count, 3, &b));
	assert_int_equal(b.data[0], 4); /* compressed, with a checksum */
	for (size_t i = 0; i < b.size; i++) {
		b.data[i] ^= 0x15;
		struct err *e = unpack_counts(b.data, b.size, &got, &got_count);
		unnoticed += !e;
		err_free(e);
		free(e ? NULL : got);
		b.data[i] ^= 0x15;
	}
	assert_int_equal(unnoticed, 0);
	for (size_t size = 1; size < b.size; size++) {
		struct err *e = unpack_counts(b.data, size, &got, &got_count);
		assert_non_null(e);
		err_free(e);
	}
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_come_back),     cmocka_unit_test(sums_end_at_the_most),
		cmocka_unit_test(many_rows_are_small),  cmocka_unit_test(nodes_come_back),
		cmocka_unit_test(nothing_is_nothing),   cmocka_unit_test(damage_is_noticed),
		cmocka_unit_test(numbers_of_all_sizes), cmocka_unit_test(older_rows_can_be_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
