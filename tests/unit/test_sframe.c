/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "cfi_bytes.h"
#include "recipes/sframe.h"

enum { ADDRESS = 0x10000, START_PCREL = 4, V1 = 1, V2 = 2 };

static void put_header(struct bytes *b, unsigned version, unsigned flags, uint16_t machine,
		       uint32_t entries, uint32_t rows)
{
	bool arm = machine == EM_AARCH64;
	put16(b, 0xdee2);
	put8(b, version);
	put8(b, flags);
	put8(b, arm ? 2 : 3);
	put8(b, 0);
	put8(b, arm ? 0 : 0xf8); /* RA at CFA - 8 */
	put8(b, 0);
	put32(b, entries);
	put32(b, rows);
	put32(b, 0); /* size of the rows: put_done */
	put32(b, 0);
	put32(b, entries * (version == V1 ? 17 : 20));
}

static void put_procedure(struct bytes *b, unsigned version, int32_t start, uint32_t size,
			  uint32_t row_offset, uint32_t rows, unsigned kinds)
{
	put32(b, (uint32_t)start);
	put32(b, size);
	put32(b, row_offset);
	put32(b, rows);
	put8(b, kinds);
	if (version == V1)
		return;
	put8(b, 16);
	put16(b, 0);
}

static void put_done(struct bytes *b)
{
	uint32_t entries, row_offset, size;
	memcpy(&entries, b->data + 8, 4);
	memcpy(&row_offset, b->data + 24, 4);
	size = (uint32_t)b->size - 28 - row_offset;
	memcpy(b->data + 16, &size, 4);
}

static void read_sframe(const struct bytes *b, uint16_t machine, struct outcome *out)
{
	uint8_t *copy = malloc(b->size ? b->size : 1);
	struct cfi_section section = {.bytes = copy,
				      .size = b->size,
				      .address = ADDRESS,
				      .isa = isa_for_machine(machine)};
	assert_non_null(copy);
	memcpy(copy, b->data, b->size);
	memset(&out->stats, 0, sizeof out->stats);
	rows_init(&out->rows);
	assert_true(sframe_read_section(&section, &out->rows, &out->stats));
	rows_finish(&out->rows);
	free(copy);
}

static struct recipe sframe_recipe(uint8_t reg, int32_t offset)
{
	return (struct recipe){
		.cfa = RECIPE_REG, .cfa_reg = reg, .cfa_offset = offset, .extra = RECIPE_LOST};
}

static void expect_x86(unsigned version, unsigned flags)
{
	struct bytes b = {.size = 0};
	struct recipe wanted = sframe_recipe(7, 8);
	struct outcome out;
	put_header(&b, version, flags, EM_X86_64, 1, 3);
	put_procedure(&b, version, -0x8000 - (flags & START_PCREL ? 28 : 0), 0x100, 0, 3, 0);
	put(&b, "\x00\x03\x08", 3);             /* SP + 8 */
	put(&b, "\x01\x05\x10\xf0", 4);         /* SP + 16, FP at CFA - 16 */
	put(&b, "\x04\x24\x10\x00\xf0\xff", 6); /* FP + 16, two-byte offsets */
	put_done(&b);
	read_sframe(&b, EM_X86_64, &out);
	assert_int_equal(out.stats.entries, 1);
	assert_int_equal(out.stats.bad_entries, 0);
	wanted.ra = RECIPE_AT_CFA;
	wanted.ra_offset = -8;
	assert_recipe(recipe_at(&out, 0x8000), wanted);
	wanted.cfa_offset = 16;
	wanted.fp = RECIPE_AT_CFA;
	wanted.fp_offset = -16;
	assert_recipe(recipe_at(&out, 0x8001), wanted);
	wanted.cfa_reg = 6;
	assert_recipe(recipe_at(&out, 0x8004), wanted);
	assert_recipe(recipe_at(&out, 0x80ff), wanted);
	assert_int_equal(recipe_at(&out, 0x8100).cfa, RECIPE_NONE);
	rows_free(&out.rows);
}

static void x86_64_both_versions(void **state)
{
	(void)state;
	expect_x86(V1, 1);
	expect_x86(V2, 1);
	expect_x86(V2, 1 | START_PCREL);
}

