/* SPDX-License-Identifier: Apache-2.0 */
/* DWARF made by hand that is small, inside its sections, and costs libdw gigabytes or hours. */
#include <dwarf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "image/dwarf_bounds.h"
#include "unit.h"

static void put(struct buf *b, uint64_t value, size_t size)
{
	buf_append(b, &value, size);
}

static void put_uleb(struct buf *b, uint64_t value)
{
	do {
		put(b, (value & 0x7f) | (value > 0x7f ? 0x80 : 0), 1);
		value >>= 7;
	} while (value);
}

static struct dwarf_part part(const struct buf *b)
{
	return (struct dwarf_part){(const uint8_t *)b->data, b->size};
}

/* ---- lines ---- */

/* What a line table holds: `rows` rows, and `files` files in a directory of `length` bytes. */
struct table {
	unsigned int version;
	size_t files, length, rows;
	bool line_str; /* the directory's name stands in .debug_line_str */
};

static void put_lists(struct buf *b, const struct table *t, const char *directory)
{
	bool v5 = t->version >= 5;

	if (v5) {
		put(b, 1, 1);
		put_uleb(b, DW_LNCT_path);
		put_uleb(b, t->line_str ? DW_FORM_line_strp : DW_FORM_string);
		put_uleb(b, 1);
	}
	if (v5 && t->line_str)
		put(b, 0, 4);
	else
		buf_append(b, directory, t->length + 1);
	if (v5) {
		put(b, 2, 1);
		put_uleb(b, DW_LNCT_path);
		put_uleb(b, DW_FORM_string);
		put_uleb(b, DW_LNCT_directory_index);
		put_uleb(b, DW_FORM_udata);
		put_uleb(b, t->files);
	} else {
		put(b, 0, 1);
	}
	for (size_t i = 0; i < t->files; i++)
		buf_append(b, "f\0\0\0\0", v5 ? 3 : 5);
	if (!v5)
		put(b, 0, 1);
}

