/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of programs as compilers and linkers leave them. */
#include "unit.h"

#include "image/lines.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "image/symbols.h"
#include "lines_reader.h"
#include "open_image.h"
#include "scratch.h"

static const char text[] =
	/* 1 */ "volatile int sink;\n"
		/* 2 */ "static inline __attribute__((always_inline)) void deep(int a)\n"
		/* 3 */ "{\n"
		/* 4 */ "	sink = a * 3;\n"
		/* 5 */ "}\n"
		/* 6 */ "__attribute__((noinline)) int outer(int a)\n"
		/* 7 */ "{\n"
		/* 8 */ "	sink = 1;\n"
		/* 9 */ "	for (int i = 0; i < a; i++)\n"
		/* 10 */ "		deep(i);\n"
		/* 11 */ "	return sink;\n"
		/* 12 */ "}\n"
		/* 13 */ "int main(int argc, char **argv) { (void)argv; return outer(argc); }\n";

static struct symbol find_outer(struct image *image, struct image *debug)
{
	struct symbols *symbols;
	const struct symbol *all;
	struct symbol outer = {0};
	size_t count;
	assert_null(symbols_read(image, debug, &symbols));
	count = symbols_all(symbols, &all);
	for (size_t i = 0; i < count; i++)
		if (strcmp(all[i].name, "outer") == 0)
			outer = all[i];
	assert_true(outer.size > 0);
	outer.name = NULL;
	symbols_free(symbols);
	return outer;
}

/* Every byte of `outer` has a row, all lines that must be there are. */
static void check_outer(const char *name, struct image *image, struct image *debug)
{
	struct lines *lines = open_lines(image, debug);
	struct symbol outer = find_outer(image, debug);
	const char *file = scratch_format("%s.c", scratch(name));
	uint64_t at = outer.address;
	unsigned int seen = 0;
	struct line_row *rows;
	size_t count = range(lines, outer.address, outer.address + outer.size, &rows);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(rows[i].address, at);
		at = rows[i].end;
		assert_true(rows[i].line <= 12);
		assert_string_equal(lines_file(lines, rows[i].file), file);
		seen |= 1u << rows[i].line;
	}
	assert_int_equal(at, outer.address + outer.size);
	assert_int_equal(seen & 0x110, 0x110); /* lines 4 and 8, and the loop */
	assert_true(seen & 0x600);
	assert_null(lines_damage(lines));
	free(rows);
	lines_close(lines);
}

static void compiled(void **state)
{
	static const char *const flags[] = {
		"-gdwarf-2",
		"-gdwarf-3",
		"-gdwarf-4",
		"-gdwarf-5",
		"-gz",
		"-flto",
		"-g1",
		"-gdwarf64",
		"-no-pie",
		"-gsplit-dwarf",
		"-O3",
		"-Og",
		"-gno-as-loc-support",
		"-ffunction-sections -Wl,--gc-sections",
	};
	static const char *const compilers[] = {"cc", "clang"};
	(void)state;
	for (size_t c = 0; c < 2; c++) {
		for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
			struct image *image;
			scratch_write("made.c", text, strlen(text));
			if (!scratch_run(scratch_format("%s -g -O2 %s -o made made.c", compilers[c],
							flags[i]))) {
				print_message("skipped: %s %s\n", compilers[c], flags[i]);
				continue;
			}
			image = open_image(scratch("made"));
			check_outer("made", image, NULL);
			image_close(image);
		}
	}
}

static void from_a_debug_file(void **state)
{
	struct image *image, *debug;
	(void)state;
	scratch_compile("whole", text, "-g -O2");
	assert_true(scratch_run("objcopy --only-keep-debug whole debug && strip -o bare whole"));
	image = open_image(scratch("bare"));
	debug = open_image(scratch("debug"));
	check_outer("whole", image, debug);
	image_close(image);
	image_close(debug);
}

/* Lines alone, as after objcopy took .debug_info away: paths lack the unit's directory only
   where the table does not have it. */
