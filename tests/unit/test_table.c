/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From rows to the bytes of a table and back: at every address the table says
 * what the rows said. And bytes that are no table are not taken for one.
 */
#include "unit.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "recipes/build.h"
#include "recipes/rows.h"
#include "unwind/table.h"

static const uint8_t key[40] = {1, 2, 3, 40};

static uint32_t rule_number(struct rows *rows, int n)
{
	struct recipe recipe = {.cfa = RECIPE_REG, .cfa_reg = 7, .cfa_offset = n};
	return rows_rule(rows, &recipe);
}

struct packed {
	void *bytes;
	size_t size;
	struct table table;
};

static struct packed pack(const struct rows *rows)
{
	struct packed p = {0};
	assert_null(recipes_pack(rows, EM_AARCH64, RECIPES_CFI, key, &p.bytes, &p.size));
	assert_true(table_open(&p.table, p.bytes, p.size));
	return p;
}

static void check_same(const struct rows *rows, const struct table *table, uint64_t address)
{
	const struct recipe *expected = &rows->rules[rows_find(rows, address)];
	assert_memory_equal(table_find(table, address), expected, sizeof *expected);
}

/* Every address of [from, to], and beyond both ends of the address space. */
static void check_all(struct rows *rows, uint64_t from, uint64_t to)
{
	struct packed p;
	rows_finish(rows);
	assert_false(rows->failed);
	p = pack(rows);
	for (uint64_t at = from; at <= to; at++)
		check_same(rows, &p.table, at);
	check_same(rows, &p.table, 0);
	check_same(rows, &p.table, UINT64_MAX);
	check_same(rows, &p.table, from + (UINT64_C(1) << 32));
	free(p.bytes);
}

static void empty(void **state)
{
	struct rows rows;
	(void)state;
	rows_init(&rows);
	check_all(&rows, 0, 5000);
	rows_free(&rows);
}

static void one_byte(void **state)
{
	(void)state;
	for (uint64_t at = TABLE_PAGE - 2; at <= TABLE_PAGE + 2; at++) {
		struct rows rows;
		rows_init(&rows);
		rows_add(&rows, at, at + 1, rule_number(&rows, 1));
		check_all(&rows, 0, 3 * TABLE_PAGE);
		rows_free(&rows);
	}
}

static void pages_without_rows(void **state)
{
	struct rows rows;
	(void)state;
	rows_init(&rows);
	rows_add(&rows, 0x10010, 0x13ffc, rule_number(&rows, 1));
	rows_add(&rows, 0x13ffc, 0x14000, rule_number(&rows, 2));
	rows_add(&rows, 0x18001, 0x18400, rule_number(&rows, 3));
	rows_add(&rows, 0x18400, 0x18800, rule_number(&rows, 4));
	check_all(&rows, 0xf000, 0x19800);
	rows_free(&rows);
}

/* A full page: a row at every address, each with its own rule. */
static void row_at_every_byte(void **state)
{
	struct rows rows;
	(void)state;
	rows_init(&rows);
	for (unsigned i = 0; i < 3 * TABLE_PAGE; i++)
		rows_add(&rows, 0x400123 + i, 0x400124 + i, rule_number(&rows, (int)i));
	check_all(&rows, 0x400000, 0x401400);
	rows_free(&rows);
}

static uint32_t random_below(uint32_t *seed, uint32_t limit)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (uint32_t)(((uint64_t)*seed * limit) >> 32);
}

static void random_rows(void **state)
{
	uint32_t seed = 42;
	(void)state;
	for (int round = 0; round < 40; round++) {
		struct rows rows;
		uint64_t start = UINT64_C(0x7f0000000000) + random_below(&seed, 4000), at = start;
		uint32_t spread = 1 + random_below(&seed, 300);
		rows_init(&rows);
		for (int i = 0; i < 300; i++) {
			uint64_t end = at + 1 + random_below(&seed, spread);
			rows_add(&rows, at, end, rule_number(&rows, (int)random_below(&seed, 20)));
			at = end + (random_below(&seed, 4) ? 0 : random_below(&seed, 2500));
		}
		check_all(&rows, start - 2000, at + 2000);
		rows_free(&rows);
	}
}