static void make_lines(const struct table *t, struct buf *line, struct buf *line_str)
{
	static const uint8_t operands[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
	char *directory = calloc(1, t->length + 1);
	struct buf rest = {0}, lists = {0};

	memset(directory, 'd', t->length);
	put(&lists, 1, 1); /* smallest instruction */
	if (t->version >= 4)
		put(&lists, 1, 1);
	put(&lists, 0x0d0efb01, 4); /* is statement, line base, line range, opcode base */
	buf_append(&lists, operands, sizeof(operands));
	put_lists(&lists, t, directory);
	put(&rest, t->version, 2);
	if (t->version >= 5)
		put(&rest, 8, 2);
	put(&rest, lists.size, 4);
	buf_append(&rest, lists.data, lists.size);
	for (size_t i = 0; i < t->rows; i++)
		put(&rest, i % 2 ? DW_LNS_copy : 0x20, 1);
	put(line, rest.size, 4);
	buf_append(line, rest.data, rest.size);
	buf_append(line_str, directory, t->length + 1);
	buf_free(&rest);
	buf_free(&lists);
	free(directory);
}

static bool lines_pass(const struct table *t, size_t own, struct dwarf_lines_cost *cost)
{
	struct buf line = {0}, line_str = {0};
	struct dwarf_line_parts parts;
	bool pass;

	make_lines(t, &line, &line_str);
	parts = (struct dwarf_line_parts){.line = part(&line), .line_str = part(&line_str)};
	pass = dwarf_bounds_lines(&parts, 0, own, cost);
	for (size_t size = line.size; size > 0 && line.size < 1000; size--) {
		struct dwarf_lines_cost ignored;
		uint8_t *cut = malloc(size); /* exact, so that the sanitizer sees its end */

		memcpy(cut, line.data, size);
		parts.line = (struct dwarf_part){cut, size};
		assert_int_equal(dwarf_bounds_lines(&parts, 0, own, &ignored),
				 size == line.size && pass);
		free(cut);
	}
	buf_free(&line);
	buf_free(&line_str);
	return pass;
}

static void ordinary_lines_pass(void **state)
{
	struct dwarf_lines_cost cost;

	(void)state;
	for (unsigned int version = 2; version <= 5; version++) {
		struct table t = {.version = version, .files = 20, .length = 40, .rows = 100};

		assert_true(lines_pass(&t, 10, &cost));
		assert_int_equal(cost.rows, 100);
		assert_in_range(cost.text, 20 * (1 + 40 + 10), 20 * (1 + 40 + 10 + 8));
	}
}

static void paths_are_bounded(void **state)
{
	struct dwarf_lines_cost cost;

	(void)state;
	for (unsigned int version = 2; version <= 5; version++) {
		struct table t = {.version = version, .files = 1000, .length = 100000};

		assert_false(lines_pass(&t, 0, &cost));
		t.length = 100;
		assert_true(lines_pass(&t, 0, &cost));
		assert_false(lines_pass(&t, 100000, &cost));
	}
	struct table t = {.version = 5, .files = 1000, .length = 100000, .line_str = true};
	assert_false(lines_pass(&t, 0, &cost));
	t.files = 100;
	assert_true(lines_pass(&t, 0, &cost));
}

static void no_lines_do_not_pass(void **state)
{
	struct dwarf_line_parts parts = {0};
	struct dwarf_lines_cost cost;

	(void)state;
	assert_false(dwarf_bounds_lines(&parts, 0, 0, &cost));
	assert_true(dwarf_bounds_abbrevs(parts.line, parts.line));
}

static void rows_are_bounded(void **state)
{
	struct table t = {.version = 5, .files = 1, .length = 1, .rows = 9 << 20};
	struct dwarf_lines_cost cost;

	(void)state;
	assert_false(lines_pass(&t, 0, &cost));
	t.rows = 8 << 20;
	assert_true(lines_pass(&t, 0, &cost));
}

/* ---- abbreviations ---- */

static void put_unit(struct buf *info, unsigned int version, uint64_t abbrev_offset)
{
	put(info, version >= 5 ? 9 : 8, 4);
	put(info, version, 2);
	if (version >= 5)
		put(info, 0x0801, 2);
	put(info, abbrev_offset, 4);
	if (version < 5)
		put(info, 8, 1);
	put(info, 1, 1);
}

static void put_abbrev(struct buf *b, uint64_t code, size_t attributes)
{
	put_uleb(b, code);
	put_uleb(b, DW_TAG_compile_unit);
	put(b, 0, 1);
	for (size_t i = 0; i < attributes; i++) {
		put_uleb(b, DW_AT_external);
		put_uleb(b, i % 2 ? DW_FORM_flag_present : DW_FORM_implicit_const);
		if (i % 2 == 0)
			put_uleb(b, 0x1234);
	}
	put(b, 0, 2);
}

static void attributes_are_bounded(void **state)
{
	(void)state;
	for (unsigned int version = 2; version <= 5; version++) {
		struct buf info = {0}, abbrev = {0};

		put_unit(&info, version, 0);
		put_abbrev(&abbrev, 1, 200);
		put(&abbrev, 0, 1);
		assert_true(dwarf_bounds_abbrevs(part(&info), part(&abbrev)));
		put_unit(&info, version, abbrev.size);
		put_abbrev(&abbrev, 1, 300);
		put(&abbrev, 0, 1);
		assert_false(dwarf_bounds_abbrevs(part(&info), part(&abbrev)));
		buf_free(&info);
		buf_free(&abbrev);
	}
}

static void tables_stay_apart(void **state)
{
	struct buf info = {0}, abbrev = {0};
	size_t second, inside;

	(void)state;
	for (uint64_t code = 1; code < 50; code++)
		put_abbrev(&abbrev, code, 3);
	inside = abbrev.size;
	put_abbrev(&abbrev, 50, 3);
	put(&abbrev, 0, 1);
	second = abbrev.size;
	put_abbrev(&abbrev, 1, 3); /* its end is missing */
	put_unit(&info, 5, second);
	put_unit(&info, 4, 0); /* in any order, and shared as a whole */
	put_unit(&info, 5, second);
	put_unit(&info, 3, second + 1000);
	assert_true(dwarf_bounds_abbrevs(part(&info), part(&abbrev)));
	put_unit(&info, 5, inside);
	assert_false(dwarf_bounds_abbrevs(part(&info), part(&abbrev)));
	buf_free(&info);
	buf_free(&abbrev);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ordinary_lines_pass),    cmocka_unit_test(paths_are_bounded),
		cmocka_unit_test(no_lines_do_not_pass),   cmocka_unit_test(rows_are_bounded),
		cmocka_unit_test(attributes_are_bounded), cmocka_unit_test(tables_stay_apart),
	};

	return cmocka_run_group_tests_name("dwarf_bounds", tests, NULL, NULL);
}