static void without_units(void **state)
{
	struct image *image;
	(void)state;
	scratch_compile("units", text, "-g -gdwarf-5 -O2");
	assert_true(
		scratch_run("objcopy --remove-section=.debug_info --remove-section=.debug_aranges "
			    "units"));
	image = open_image(scratch("units"));
	check_outer("units", image, NULL);
	image_close(image);
}

static void nothing_known(void **state)
{
	struct line_row *rows;
	struct image *image;
	struct lines *lines;
	(void)state;
	scratch_compile("none", text, "-O2 -s");
	image = open_image(scratch("none"));
	lines = open_lines(image, NULL);
	assert_int_equal(range(lines, 0, UINT64_MAX, &rows), 0);
	assert_null(lines_damage(lines));
	lines_close(lines);
	image_close(image);
}

/* ---- threads ---- */

struct asking {
	struct lines *lines;
	uint64_t start, end;
	uint64_t sum;
};

static void *ask(void *argument)
{
	struct asking *a = argument;
	for (int round = 0; round < 20; round++) {
		for (uint64_t at = a->start; at < a->end; at += 64) {
			struct line_row *rows;
			size_t count;
			if (lines_range(a->lines, at, at + 64, &rows, &count))
				return NULL;
			for (size_t i = 0; i < count; i++)
				a->sum += rows[i].line * (rows[i].end - rows[i].address) +
					  strlen(lines_file(a->lines, rows[i].file));
			free(rows);
		}
	}
	return NULL;
}

static void many_threads(void **state)
{
	struct asking asking[4];
	pthread_t threads[4];
	struct image *image;
	struct lines *lines;
	const struct image_section *code;
	(void)state;
	scratch_compile("threads", text, "-g -O2");
	image = open_image(scratch("threads"));
	code = image_section(image, ".text");
	lines = open_lines(image, NULL);
	for (int i = 0; i < 4; i++) {
		asking[i] = (struct asking){lines, code->address, code->address + code->size, 0};
		assert_int_equal(pthread_create(&threads[i], NULL, ask, &asking[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_true(asking[0].sum > 0);
	for (int i = 1; i < 4; i++)
		assert_int_equal(asking[i].sum, asking[0].sum);
	lines_close(lines);
	image_close(image);
}

/* ---- damage ---- */

static void ask_damaged(const uint8_t *bytes, size_t size)
{
	struct line_row *rows;
	struct lines *lines;
	struct image *image;
	struct err *e = image_open_memory(bytes, size, "damaged", &image);
	if (e) {
		err_free(e);
		return;
	}
	lines = open_lines(image, NULL);
	range(lines, 0, UINT64_MAX, &rows);
	free(rows);
	lines_close(lines);
	image_close(image);
}

static void damaged(void **state)
{
	static const uint8_t flips[] = {0xff, 0x80, 0x01, 0x55};
	struct image *image;
	uint8_t *bytes;
	size_t size;
	(void)state;
	scratch_compile("tiny", text, "-g -O2 -nostartfiles -Wl,-e,main");
	bytes = scratch_read("tiny", &size);
	image = open_image(scratch("tiny"));
	static const char *const names[] = {".debug_line", ".debug_info", ".debug_abbrev",
					    ".debug_aranges"};
	for (int n = 0; n < 4; n++) {
		const struct image_section *s = image_section(image, names[n]);
		for (size_t at = s->offset; at < s->offset + s->size; at++) {
			bytes[at] ^= flips[at % sizeof flips];
			ask_damaged(bytes, size);
			bytes[at] ^= flips[at % sizeof flips];
		}
	}
	image_close(image);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compiled),      cmocka_unit_test(from_a_debug_file),
		cmocka_unit_test(without_units), cmocka_unit_test(nothing_known),
		cmocka_unit_test(many_threads),  cmocka_unit_test(damaged),
	};
	return cmocka_run_group_tests_name("lines", tests, NULL, NULL);
}
