/* SPDX-License-Identifier: Apache-2.0 */
/* Sections of call-frame information: their forms, and what hostile bytes do (nothing). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "base/err.h"
#include "cfi_bytes.h"
#include "image/image.h"

static const struct recipe entry_x86 = {
	.cfa = RECIPE_REG, .cfa_reg = 7, .cfa_offset = 8, .ra = RECIPE_AT_CFA, .ra_offset = -8};

/* ---- forms ---- */

static void several_entries_and_terminator(void **state)
{
	struct bytes b = {.size = 0};
	size_t cie = put_cie(&b, EM_X86_64, "");
	struct outcome out;
	(void)state;
	put_fde(&b, cie, 0x1000, 0x10, "", 0);
	put_fde(&b, cie, 0x3000, 0x10, "\x0e\x20", 2);
	cie = put_cie(&b, EM_X86_64, "S");
	put_fde(&b, cie, 0x2000, 0x10, "\x0e\x20", 2);
	put32(&b, 0);
	put64(&b, UINT64_MAX / 3); /* whatever comes after it */
	read_bytes(&b, EM_X86_64, true, &out);
	assert_int_equal(out.stats.entries, 3);
	assert_int_equal(out.stats.bad_entries, 0);
	assert_recipe(recipe_at(&out, 0x1000), entry_x86);
	assert_int_equal(recipe_at(&out, 0x1010).cfa, RECIPE_NONE);
	assert_recipe(recipe_at(&out, 0x2000), (struct recipe){.cfa = RECIPE_SIGNAL});
	assert_recipe(recipe_at(&out, 0x200f), (struct recipe){.cfa = RECIPE_SIGNAL});
	assert_int_equal(recipe_at(&out, 0x300f).cfa_offset, 0x20);
	rows_free(&out.rows);
}

static void aarch64_letters(void **state)
{
	struct bytes b = {.size = 0};
	size_t cie = put_cie(&b, EM_AARCH64, "BG");
	struct outcome out;
	(void)state;
	put_fde(&b, cie, 0x1000, 0x10, "", 0);
	read_bytes(&b, EM_AARCH64, true, &out);
	assert_int_equal(out.stats.bad_entries, 0);
	assert_recipe(recipe_at(&out, 0x100c), (struct recipe){.cfa = RECIPE_REG, .cfa_reg = 31});
	rows_free(&out.rows);
}

/* "zPLR" with this encoding of addresses. */
static size_t put_cie_encoded(struct bytes *b, uint8_t encoding)
{
	size_t offset = entry_begin(b);
	put32(b, 0);
	put8(b, 1);
	put(b, "zPLR", 5);
	put8(b, 1);
	put8(b, 0x78);
	put8(b, 16);
	put_uleb(b, 7);
	put8(b, 0x9b); /* personality: indirect pcrel sdata4 */
	put32(b, 0x1234);
	put8(b, 0x1b); /* LSDA */
	put8(b, encoding);
	put(b, "\x0c\x07\x08\x90\x01", 5);
	entry_end(b);
	return offset;
}

static void expect_encoded(uint8_t encoding, size_t width, uint64_t base)
{
	struct bytes b = {.size = 0};
	size_t cie = put_cie_encoded(&b, encoding);
	uint64_t start, size = 0x40;
	struct outcome out;
	entry_begin(&b);
	put32(&b, (uint32_t)(b.size - cie));
	if ((encoding & 0x70) == 0x50)
		while (b.size % 8)
			put8(&b, 0);
	start = 0x25000 - (base == 1 ? 0x10000 + b.size : base);
	put(&b, &start, width);
	put(&b, &size, width);
	put_uleb(&b, 4);
	put32(&b, 0x77);
	entry_end(&b);
	read_bytes(&b, EM_X86_64, true, &out);
	assert_int_equal(out.stats.entries, 1);
	assert_int_equal(out.stats.bad_entries, 0);
	assert_recipe(recipe_at(&out, 0x25000), entry_x86);
	assert_int_equal(recipe_at(&out, 0x24fff).cfa, RECIPE_NONE);
	assert_recipe(recipe_at(&out, 0x2503f), entry_x86);
	assert_int_equal(recipe_at(&out, 0x25040).cfa, RECIPE_NONE);
	rows_free(&out.rows);
}

