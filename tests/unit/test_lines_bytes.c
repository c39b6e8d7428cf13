/* SPDX-License-Identifier: Apache-2.0 */
/* Line tables written by hand: every opcode and version, odd orders, and what is hostile. */
#include "unit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "dwarf_bytes.h"
#include "lines_reader.h"

struct header {
	unsigned int version, minimum, opcode_base;
	int line_base, line_range;
	bool wide; /* 64-bit DWARF */
};

static const struct header ordinary = {4, 1, 13, -5, 14, false};

static void put_files(struct buf *b, const struct header *h)
{
	if (h->version < 5) {
		put_text(b, "inc");
		put_text(b, "/abs");
		put(b, 0, 1);
		buf_append(b, "a.c\0\0\0\0", 7);
		buf_append(b, "b.h\0\1\0\0", 7);
		buf_append(b, "c.h\0\2\0\0", 7);
		put(b, 0, 1);
		return;
	}
	put(b, 1, 1); /* directories: a path */
	put_uleb(b, DW_LNCT_path);
	put_uleb(b, DW_FORM_line_strp);
	put_uleb(b, 3);
	put(b, 0, h->wide ? 8 : 4);
	put(b, 5, h->wide ? 8 : 4);
	put(b, 9, h->wide ? 8 : 4);
	put(b, 3, 1); /* files: a path, a directory, a checksum */
	put_uleb(b, DW_LNCT_path);
	put_uleb(b, DW_FORM_string);
	put_uleb(b, DW_LNCT_directory_index);
	put_uleb(b, DW_FORM_data1);
	put_uleb(b, 5);
	put_uleb(b, DW_FORM_data16);
	put_uleb(b, 4);
	for (int i = 0; i < 4; i++) {
		static const char *const names[] = {"a.c", "a.c", "b.h", "c.h"};
		static const uint8_t directories[] = {0, 0, 1, 2};
		put_text(b, names[i]);
		put(b, directories[i], 1);
		put(b, 0x1234, 8);
		put(b, 0x5678, 8);
	}
}

/* One line table with this program. */
static void put_table(struct dwarf_bytes *d, const struct header *h, const struct buf *program)
{
	static const uint8_t operands[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0,
					   0, 1, 2, 0, 3, 1, 1, 1, 1, 1};
	struct buf *b = &d->parts[LINE], rest = {0}, body = {0};
	put(&rest, h->minimum, 1);
	if (h->version >= 4)
		put(&rest, 1, 1);
	put(&rest, 1, 1);
	put(&rest, (uint8_t)h->line_base, 1);
	put(&rest, (uint8_t)h->line_range, 1);
	put(&rest, h->opcode_base, 1);
	buf_append(&rest, operands, h->opcode_base - 1);
	put_files(&rest, h);
	put(&body, h->version, 2);
	if (h->version >= 5)
		put(&body, 0x0008, 2);
	put(&body, rest.size, h->wide ? 8 : 4);
	buf_append(&body, rest.data, rest.size);
	buf_append(&body, program->data, program->size);
	if (h->wide)
		put(b, 0xffffffff, 4);
	put(b, body.size, h->wide ? 8 : 4);
	buf_append(b, body.data, body.size);
	buf_free(&rest);
	buf_free(&body);
	if (h->version >= 5 && !d->parts[LINE_STR].size)
		buf_append(&d->parts[LINE_STR], "/dir\0inc\0/abs", 14);
}

static void set_address(struct buf *p, uint64_t address)
{
	put(p, 0, 1);
	put_uleb(p, 9);
	put(p, DW_LNE_set_address, 1);
	put(p, address, 8);
}

static void end_sequence(struct buf *p)
{
	buf_append(p, "\0\1\1", 3);
}

static void opcode(struct buf *p, unsigned int code, int64_t operand)
{
	put(p, code, 1);
	if (code == DW_LNS_advance_line)
		put_sleb(p, operand);
	else if (code == DW_LNS_fixed_advance_pc)
		put(p, (uint64_t)operand, 2);
	else if (code == DW_LNS_advance_pc || code == DW_LNS_set_file || code == DW_LNS_set_column)
		put_uleb(p, (uint64_t)operand);
}

