/* SPDX-License-Identifier: Apache-2.0 */
/* Go's own table, of each version: functions, frames, lines, what was inlined; and damaged ones. */
#include "go_bytes.h"
#include "image/gotab.h"
#include "image/inlines.h"
#include "image/lines.h"
#include "image/symbols.h"

static const struct go_function functions[] = {
	{.name = "main.big",
	 .size = 64,
	 .sp = {{0, 8}, {32, 48}, {0, 8}},
	 .line = {{10, 16}, {7, 16}, {300, 32}},
	 .file = {{0, 64}},
	 .inlined = {{-1, 16}, {0, 16}, {-1, 32}}},
	{.name = "main.(*T[...]).get", .size = 32, .sp = {{0, 32}}, .flags = 2},
	{.name = "runtime.goexit", .size = 16, .flags = 1},
};
#define COUNT (sizeof functions / sizeof *functions)

static struct go_table table;
static const uint8_t code[112];

static struct image *image_of(enum go_version version)
{
	struct go_function all[COUNT];
	memcpy(all, functions, sizeof all);
	if (version == GO_V2) /* numbers of files are from 1 */
		all[0].file[0].value = 1;
	go_make(&table, version, 4, all, COUNT);
	return go_image(EM_AARCH64, code, sizeof code, &table);
}

static void reads_functions(void **state)
{
	(void)state;
	for (enum go_version v = GO_V2; v < GO_VERSIONS; v++) {
		struct image *image = image_of(v);
		struct gotab *t = gotab_open(image);
		struct gotab_function f;
		size_t index;
		assert_non_null(t);
		assert_int_equal(gotab_count(t), COUNT);
		assert_true(gotab_find(t, GO_TEXT + 64, &index));
		assert_int_equal(index, 1);
		assert_true(gotab_function(t, 1, &f));
		assert_string_equal(f.name, "main.(*T[...]).get");
		assert_int_equal(f.start, GO_TEXT + 64);
		assert_int_equal(f.end, GO_TEXT + 96);
		assert_int_equal(f.writes_sp, v != GO_V2);
		assert_false(f.top);
		assert_int_equal(f.line, v == GO_V20 ? 77 : 0);
		assert_true(gotab_function(t, 2, &f));
		assert_int_equal(f.top, v != GO_V2);
		assert_false(gotab_find(t, GO_TEXT + 112, &index));
		assert_false(gotab_find(t, GO_TEXT - 1, &index));
		gotab_close(t);
		image_close(image);
	}
}

static void reads_values(void **state)
{
	(void)state;
	for (enum go_version v = GO_V2; v < GO_VERSIONS; v++) {
		struct image *image = image_of(v);
		struct gotab *t = gotab_open(image);
		int32_t value;
		assert_true(gotab_value(t, 0, GOTAB_SP, GO_TEXT + 7, &value));
		assert_int_equal(value, 0);
		assert_true(gotab_value(t, 0, GOTAB_SP, GO_TEXT + 8, &value));
		assert_int_equal(value, 32);
		assert_true(gotab_value(t, 0, GOTAB_SP, GO_TEXT + 63, &value));
		assert_int_equal(value, 0);
		assert_true(gotab_value(t, 0, GOTAB_LINE, GO_TEXT + 20, &value));
		assert_int_equal(value, 7);
		assert_true(gotab_value(t, 0, GOTAB_FILE, GO_TEXT, &value));
		assert_string_equal(gotab_file(t, 0, value), "/src/a.go");
		assert_false(gotab_value(t, 2, GOTAB_SP, GO_TEXT + 96, &value));
		gotab_close(t);
		image_close(image);
	}
}

static void gives_lines(void **state)
{
	struct image *image = image_of(GO_V18);
	struct lines *lines;
	struct line_row *rows;
	size_t count;
	(void)state;
	assert_null(lines_open(image, NULL, &lines));
	assert_null(lines_range(lines, GO_TEXT + 8, GO_TEXT + 40, &rows, &count));
	assert_int_equal(count, 3);
	assert_int_equal(rows[0].address, GO_TEXT + 8);
	assert_int_equal(rows[0].line, 10);
	assert_int_equal(rows[1].line, 7);
	assert_int_equal(rows[2].end, GO_TEXT + 40);
	assert_int_equal(rows[2].line, 300);
	assert_string_equal(lines_file(lines, rows[1].file), "/src/a.go");
	free(rows);
	lines_close(lines);
	image_close(image);
}