static void aarch64_link_register(void **state)
{
	struct bytes b = {.size = 0};
	struct recipe wanted = sframe_recipe(31, 0);
	struct outcome out;
	(void)state;
	put_header(&b, V2, 1, EM_AARCH64, 1, 2);
	put_procedure(&b, V2, 0x100, 0x40, 0, 2, 1);
	put(&b, "\x00\x00\x03\x00", 4);
	put(&b, "\x08\x00\x07\x20\xe8\xe0", 6);
	put_done(&b);
	read_sframe(&b, EM_AARCH64, &out);
	assert_int_equal(out.stats.bad_entries, 0);
	assert_recipe(recipe_at(&out, ADDRESS + 0x104), wanted);
	wanted.cfa_offset = 32;
	wanted.ra = wanted.fp = RECIPE_AT_CFA;
	wanted.ra_offset = -24;
	wanted.fp_offset = -32;
	assert_recipe(recipe_at(&out, ADDRESS + 0x108), wanted);
	rows_free(&out.rows);
}

static void plt_repeats(void **state)
{
	struct bytes b = {.size = 0};
	struct outcome out;
	(void)state;
	put_header(&b, V2, 1, EM_X86_64, 1, 2);
	put_procedure(&b, V2, 0x100, 0x38, 0, 2, 0x10);
	put(&b, "\x00\x03\x08\x0b\x03\x10", 6);
	put_done(&b);
	read_sframe(&b, EM_X86_64, &out);
	assert_int_equal(out.stats.bad_entries, 0);
	for (unsigned i = 0; i < 0x38; i++)
		assert_int_equal(recipe_at(&out, ADDRESS + 0x100 + i).cfa_offset,
				 i % 16 >= 11 ? 16 : 8);
	assert_int_equal(recipe_at(&out, ADDRESS + 0x138).cfa, RECIPE_NONE);
	rows_free(&out.rows);
}

static void expect_left_out(const struct bytes *b, uint16_t machine)
{
	struct outcome out;
	read_sframe(b, machine, &out);
	assert_int_equal(out.stats.bad_entries, 1);
	assert_int_equal(out.rows.count, 0);
	rows_free(&out.rows);
}

static void hostile_bytes(void **state)
{
	struct bytes good = {.size = 0}, b;
	(void)state;
	put_header(&good, V2, 1, EM_X86_64, 1, 1);
	put_procedure(&good, V2, 0x100, 0x40, 0, 1, 0);
	put(&good, "\x00\x03\x08", 3);
	put_done(&good);
	expect_left_out(&good, EM_AARCH64); /* the other CPU's */
	b = good;
	b.data[2] = 3; /* a version to come */
	expect_left_out(&b, EM_X86_64);
	b = good;
	b.data[0] = 0;
	expect_left_out(&b, EM_X86_64);
	b = good;
	memset(b.data + 8, 0xff, 4); /* four billion procedures */
	expect_left_out(&b, EM_X86_64);
	b = good;
	memset(b.data + 12, 0x7f, 4); /* more rows than there are bytes */
	expect_left_out(&b, EM_X86_64);
	b = good;
	memset(b.data + 24, 0xff, 4); /* rows outside */
	expect_left_out(&b, EM_X86_64);
	b = good;
	b.data[28 + 12] = 9; /* more rows than the header says */
	expect_left_out(&b, EM_X86_64);
	b = good;
	memset(b.data + 28 + 8, 0xff, 4); /* first row outside */
	expect_left_out(&b, EM_X86_64);
	b = good;
	b.data[28 + 16] = 3; /* no such width of starts */
	expect_left_out(&b, EM_X86_64);
	b = good;
	memset(b.data + 28 + 4, 0, 4); /* empty procedure */
	expect_left_out(&b, EM_X86_64);
	b = good;
	b.data[28 + 20 + 1] = 0x01; /* a row without offsets */
	expect_left_out(&b, EM_X86_64);
	for (b = good; b.size; b.size--) {
		struct bytes cut = b;
		cut.size--;
		expect_left_out(&cut, EM_X86_64);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(x86_64_both_versions),
		cmocka_unit_test(aarch64_link_register),
		cmocka_unit_test(plt_repeats),
		cmocka_unit_test(hostile_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
