/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "image/source.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "image/image.h"
#include "image/symbols.h"
#include "nested_program.h"
#include "open_image.h"
#include "scratch.h"

#define PLACES 16

static bool is_place(const struct source_place *p, const char *function, int line, const char *file)
{
	return p->function && strcmp(p->function, function) == 0 && p->line == line && p->file &&
	       strcmp(p->file, file) == 0;
}

/* All of the function `outer`, instruction by instruction. */
static void check_outer(const char *name, struct image *image, struct image *debug)
{
	struct source_place p[PLACES];
	struct symbols *symbols;
	struct source *source;
	const struct symbol *all, *outer = NULL;
	bool own = false, in_middle = false, in_deep = false;
	const char *file = scratch_format("%s.c", scratch(name));
	size_t count, n;
	assert_null(symbols_read(image, debug, &symbols));
	count = symbols_all(symbols, &all);
	for (size_t i = 0; i < count; i++)
		if (strcmp(all[i].name, "outer") == 0)
			outer = &all[i];
	assert_non_null(outer);
	assert_null(source_open(image, debug, &source));
	for (uint64_t at = outer->address; at < outer->address + outer->size; at++) {
		n = source_places(source, at, p, PLACES);
		assert_true(n >= 1 && n <= 3);
		assert_true(p[n - 1].function && p[n - 1].file);
		assert_string_equal(p[n - 1].function, "outer");
		assert_string_equal(p[n - 1].file, file);
		own |= n == 1 && is_place(&p[0], "outer", 13, file);
		in_middle |= n == 2 && is_place(&p[0], "middle", 8, file) &&
			     is_place(&p[1], "outer", 14, file);
		in_deep |= n == 3 && is_place(&p[0], "deep", 4, file) &&
			   is_place(&p[1], "middle", 9, file) && is_place(&p[2], "outer", 14, file);
		assert_int_equal(source_places(source, at, p, 1), 1);
		assert_int_equal(source_places(source, at, p, 0), 0);
	}
	assert_true(own && in_middle && in_deep);
	assert_int_equal(source_places(source, 0, p, PLACES), 0);
	assert_int_equal(source_places(source, UINT64_MAX, p, PLACES), 0);
	source_close(source);
	symbols_free(symbols);
}

static void check_compiled(const char *name, const char *flags)
{
	struct image *image;
	if (!scratch_try_compile(name, nested_program, scratch_format("-O2 %s", flags))) {
		print_message("skipped: %s\n", flags);
		return;
	}
	image = open_image(scratch(name));
	check_outer(name, image, NULL);
	image_close(image);
}

static void inlined_functions(void **state)
{
	(void)state;
	check_compiled("v5", "-g -gdwarf-5");
	check_compiled("v4", "-g -gdwarf-4");
	check_compiled("v3", "-g -gdwarf-3");
	check_compiled("position", "-g -no-pie");
	check_compiled("sections", "-g -ffunction-sections -Wl,--gc-sections");
	check_compiled("packed", "-g -gz=zlib");
	check_compiled("lto", "-g -flto");
	check_compiled("split5", "-g -gdwarf-5 -gsplit-dwarf");
	check_compiled("split4", "-g -gdwarf-4 -gsplit-dwarf");
}

static void clang_too(void **state)
{
	struct image *image;
	(void)state;
	scratch_write("llvm.c", nested_program, strlen(nested_program));
	if (!scratch_run("clang -g -O2 -o llvm llvm.c"))
		skip();
	image = open_image(scratch("llvm"));
	check_outer("llvm", image, NULL);
	image_close(image);
}

static void from_a_debug_file(void **state)
{
	static const char *const ways[] = {"none", "zlib", "zlib-gnu", "zstd"};
	struct image *image, *debug;
	(void)state;
	scratch_compile("whole", nested_program, "-g -O2");
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		if (!scratch_run(scratch_format(
			    "objcopy --only-keep-debug --compress-debug-sections=%s whole debug && "
			    "strip -o stripped whole",
			    ways[i])))
			continue;
		image = open_image(scratch("stripped"));
		debug = open_image(scratch("debug"));
		check_outer("whole", image, debug);
		image_close(image);
		image_close(debug);
	}
}

static void shared_by_dwz(void **state)
{
	struct image *image;
	(void)state;
	scratch_compile("one", nested_program, "-g -O2");
	if (!scratch_run("cp one two && dwz -m shared.dwz one two"))
		skip();
	image = open_image(scratch("one"));
	check_outer("one", image, NULL);
	image_close(image);
}

static void without_dwarf_nothing_is_known(void **state)
{
	struct source_place p[PLACES];
	struct image *image;
	struct source *source;
	(void)state;
	scratch_compile("bare", nested_program, "-O2 -s");
	image = open_image(scratch("bare"));
	assert_null(source_open(image, NULL, &source));
	assert_int_equal(source_places(source, image_entry(image), p, PLACES), 0);
	source_close(source);
	image_close(image);
}

/* ---- damage ---- */

static volatile size_t sink;

static void exercise(const uint8_t *bytes, size_t size, uint64_t from, uint64_t to)
{
	struct source_place p[PLACES];
	struct source *source;
	struct image *image;
	struct err *e = image_open_memory(bytes, size, "damaged", &image);
	if (e) {
		err_free(e);
		return;
	}
	assert_null(source_open(image, NULL, &source));
	for (uint64_t at = from; at < to; at += 4) {
		size_t n = source_places(source, at, p, PLACES);
		for (size_t i = 0; i < n; i++)
			sink += (p[i].function ? strlen(p[i].function) : 0) +
				(p[i].file ? strlen(p[i].file) : 0);
	}
	source_close(source);
	image_close(image);
}

/* Where the debug sections lie in the file, and the code in memory. */
static void find_ranges(const char *path, size_t *start, size_t *end, uint64_t *from, uint64_t *to)
{
	struct image *image = open_image(path);
	const struct image_section *sections, *text = image_section(image, ".text");
	size_t count = image_sections(image, &sections);
	*start = SIZE_MAX;
	*end = 0;
	for (size_t i = 0; i < count; i++) {
		if (strncmp(sections[i].name, ".debug_", 7) != 0)
			continue;
		if (sections[i].offset < *start)
			*start = sections[i].offset;
		if (sections[i].offset + sections[i].size > *end)
			*end = sections[i].offset + sections[i].size;
	}
	*from = text->address;
	*to = text->address + text->size;
	image_close(image);
}

static void damaged_dwarf(void **state)
{
	static const uint8_t flips[] = {0xff, 0x80, 0x01, 0x55};
	size_t size, start, end;
	uint64_t from, to;
	uint8_t *bytes;
	(void)state;
	scratch_compile("tiny", nested_program, "-g -O2 -nostartfiles -Wl,-e,main");
	find_ranges(scratch("tiny"), &start, &end, &from, &to);
	bytes = scratch_read("tiny", &size);
	assert_true(start < end && end <= size);
	for (size_t at = start; at < end; at++) {
		uint8_t flip = flips[at % sizeof flips];
		bytes[at] ^= flip;
		exercise(bytes, size, from, to);
		bytes[at] ^= flip;
	}
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inlined_functions),
		cmocka_unit_test(clang_too),
		cmocka_unit_test(from_a_debug_file),
		cmocka_unit_test(shared_by_dwz),
		cmocka_unit_test(without_dwarf_nothing_is_known),
		cmocka_unit_test(damaged_dwarf),
	};
	return cmocka_run_group_tests_name("source", tests, NULL, NULL);
}