/* Advances address and line by one special opcode. */
static void special(struct buf *p, const struct header *h, unsigned int steps, int line)
{
	put(p,
	    h->opcode_base + (unsigned int)(line - h->line_base) +
		    steps * (unsigned int)h->line_range,
	    1);
}

struct want {
	uint64_t start, end;
	const char *file;
	uint32_t line;
	uint16_t column, discriminator;
	bool statement;
};

static void check_rows(struct lines *lines, const struct want *want, size_t wanted)
{
	struct line_row *rows;
	size_t count = range(lines, 0, UINT64_MAX, &rows);
	assert_int_equal(count, wanted);
	for (size_t i = 0; i < count; i++) {
		const char *file = lines_file(lines, rows[i].file);
		assert_int_equal(rows[i].address, want[i].start);
		assert_int_equal(rows[i].end, want[i].end);
		assert_int_equal(rows[i].line, want[i].line);
		assert_int_equal(rows[i].column, want[i].column);
		assert_int_equal(rows[i].discriminator, want[i].discriminator);
		assert_int_equal(rows[i].statement, want[i].statement);
		assert_true(file && strcmp(file, want[i].file) == 0);
	}
	free(rows);
}

/* Every opcode, in every version, without .debug_info: the section itself is read. */
static void check_opcodes(const struct header *h)
{
	const char *a = h->version >= 5 ? "/dir/a.c" : "a.c";
	const char *b = h->version >= 5 ? "/dir/inc/b.h" : "inc/b.h";
	const uint64_t m = h->minimum, constant = (255 - h->opcode_base) / h->line_range * m;
	struct dwarf_bytes d = {0};
	struct buf p = {0};
	struct lines *lines;
	struct image *image;
	uint64_t at = CODE;
	set_address(&p, CODE);
	opcode(&p, DW_LNS_advance_line, 9);
	opcode(&p, DW_LNS_set_column, 300);
	opcode(&p, DW_LNS_copy, 0); /* line 10 */
	special(&p, h, 2, 3);       /* line 13 */
	opcode(&p, DW_LNS_advance_pc, 4);
	opcode(&p, DW_LNS_negate_stmt, 0);
	opcode(&p, DW_LNS_set_file, 2);
	buf_append(&p, "\0\2\4\7", 4); /* discriminator 7 */
	opcode(&p, DW_LNS_copy, 0);
	opcode(&p, DW_LNS_const_add_pc, 0);
	opcode(&p, DW_LNS_set_file, 3);
	opcode(&p, DW_LNS_advance_line, -13);
	opcode(&p, DW_LNS_copy, 0); /* line 0 */
	opcode(&p, DW_LNS_fixed_advance_pc, 3);
	opcode(&p, DW_LNS_set_column, 70000);
	special(&p, h, 0, 1); /* line 1 */
	if (h->opcode_base > 13)
		buf_append(&p, "\x0d\x85\x01\x02\x0e\x0f\1\2\3", 9); /* unknown ones */
	opcode(&p, DW_LNS_advance_pc, 1);
	end_sequence(&p);
	put_table(&d, h, &p);
	buf_free(&p);
	image = dwarf_image(&d);
	lines = open_lines(image, NULL);
	const struct want want[] = {
		{at, at + 2 * m, a, 10, 300, 0, true},
		{at + 2 * m, at + 6 * m, a, 13, 300, 0, true},
		{at + 6 * m, at + 6 * m + constant, b, 13, 300, 7, false},
		{at + 6 * m + constant, at + 6 * m + constant + 3, "/abs/c.h", 0, 300, 0, false},
		{at + 6 * m + constant + 3, at + 7 * m + constant + 3, "/abs/c.h", 1, 0, 0, false},
	};
	check_rows(lines, want, 5);
	assert_null(lines_damage(lines));
	lines_close(lines);
	image_close(image);
}