static void pointer_encodings(void **state)
{
	(void)state;
	expect_encoded(0x00, 8, 0);
	expect_encoded(0x03, 4, 0);
	expect_encoded(0x04, 8, 0);
	expect_encoded(0x0b, 4, 0);
	expect_encoded(0x0c, 8, 0);
	expect_encoded(0x1b, 4, 1); /* from here, as all compilers write it */
	expect_encoded(0x1c, 8, 1);
	expect_encoded(0x2b, 4, 0x30000);
	expect_encoded(0x3b, 4, 0x20000);
	expect_encoded(0x32, 2, 0x20000);
	expect_encoded(0x3a, 2, 0x20000);
	expect_encoded(0x50, 8, 0);
}

static void leb_encoded_pointers(void **state)
{
	struct bytes b = {.size = 0};
	size_t cie = put_cie_encoded(&b, 0x01);
	struct outcome out;
	(void)state;
	entry_begin(&b);
	put32(&b, (uint32_t)(b.size - cie));
	put_uleb(&b, 0x25000);
	put_uleb(&b, 0x300);
	put_uleb(&b, 4);
	put32(&b, 0x77);
	entry_end(&b);
	read_bytes(&b, EM_X86_64, true, &out);
	assert_int_equal(out.stats.bad_entries, 0);
	assert_recipe(recipe_at(&out, 0x252ff), entry_x86);
	rows_free(&out.rows);
}

static void wide_lengths(void **state)
{
	struct bytes b = {.size = 0};
	size_t cie = put_cie(&b, EM_X86_64, ""), id;
	struct outcome out;
	(void)state;
	put32(&b, UINT32_MAX);
	put64(&b, 4 + 8 + 8 + 1);
	id = b.size;
	put32(&b, (uint32_t)(id - cie));
	put64(&b, 0x1000);
	put64(&b, 0x10);
	put8(&b, 0);
	put_fde(&b, cie, 0x2000, 0x10, "", 0);
	read_bytes(&b, EM_X86_64, true, &out);
	assert_int_equal(out.stats.entries, 2);
	assert_int_equal(out.stats.bad_entries, 0);
	assert_recipe(recipe_at(&out, 0x1000), entry_x86);
	assert_recipe(recipe_at(&out, 0x2000), entry_x86);
	rows_free(&out.rows);
}

/* A CIE of .debug_frame in 32-bit or 64-bit DWARF. */
static void put_debug_cie(struct bytes *b, bool wide, uint8_t version)
{
	size_t begin;
	if (wide) {
		put32(b, UINT32_MAX);
		put64(b, 0);
	} else {
		put32(b, 0);
	}
	begin = b->size;
	put32(b, UINT32_MAX);
	if (wide)
		put32(b, UINT32_MAX);
	put8(b, version);
	put8(b, 0);
	if (version == 4)
		put(b, "\x08\x00", 2);
	put(b, "\x01\x78\x10\x0c\x07\x08\x90\x01", 8);
	b->data[begin - (wide ? 8 : 4)] = (uint8_t)(b->size - begin);
}

static void expect_debug_frame(bool wide, uint8_t version)
{
	struct bytes b = {.size = 0};
	struct outcome out;
	put_debug_cie(&b, wide, version);
	for (int i = 0; i < 3; i++) { /* the second is of code that the linker dropped */
		put32(&b, wide ? UINT32_MAX : 4 + 8 + 8 + 2);
		if (wide)
			put64(&b, 8 + 8 + 8 + 2);
		put32(&b, 0); /* the CIE's offset */
		if (wide)
			put32(&b, 0);
		put64(&b, i == 1 ? 0 : 0x1000 * (uint64_t)(i + 1));
		put64(&b, 0x10);
		put(&b, "\x0e\x10", 2);
	}
	read_bytes(&b, EM_X86_64, false, &out);
	assert_int_equal(out.stats.entries, 3);
	assert_int_equal(out.stats.bad_entries, 0);
	assert_int_equal(recipe_at(&out, 0x1000).cfa_offset, 16);
	assert_int_equal(recipe_at(&out, 0x3000).cfa_offset, 16);
	assert_int_equal(recipe_at(&out, 0).cfa, RECIPE_NONE);
	rows_free(&out.rows);
}