static void gives_inlined(void **state)
{
	(void)state;
	for (enum go_version v = GO_V18; v < GO_VERSIONS; v++) {
		struct image *image = image_of(v);
		struct lines *lines;
		struct inlines *inlines;
		struct inline_procedure p;
		bool found;
		assert_null(lines_open(image, NULL, &lines));
		assert_null(inlines_open(image, NULL, lines, &inlines));
		assert_null(inlines_find(inlines, GO_TEXT + 4, &p, &found));
		assert_true(found);
		assert_int_equal(p.scope_count, 2);
		assert_string_equal(p.scopes[0].name, "main.big");
		assert_int_equal(p.scopes[0].line, v == GO_V20 ? 77 : 10);
		assert_string_equal(p.scopes[1].name, "main.small");
		assert_int_equal(p.scopes[1].call_line, 10);
		assert_int_equal(p.scopes[1].count, 1);
		assert_int_equal(p.ranges[p.scopes[1].first].start, GO_TEXT + 16);
		assert_int_equal(p.ranges[p.scopes[1].first].end, GO_TEXT + 32);
		inline_procedure_free(&p);
		inlines_close(inlines);
		lines_close(lines);
		image_close(image);
	}
}

static void gives_symbols(void **state)
{
	const uint64_t address = GO_TEXT + 70;
	struct image *image = image_of(GO_V20);
	struct symbols *symbols, *near;
	(void)state;
	assert_null(symbols_read(image, NULL, &symbols));
	assert_null(symbols_read_near(image, NULL, &address, 1, &near));
	assert_string_equal(symbols_find(symbols, GO_TEXT)->name, "main.big");
	assert_string_equal(symbols_find(near, address)->name, "main.(*T[...]).get");
	image_close(image); /* names are the symbols' own */
	assert_int_equal(symbols_find(symbols, address)->size, 32);
	assert_string_equal(symbols_find(symbols, address)->name, "main.(*T[...]).get");
	symbols_free(symbols);
	symbols_free(near);
}

/* Whatever is wrong with a byte or the length, no byte of others is read (the sanitizer looks). */
static void survives_damage(void **state)
{
	(void)state;
	for (size_t at = 0; at < 80; at++) {
		struct image *image = image_of(at % 2 ? GO_V18 : GO_V20);
		image_close(image);
		table.bytes[at] ^= 0xff;
		image = go_image(EM_AARCH64, code, sizeof code, &table);
		struct gotab *t = gotab_open(image);
		struct gotab_function f;
		int32_t value;
		for (size_t i = 0; t && i < gotab_count(t) && i < 8; i++) {
			gotab_function(t, i, &f);
			gotab_value(t, i, GOTAB_SP, GO_TEXT, &value);
		}
		gotab_close(t);
		image_close(image);
	}
	for (size_t size = 0; size < GO_RECORDS + 2 * GO_RECORD; size += 97) {
		image_close(image_of(GO_V18));
		table.size = size;
		struct image *image = go_image(EM_AARCH64, code, sizeof code, &table);
		struct gotab *t = gotab_open(image);
		struct gotab_function f;
		for (size_t i = 0; t && i < gotab_count(t); i++)
			gotab_function(t, i, &f);
		gotab_close(t);
		image_close(image);
	}
}

static void other_programs_have_none(void **state)
{
	struct go_table none = {.size = 0x400};
	struct image *image = go_image(EM_AARCH64, code, sizeof code, &none);
	(void)state;
	assert_null(gotab_open(image));
	image_close(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_functions),
		cmocka_unit_test(reads_values),
		cmocka_unit_test(gives_lines),
		cmocka_unit_test(gives_inlined),
		cmocka_unit_test(gives_symbols),
		cmocka_unit_test(survives_damage),
		cmocka_unit_test(other_programs_have_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