static void every_opcode(void **state)
{
	(void)state;
	for (unsigned int version = 2; version <= 5; version++) {
		for (int wide = 0; wide < 2; wide++) {
			check_opcodes(&(struct header){version, 1, 13, -5, 14, wide});
			check_opcodes(&(struct header){version, 4, 10, -3, 12, wide});
			check_opcodes(&(struct header){version, 2, 20, -1, 6, wide});
		}
	}
}

/* Sequences in any order, rows in any order, several rows of one address, what was dropped. */
static void odd_orders(void **state)
{
	const struct header *h = &ordinary;
	struct dwarf_bytes d = {0};
	struct buf p = {0};
	struct lines *lines;
	struct image *image;
	(void)state;
	set_address(&p, CODE + 0x100);
	special(&p, h, 0, 1); /* line 2 */
	special(&p, h, 0, 1); /* line 3, the same address */
	special(&p, h, 8, 1); /* line 4 */
	opcode(&p, DW_LNS_advance_pc, 8);
	end_sequence(&p);
	set_address(&p, 0); /* the linker dropped this function */
	special(&p, h, 0, 1);
	opcode(&p, DW_LNS_advance_pc, 0x1800);
	end_sequence(&p);
	set_address(&p, CODE + 0x40);
	special(&p, h, 0, 4); /* line 5 */
	set_address(&p, CODE + 0x20);
	special(&p, h, 0, 1); /* line 6 */
	set_address(&p, CODE + 0x60);
	end_sequence(&p);
	put(&p, 0, 1); /* a file that the program defines, number 4 */
	put_uleb(&p, 8);
	buf_append(&p, "\3d.h\0\1\0\0", 8);
	set_address(&p, CODE + 0x80);
	opcode(&p, DW_LNS_set_file, 4);
	opcode(&p, DW_LNS_copy, 0);
	opcode(&p, DW_LNS_advance_pc, 4);
	opcode(&p, DW_LNS_set_file, 2);
	end_sequence(&p);
	set_address(&p, CODE + 0x108); /* overlaps the first: that one counts */
	special(&p, h, 0, 1);
	opcode(&p, DW_LNS_advance_pc, 0x10);
	end_sequence(&p);
	put_table(&d, h, &p);
	buf_free(&p);
	image = dwarf_image(&d);
	lines = open_lines(image, NULL);
	static const struct want want[] = {
		{CODE + 0x20, CODE + 0x40, "a.c", 6, 0, 0, true},
		{CODE + 0x40, CODE + 0x60, "a.c", 5, 0, 0, true},
		{CODE + 0x80, CODE + 0x84, "inc/d.h", 1, 0, 0, true},
		{CODE + 0x100, CODE + 0x108, "a.c", 3, 0, 0, true},
		{CODE + 0x108, CODE + 0x110, "a.c", 4, 0, 0, true},
		{CODE + 0x110, CODE + 0x118, "a.c", 2, 0, 0, true},
	};
	check_rows(lines, want, 6);
	lines_close(lines);
	image_close(image);
}

static void cut_at_both_ends(void **state)
{
	struct dwarf_bytes d = {0};
	struct buf p = {0};
	struct line_row *rows;
	struct lines *lines;
	struct image *image;
	(void)state;
	set_address(&p, CODE);
	special(&p, &ordinary, 0, 1);
	special(&p, &ordinary, 16, 1);
	special(&p, &ordinary, 16, 1);
	opcode(&p, DW_LNS_advance_pc, 16);
	end_sequence(&p);
	put_table(&d, &ordinary, &p);
	buf_free(&p);
	image = dwarf_image(&d);
	lines = open_lines(image, NULL);
	assert_int_equal(range(lines, CODE + 4, CODE + 36, &rows), 3);
	assert_int_equal(rows[0].address, CODE + 4);
	assert_int_equal(rows[0].line, 2);
	assert_int_equal(rows[2].end, CODE + 36);
	assert_int_equal(rows[2].line, 4);
	free(rows);
	assert_int_equal(range(lines, CODE + 20, CODE + 21, &rows), 1);
	assert_int_equal(rows[0].line, 3);
	free(rows);
	assert_int_equal(range(lines, CODE + 48, CODE + 64, &rows), 0);
	assert_int_equal(range(lines, CODE + 20, CODE + 20, &rows), 0);
	assert_int_equal(range(lines, CODE + 20, CODE, &rows), 0);
	assert_null(lines_file(lines, 0));
	assert_null(lines_file(lines, UINT32_MAX));
	lines_close(lines);
	image_close(image);
}