static void debug_frame(void **state)
{
	(void)state;
	for (int wide = 0; wide < 2; wide++) {
		expect_debug_frame(wide, 1);
		expect_debug_frame(wide, 3);
		expect_debug_frame(wide, 4);
	}
}

static void code_must_be_executable(void **state)
{
	const struct image_segment segments[] = {
		{.address = 0x1000, .size = 0x1000, .executable = true},
		{.address = 0x2000, .size = 0x1000},
	};
	struct bytes b = {.size = 0};
	size_t cie = put_cie(&b, EM_X86_64, "");
	struct cfi_section section = {.bytes = b.data,
				      .isa = isa_for_machine(EM_X86_64),
				      .is_eh = true,
				      .segments = segments,
				      .segment_count = 2};
	struct outcome out = {.stats = {0}};
	(void)state;
	put_fde(&b, cie, 0x1000, 0x1000, "", 0);
	put_fde(&b, cie, 0x1ff0, 0x20, "\x0e\x10", 2);
	put_fde(&b, cie, 0x2000, 0x20, "\x0e\x10", 2);
	put_fde(&b, cie, 0x0fff, 0x20, "\x0e\x10", 2);
	section.size = b.size;
	rows_init(&out.rows);
	assert_true(cfi_read_section(&section, &out.rows, &out.stats));
	rows_finish(&out.rows);
	assert_int_equal(out.stats.entries, 4);
	assert_int_equal(out.stats.bad_entries, 3);
	assert_int_equal(out.rows.count, 2);
	assert_recipe(recipe_at(&out, 0x1fff), entry_x86);
	rows_free(&out.rows);
}

/* This program's own startup code, whose author says (after the first instruction) that nobody
   called it. */
static void own_executable(void **state)
{
	struct cfi_landing *landings;
	struct image *image;
	struct outcome out;
	size_t count;
	(void)state;
	assert_null(image_open("/proc/self/exe", &image));
	rows_init(&out.rows);
	assert_null(cfi_read(image, NULL, &out.rows, &out.stats));
	rows_finish(&out.rows);
	assert_true(out.stats.entries > 10);
	assert_int_equal(out.stats.bad_entries, 0);
	assert_int_equal(recipe_at(&out, image_entry(image) + 8).cfa, RECIPE_ROOT);
	assert_null(cfi_landings(image, &landings, &count));
	free(landings);
	rows_free(&out.rows);
	image_close(image);
}

/* ---- hostile bytes ---- */

static void expect_bad(const struct bytes *b, unsigned entries, unsigned bad)
{
	struct outcome out;
	read_bytes(b, EM_X86_64, true, &out);
	assert_int_equal(out.stats.entries, entries);
	assert_int_equal(out.stats.bad_entries, bad);
	assert_int_equal(out.rows.count, 0);
	rows_free(&out.rows);
}

static void length_past_the_end(void **state)
{
	static const uint32_t lengths[] = {0x1000, 0x7fffffff, 0xffffffef, 0xfffffff0, 0xfffffffe};
	struct bytes b = {.size = 0};
	(void)state;
	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
		b.size = 0;
		put32(&b, lengths[i]);
		put64(&b, 0);
		expect_bad(&b, 0, 1);
	}
	b.size = 0;
	put32(&b, UINT32_MAX);
	put64(&b, UINT64_MAX);
	put64(&b, 0);
	expect_bad(&b, 0, 1);
	b.size = 0;
	put32(&b, UINT32_MAX);
	put32(&b, 0);
	expect_bad(&b, 0, 1);
	b.size = 0;
	expect_bad(&b, 0, 0);
}

