/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "image/v8tab.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "image/image.h"
#include "image/symbols.h"
#include "made_image.h"

#define TEXT 0x10020u
#define FIRST 0x60u /* of the builtins in the text; aligned as an address */
#define COUNT 120u
#define ROOM (FIRST + COUNT * 96u)

/* What a library with V8 in it has after `strip`. Builtin i has 33 + i % 40 bytes, and the table so many words for each. */
struct library {
	uint32_t constants[64 + COUNT * 16];
	uint8_t text[ROOM];
	uint32_t starts[COUNT], sizes[COUNT];
	const char *exported;
};

static void fill(struct library *l, size_t words)
{
	uint32_t start = 0;
	memset(l, 0, sizeof *l);
	memset(l->text, 0x90, sizeof l->text);
	l->exported = "\0_ZN2v88internal23DefaultEmbeddedBlobCodeEv";
	for (size_t i = 0; i < 64; i++)
		l->constants[i] = i % 3 ? 0
					: 0x20; /* some that could be its beginning, and are not */
	for (size_t i = 0; i < COUNT; i++) {
		l->starts[i] = start;
		l->sizes[i] = (uint32_t)(33 + i % 40);
		l->constants[63 + i * words] = start;
		l->constants[63 + i * words + 1] = l->sizes[i];
		memset(l->text + FIRST + start + l->sizes[i], V8TAB_PADDING, 96 - l->sizes[i]);
		start += l->sizes[i] > 64 ? 96 : 64;
	}
}

static struct image *open_library(const struct library *l, uint16_t machine)
{
	const struct made_section sections[] = {
		{.name = ".text", .address = TEXT, .bytes = l->text, .size = ROOM, .code = true},
		{.name = ".rodata",
		 .address = 0x40000,
		 .bytes = l->constants,
		 .size = sizeof l->constants},
		{.name = ".dynstr",
		 .bytes = l->exported,
		 .size = strlen(l->exported + 1) + 2,
		 .type = SHT_STRTAB},
	};
	return made_image(machine, 0, sections, 3);
}

static size_t count_builtins(const struct library *l)
{
	struct image *image = open_library(l, EM_X86_64);
	struct v8tab_builtin *all;
	size_t count = v8tab_read(image, &all);
	free(all);
	image_close(image);
	return count;
}

static void builtins_are_where_the_table_says(void **state)
{
	struct library l;
	(void)state;
	for (size_t words = 2; words <= 8; words++) {
		fill(&l, words);
		struct image *image = open_library(&l, EM_X86_64);
		struct v8tab_builtin *all;

		assert_int_equal(v8tab_read(image, &all), COUNT);
		for (size_t i = 0; i < COUNT; i++) {
			assert_int_equal(all[i].start, TEXT + FIRST + l.starts[i]);
			assert_int_equal(all[i].size, l.sizes[i]);
		}
		free(all);
		image_close(image);
	}
}

static void what_does_not_fit_is_no_table(void **state)
{
	struct library l;
	(void)state;
	fill(&l, 7);
	assert_int_equal(count_builtins(&l), COUNT);
	l.exported = "\0_ZN4node5StartEiPPc"; /* not V8's */
	assert_int_equal(count_builtins(&l), 0);
	fill(&l, 7);
	l.text[FIRST + l.starts[70] + l.sizes[70]] = 0x90; /* no padding there */
	assert_int_equal(count_builtins(&l), 0);
	fill(&l, 7);
	l.constants[63 + 7 * (COUNT - 1) + 1] = UINT32_MAX; /* the last one leads out of the code */
	assert_int_equal(count_builtins(&l), 0);
	fill(&l, 7);
	l.constants[63 + 7 * 60] = 1; /* two halves, and neither is long enough */
	assert_int_equal(count_builtins(&l), 0);
	fill(&l, 7);
	l.constants[63 + 7 * (COUNT - 1) + 1] = 0; /* the last one is of no size: it is none */
	assert_int_equal(count_builtins(&l), COUNT - 1);
}

static void symbols_have_them(void **state)
{
	struct library l;
	struct symbols *symbols;
	const uint64_t inside = TEXT + FIRST + 64 + 5;
	(void)state;
	fill(&l, 8);
	struct image *image = open_library(&l, EM_AARCH64);
	assert_null(symbols_read(image, NULL, &symbols));
	assert_string_equal(symbols_find(symbols, inside)->name, "Builtins_#1");
	symbols_free(symbols);
	assert_null(symbols_read_near(image, NULL, &inside, 1, &symbols));
	assert_string_equal(symbols_find(symbols, inside)->name, "Builtins_#1");
	symbols_free(symbols);
	image_close(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(builtins_are_where_the_table_says),
		cmocka_unit_test(what_does_not_fit_is_no_table),
		cmocka_unit_test(symbols_have_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