/* Two units that both claim the code; .debug_aranges names the second. */
static void the_address_table_wins(void **state)
{
	static const uint8_t abbrevs[] = {1, 0x11, 0, 0x10, 0x17, 0x11, 0x01, 0x12, 0x07, 0, 0, 0};
	struct dwarf_bytes d = {0};
	struct buf *info = &d.parts[INFO], *addresses = &d.parts[ARANGES];
	size_t tables[2], second = 0;
	struct line_row *rows;
	struct lines *lines;
	struct image *image;
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct buf p = {0};
		tables[i] = d.parts[LINE].size;
		set_address(&p, CODE);
		opcode(&p, DW_LNS_advance_line, 10 * (i + 1) - 1);
		opcode(&p, DW_LNS_copy, 0);
		opcode(&p, DW_LNS_advance_pc, 16);
		end_sequence(&p);
		put_table(&d, &ordinary, &p);
		buf_free(&p);
		second = info->size;
		size_t length = put_length(info);
		put(info, 4, 2);
		put(info, 0, 4);
		put(info, 8, 1);
		put(info, 1, 1);
		put(info, tables[i], 4);
		put(info, CODE, 8);
		put(info, 16, 8);
		end_length(info, length);
	}
	buf_append(&d.parts[ABBREV], abbrevs, sizeof abbrevs);
	size_t length = put_length(addresses);
	put(addresses, 2, 2);
	put(addresses, second, 4);
	put(addresses, 8, 2);
	put(addresses, 0, 4); /* so that pairs are aligned */
	put(addresses, CODE, 8);
	put(addresses, 8, 8);
	put(addresses, 0, 8);
	put(addresses, 0, 8);
	end_length(addresses, length);
	image = dwarf_image(&d);
	lines = open_lines(image, NULL);
	assert_int_equal(range(lines, 0, UINT64_MAX, &rows), 2);
	assert_int_equal(rows[0].line, 20);
	assert_int_equal(rows[0].end, CODE + 8);
	assert_int_equal(rows[1].line, 10);
	assert_int_equal(rows[0].file, rows[1].file); /* equal paths, equal numbers */
	free(rows);
	assert_null(lines_damage(lines));
	lines_close(lines);
	image_close(image);
}

/* ---- hostile programs ---- */

/* Whatever it says, it is read, in bounds, and named where it is broken. */
static void survive(struct dwarf_bytes *d, bool broken, size_t most)
{
	struct image *image = dwarf_image(d);
	struct lines *lines = open_lines(image, NULL);
	struct line_row *rows;
	assert_true(range(lines, 0, UINT64_MAX, &rows) <= most);
	free(rows);
	assert_true(!broken || lines_damage(lines));
	lines_close(lines);
	image_close(image);
}

static void hostile_programs(void **state)
{
	struct dwarf_bytes d = {0};
	struct buf p = {0};
	(void)state;
	/* Addresses that run around the address space, and never come back. */
	set_address(&p, CODE);
	for (int i = 0; i < 1000; i++) {
		opcode(&p, DW_LNS_advance_pc, INT64_MAX);
		opcode(&p, DW_LNS_copy, 0);
	}
	end_sequence(&p);
	put_table(&d, &ordinary, &p);
	survive(&d, false, 1000);
	/* A program that does not end its sequence, and one cut in an operand. */
	buf_clear(&p);
	set_address(&p, CODE);
	opcode(&p, DW_LNS_copy, 0);
	put_table(&d, &ordinary, &p);
	survive(&d, true, 0);
	put(&p, DW_LNS_advance_pc, 1);
	put(&p, 0xffffffffffffffff, 8);
	put(&p, 0xffffffffffffffff, 8);
	put(&p, 0xffffffffffffffff, 8);
	put_table(&d, &ordinary, &p);
	survive(&d, true, 0);
	/* An extended opcode that is longer than the program. */
	buf_clear(&p);
	buf_append(&p, "\0\xff\xff\x7f\2", 5);
	put_table(&d, &ordinary, &p);
	survive(&d, true, 0);
	/* No line range: special opcodes would divide by zero. */
	buf_clear(&p);
	buf_append(&p, "\xff\xff", 2);
	put_table(&d, &(struct header){4, 1, 13, -5, 0, false}, &p);
	survive(&d, true, 0);
	buf_free(&p);
}