static void pointers_to_no_cie(void **state)
{
	struct bytes b = {.size = 0};
	size_t cie, fde;
	(void)state;
	cie = put_cie(&b, EM_X86_64, "");
	fde = put_fde(&b, cie, 0x1000, 0x10, "", 0);
	b.data[fde + 4] = 4; /* itself */
	expect_bad(&b, 1, 1);
	memset(b.data + fde + 4, 0xff, 4); /* before the section */
	expect_bad(&b, 1, 1);
	memset(b.data + fde + 4, 0, 4);
	b.data[fde + 4] = (uint8_t)(fde + 4 - 3); /* into the CIE */
	expect_bad(&b, 1, 1);
}

static void debug_frame_pointer_outside(void **state)
{
	struct bytes b = {.size = 0};
	struct outcome out;
	(void)state;
	put_debug_cie(&b, false, 3);
	put32(&b, 20);
	put32(&b, 0x7fffffff);
	put64(&b, 0x1000);
	put64(&b, 0x10);
	read_bytes(&b, EM_X86_64, false, &out);
	assert_int_equal(out.stats.bad_entries, 1);
	rows_free(&out.rows);
}

static void unknown_versions_and_letters(void **state)
{
	struct bytes b = {.size = 0};
	size_t cie = put_cie(&b, EM_X86_64, "");
	(void)state;
	put_fde(&b, cie, 0x1000, 0x10, "", 0);
	b.data[8] = 2;
	expect_bad(&b, 1, 1);
	b.data[8] = 99;
	expect_bad(&b, 1, 1);
	b.data[8] = 1;
	b.data[10] = 'Q';
	expect_bad(&b, 1, 1);
	b.size = 0;
	cie = put_cie(&b, EM_X86_64, "PL"); /* whose data is not there */
	put_fde(&b, cie, 0x1000, 0x10, "", 0);
	expect_bad(&b, 1, 1);
}

static void strange_ranges(void **state)
{
	struct bytes b = {.size = 0};
	size_t cie = put_cie(&b, EM_X86_64, "");
	(void)state;
	put_fde(&b, cie, 0x1000, 0, "", 0);
	put_fde(&b, cie, 0x1000, UINT64_MAX, "", 0);
	put_fde(&b, cie, UINT64_MAX - 1, 2, "", 0);
	expect_bad(&b, 3, 3);
}

static void expect_bad_program(const void *program, size_t size)
{
	struct outcome out;
	run_program(EM_X86_64, program, size, &out);
	assert_int_equal(out.stats.entries, 1);
	assert_int_equal(out.stats.bad_entries, 1);
	assert_int_equal(out.rows.count, 0);
	rows_free(&out.rows);
}
#define BAD(program) expect_bad_program(program, sizeof program - 1)

static void damaged_programs(void **state)
{
	uint8_t remember[65];
	(void)state;
	BAD("\x0b");                                         /* restore_state, nothing remembered */
	BAD("\x41\x0e\x10\x0b");                             /* … the rows before it go too */
	BAD("\x0e\x80");                                     /* uleb without its end */
	BAD("\x0e\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"); /* uleb of 70 bits */
	BAD("\x0f\x20\x77");                                 /* expression longer than the entry */
	BAD("\x0f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x77");
	BAD("\x10\x06");
	BAD("\x03\x01"); /* advance_loc2 cut short */
	BAD("\x17");     /* no such instruction */
	BAD("\x3f");
	BAD("\x01\x00\x08\x00\x00\x00\x00\x00\x00"); /* set_loc backward */
	memset(remember, 0x0a, sizeof remember);
	expect_bad_program(remember, sizeof remember);
}