static void header_says_what_it_is(void **state)
{
	struct table_header h;
	struct packed p;
	struct rows rows;
	(void)state;
	rows_init(&rows);
	rows_add(&rows, 0x1234, 0x5678, rule_number(&rows, 1));
	rows_finish(&rows);
	p = pack(&rows);
	memcpy(&h, p.bytes, sizeof h);
	assert_int_equal(h.machine, EM_AARCH64);
	assert_int_equal(h.mode, RECIPES_CFI);
	assert_int_equal(h.start, 0x1000);
	assert_memory_equal(h.key, key, sizeof key);
	assert_true(h.checksum == table_checksum((char *)p.bytes + sizeof h, p.size - sizeof h));
	free(p.bytes);
	rows_free(&rows);
}

/* Each bit of the contents changes the checksum. */
static void checksum_sees_every_bit(void **state)
{
	uint8_t bytes[77];
	uint64_t before;
	(void)state;
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 37);
	before = table_checksum(bytes, sizeof bytes);
	for (size_t i = 0; i < sizeof bytes * 8; i++) {
		bytes[i / 8] ^= (uint8_t)(1u << i % 8);
		assert_true(table_checksum(bytes, sizeof bytes) != before);
		bytes[i / 8] ^= (uint8_t)(1u << i % 8);
	}
	assert_true(table_checksum(bytes, sizeof bytes - 1) != before);
}

static void too_wide_is_refused(void **state)
{
	struct rows rows;
	struct err *e;
	void *bytes = NULL;
	size_t size;
	(void)state;
	rows_init(&rows);
	rows_add(&rows, 0, 1, rule_number(&rows, 1));
	rows_add(&rows, UINT64_MAX - 8, UINT64_MAX, rule_number(&rows, 1));
	rows_finish(&rows);
	e = recipes_pack(&rows, EM_X86_64, RECIPES_AUTO, key, &bytes, &size);
	assert_non_null(e);
	assert_null(bytes);
	err_free(e);
	rows_free(&rows);
}

/* ---- bytes that are no table ---- */

struct hostile {
	struct packed good;
	char *bytes; /* a copy of exactly the size, so that sanitizers see reads past it */
};

static void hostile_begin(struct hostile *h)
{
	struct rows rows;
	rows_init(&rows);
	for (int i = 0; i < 40; i++)
		rows_add(&rows, 0x1000 + 100 * (uint64_t)i, 0x1000 + 100 * (uint64_t)i + 90,
			 rule_number(&rows, i % 7));
	rows_finish(&rows);
	h->good = pack(&rows);
	h->bytes = malloc(h->good.size);
	assert_non_null(h->bytes);
	memcpy(h->bytes, h->good.bytes, h->good.size);
	rows_free(&rows);
}

static void hostile_end(struct hostile *h)
{
	free(h->good.bytes);
	free(h->bytes);
}

/* Opens the copy; where it is taken for a table, no lookup may leave its bytes. */
static bool opens(const struct hostile *h, size_t size)
{
	struct table table;
	const char *rules;
	if (!table_open(&table, h->bytes, size))
		return false;
	for (uint64_t at = 0; at < 0x4000; at += 3) {
		rules = (const char *)table_find(&table, at);
		assert_true(rules >= h->bytes && rules + sizeof(struct recipe) <= h->bytes + size);
		rules = (const char *)table_find(&table, table.start + at);
		assert_true(rules >= h->bytes && rules + sizeof(struct recipe) <= h->bytes + size);
	}
	return true;
}

static void cut_short(void **state)
{
	struct hostile h;
	(void)state;
	hostile_begin(&h);
	for (size_t size = 0; size < h.good.size; size++) {
		char *cut = malloc(size ? size : 1);
		struct table table;
		memcpy(cut, h.good.bytes, size);
		assert_false(table_open(&table, cut, size));
		free(cut);
	}
	assert_true(opens(&h, h.good.size));
	hostile_end(&h);
}