/* Files without bytes, more files than bytes, and paths that together would be gigabytes. */
static void hostile_headers(void **state)
{
	struct dwarf_bytes d = {0};
	struct buf *b = &d.parts[LINE];
	char *name = malloc(100001);
	(void)state;
	for (int formats = 0; formats < 2; formats++) {
		size_t length = put_length(b);
		put(b, 5, 2);
		put(b, 8, 2);
		put(b, 1000, 4);
		put(b, 0x01fb0101010e01, 7);
		put(b, (uint64_t)formats, 1);
		if (formats)
			buf_append(b, "\1\x19", 2); /* a path as a flag: no bytes */
		put_uleb(b, UINT64_MAX);
		put(b, 0, 8);
		end_length(b, length);
		survive(&d, true, 0);
	}
	size_t length = put_length(b);
	put(b, 4, 2);
	size_t header = put_length(b);
	put(b, 0x01, 1);
	put(b, 0x0d0efb0101, 5);
	buf_append(b, "\0\1\1\1\1\0\0\0\1\0\0\1", 12);
	memset(name, 'd', 100000);
	name[100000] = 0;
	put_text(b, name + 96000);
	put(b, 0, 1);
	for (int i = 0; i < 100000; i++)
		buf_append(b, "f\0\1\0\0", 5);
	put(b, 0, 1);
	end_length(b, header);
	set_address(b, CODE);
	for (int i = 1; i <= 100000; i++) {
		opcode(b, DW_LNS_set_file, i);
		put(b, 32, 1);
	}
	end_sequence(b);
	end_length(b, length);
	survive(&d, false, 100000);
	free(name);
}

/* Tables that begin inside of each other: each unit's would be the whole section. */
static void overlapping_tables(void **state)
{
	static const uint8_t abbrevs[] = {1, 0x11, 0, 0x10, 0x17, 0x11, 0x01, 0x12, 0x0b, 0, 0, 0};
	struct dwarf_bytes d = {0};
	struct buf *info = &d.parts[INFO], *line = &d.parts[LINE];
	const size_t count = 2000, program = 100000;
	(void)state;
	buf_append(&d.parts[ABBREV], abbrevs, sizeof abbrevs);
	for (size_t i = 0; i < count; i++) {
		size_t length = put_length(info);
		put(info, 4, 2);
		put(info, 0, 4);
		put(info, 8, 1);
		put(info, 1, 1);
		put(info, i * 34, 4);
		put(info, CODE + 4 * i, 8);
		put(info, 4, 1);
		end_length(info, length);
		/* A header that says nothing but that all of the rest is its program. */
		put(line, (count - i) * 34 - 4 + program, 4);
		put(line, 4, 2);
		put(line, 24, 4);
		put(line, 0x01, 1);
		put(line, 0x0d0efb0101, 5);
		buf_append(line, "\0\1\1\1\1\0\0\0\1\0\0\1", 12);
		put(line, 0, 6);
	}
	for (size_t i = 0; i < program; i++)
		put(line, 0x20, 1);
	survive(&d, true, 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_opcode),       cmocka_unit_test(odd_orders),
		cmocka_unit_test(cut_at_both_ends),   cmocka_unit_test(the_address_table_wins),
		cmocka_unit_test(hostile_programs),   cmocka_unit_test(hostile_headers),
		cmocka_unit_test(overlapping_tables),
	};
	return cmocka_run_group_tests_name("lines_bytes", tests, NULL, NULL);
}