static void rows_past_the_end_are_cut(void **state)
{
	static const char *const programs[] = {
		"\x0e\x10\x1d\xff\xff\xff\xff\xff\xff\xff\xff\x0e\x20",
		"\x0e\x10\x04\xff\xff\xff\xff\x00\x00\x0e\x20\x00\x00",
		"\x0e\x10\x04\x00\x01\x00\x00\x0e\x20\x00\x00\x00\x00",
		"\x0e\x10\x01\x00\x20\x00\x00\x00\x00\x00\x00\x0e\x20",
	};
	(void)state;
	for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
		struct outcome out;
		run_program(EM_X86_64, programs[i], 13, &out);
		assert_int_equal(out.stats.bad_entries, 0);
		assert_int_equal(out.rows.count, 2);
		assert_int_equal(recipe_at(&out, 0x10ff).cfa_offset, 0x10);
		assert_int_equal(recipe_at(&out, 0x1100).cfa, RECIPE_NONE);
		rows_free(&out.rows);
	}
}

static void alignments_that_overflow(void **state)
{
	struct bytes b = {.size = 0};
	size_t cie = entry_begin(&b);
	struct outcome out;
	(void)state;
	put32(&b, 0);
	put8(&b, 1);
	put8(&b, 0);
	put_uleb(&b, UINT64_MAX); /* code alignment */
	put(&b, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f",
	    10); /* data alignment: the least number */
	put8(&b, 16);
	put(&b, "\x0c\x07\x08\x90\x01", 5);
	entry_end(&b);
	entry_begin(&b);
	put32(&b, (uint32_t)(b.size - cie));
	put64(&b, 0x1000);
	put64(&b, 0x10);
	put(&b, "\x42\x90\x03\x7f", 4);
	entry_end(&b);
	read_bytes(&b, EM_X86_64, true, &out);
	assert_int_equal(out.stats.entries, 1);
	assert_int_equal(recipe_at(&out, 0x1000).cfa, RECIPE_COMPLEX);
	assert_int_equal(out.stats.complex_rows, 1);
	rows_free(&out.rows);
}

/* Cut at every length, and each byte turned into some others: no crash, and bounded rows. */
static void cut_and_flipped(void **state)
{
	static const uint8_t program[] =
		"\x41\x0e\x10\x86\x02\x0a\x43\x0d\x06\x0f\x0b\x77\x08\x80\x00\x3f"
		"\x1a\x3b\x2a\x33\x24\x22\x41\x0b\x10\x06\x02\x76\x00";
	struct bytes b = {.size = 0};
	size_t cie = put_cie(&b, EM_X86_64, ""), size;
	struct outcome out;
	(void)state;
	put_fde(&b, cie, 0x1000, 0x100, program, sizeof program - 1);
	size = b.size;
	for (b.size = 0; b.size < size; b.size++) {
		read_bytes(&b, EM_X86_64, true, &out);
		rows_free(&out.rows);
	}
	for (size_t i = 0; i < size; i++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			b.data[i] ^= (uint8_t)(1u << bit);
			read_bytes(&b, bit & 1 ? EM_X86_64 : EM_AARCH64, bit & 2, &out);
			assert_true(out.rows.count < 1000);
			rows_free(&out.rows);
			b.data[i] ^= (uint8_t)(1u << bit);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(several_entries_and_terminator),
		cmocka_unit_test(aarch64_letters),
		cmocka_unit_test(pointer_encodings),
		cmocka_unit_test(leb_encoded_pointers),
		cmocka_unit_test(wide_lengths),
		cmocka_unit_test(debug_frame),
		cmocka_unit_test(code_must_be_executable),
		cmocka_unit_test(own_executable),
		cmocka_unit_test(length_past_the_end),
		cmocka_unit_test(pointers_to_no_cie),
		cmocka_unit_test(debug_frame_pointer_outside),
		cmocka_unit_test(unknown_versions_and_letters),
		cmocka_unit_test(strange_ranges),
		cmocka_unit_test(damaged_programs),
		cmocka_unit_test(rows_past_the_end_are_cut),
		cmocka_unit_test(alignments_that_overflow),
		cmocka_unit_test(cut_and_flipped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