static void header_lies(void **state)
{
	static const uint32_t values[] = {0, 1, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
	static const size_t fields[] = {offsetof(struct table_header, page_count),
					offsetof(struct table_header, row_count),
					offsetof(struct table_header, rule_count)};
	struct hostile h;
	(void)state;
	hostile_begin(&h);
	for (size_t f = 0; f < sizeof fields / sizeof *fields; f++) {
		for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
			memcpy(h.bytes + fields[f], &values[v], 4);
			assert_false(opens(&h, h.good.size));
		}
		memcpy(h.bytes, h.good.bytes, sizeof(struct table_header));
	}
	hostile_end(&h);
}

/* Rows of one page more, of another page less, and so on: sizes still match. */
static void counts_shifted(void **state)
{
	struct table_header header;
	struct hostile h;
	(void)state;
	hostile_begin(&h);
	memcpy(&header, h.bytes, sizeof header);
	header.page_count++;
	header.row_count--;
	memcpy(h.bytes, &header, sizeof header);
	assert_false(opens(&h, h.good.size));
	header.page_count -= 2;
	header.row_count += 2;
	memcpy(h.bytes, &header, sizeof header);
	assert_false(opens(&h, h.good.size));
	hostile_end(&h);
}

static void pages_lie(void **state)
{
	uint32_t *pages, count, saved;
	struct hostile h;
	(void)state;
	hostile_begin(&h);
	pages = (uint32_t *)(h.bytes + sizeof(struct table_header));
	count = h.good.table.page_count;
	assert_in_range(count, 3, 5);
	for (uint32_t p = 0; p <= count; p++) {
		saved = pages[p];
		pages[p] = h.good.table.row_count + 1;
		assert_false(opens(&h, h.good.size));
		pages[p] = UINT32_MAX;
		assert_false(opens(&h, h.good.size));
		pages[p] = p ? 0 : 1;
		assert_false(opens(&h, h.good.size));
		pages[p] = saved;
	}
	assert_true(opens(&h, h.good.size));
	pages[count + 1] |= 1u << TABLE_RULE_BITS; /* a page's first row must be at its beginning */
	assert_false(opens(&h, h.good.size));
	pages[count + 1] = h.good.table.rule_count; /* and rules must exist */
	assert_false(opens(&h, h.good.size));
	hostile_end(&h);
}

/* Whatever a byte becomes: refused, or no lookup leaves the bytes. */
static void every_byte_flipped(void **state)
{
	struct hostile h;
	(void)state;
	hostile_begin(&h);
	for (size_t i = 0; i < h.good.size; i++) {
		for (int bit = 0; bit < 8; bit++) {
			h.bytes[i] ^= (char)(1 << bit);
			opens(&h, h.good.size);
			h.bytes[i] ^= (char)(1 << bit);
		}
	}
	hostile_end(&h);
}

static void unaligned_is_refused(void **state)
{
	struct hostile h;
	struct table table;
	char *moved;
	(void)state;
	hostile_begin(&h);
	moved = malloc(h.good.size + 4);
	assert_non_null(moved);
	memcpy(moved + 4, h.bytes, h.good.size);
	assert_false(table_open(&table, moved + 4, h.good.size));
	free(moved);
	hostile_end(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty),
		cmocka_unit_test(one_byte),
		cmocka_unit_test(pages_without_rows),
		cmocka_unit_test(row_at_every_byte),
		cmocka_unit_test(random_rows),
		cmocka_unit_test(header_says_what_it_is),
		cmocka_unit_test(checksum_sees_every_bit),
		cmocka_unit_test(too_wide_is_refused),
		cmocka_unit_test(cut_short),
		cmocka_unit_test(header_lies),
		cmocka_unit_test(counts_shifted),
		cmocka_unit_test(pages_lie),
		cmocka_unit_test(every_byte_flipped),
		cmocka_unit_test(unaligned_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
