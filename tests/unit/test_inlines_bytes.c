/* SPDX-License-Identifier: Apache-2.0 */
/* Procedures and inlining from DWARF written by hand: what compilers seldom write, and what none
   would. */
#include "unit.h"

#include <stdint.h>
#include <string.h>

#include "dwarf_bytes.h"
#include "inlines_reader.h"

/* Abbreviations: a number, a tag, whether it has children, pairs of attribute and form. */
static void abbreviate(struct buf *b, unsigned int code, unsigned int tag, bool children,
		       const uint16_t *pairs)
{
	put_uleb(b, code);
	put_uleb(b, tag);
	put(b, children, 1);
	for (; pairs[0]; pairs += 2) {
		put_uleb(b, pairs[0]);
		put_uleb(b, pairs[1]);
		if (pairs[1] == DW_FORM_implicit_const)
			put_sleb(b, 77);
	}
	put(b, 0, 2);
}

#define PAIRS(...) ((const uint16_t[]){__VA_ARGS__, 0, 0})

enum {
	UNIT = 1,
	FUNCTION,   /* name, low, high as a distance, line 77 */
	ABSTRACT,   /* name */
	INLINED,    /* origin, low, high, call line */
	LISTED,     /* origin, ranges, call line 77 */
	BLOCK,      /* nothing */
	CHAINED,    /* origin and specification only */
	EMPTY,      /* inlined, without addresses */
	RANGED,     /* a function with ranges */
	SIBLING,    /* a variable with children and a sibling */
	INDIRECT,   /* a function whose name says its form itself */
	PLAIN_UNIT, /* without addresses */
	FAR,        /* inlined, origin in another unit */
	PLACED,     /* abstract, with a place */
	CALLED,     /* inlined, with the place of the call */
	INSTANCE,   /* of an abstract one */
	LONG_CODE = 300,
};

static void put_abbrevs(struct buf *b)
{
	abbreviate(b, UNIT, DW_TAG_compile_unit, true,
		   PAIRS(DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, DW_AT_producer,
			 DW_FORM_string));
	abbreviate(b, FUNCTION, DW_TAG_subprogram, true,
		   PAIRS(DW_AT_name, DW_FORM_string, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc,
			 DW_FORM_udata, DW_AT_decl_line, DW_FORM_implicit_const));
	abbreviate(b, ABSTRACT, DW_TAG_subprogram, false, PAIRS(DW_AT_name, DW_FORM_string));
	abbreviate(b, INLINED, DW_TAG_inlined_subroutine, true,
		   PAIRS(DW_AT_abstract_origin, DW_FORM_ref4, DW_AT_low_pc, DW_FORM_addr,
			 DW_AT_high_pc, DW_FORM_data2, DW_AT_call_line, DW_FORM_udata));
	abbreviate(b, LISTED, DW_TAG_inlined_subroutine, true,
		   PAIRS(DW_AT_abstract_origin, DW_FORM_ref4, DW_AT_ranges, DW_FORM_sec_offset,
			 DW_AT_call_line, DW_FORM_implicit_const));
	abbreviate(b, BLOCK, DW_TAG_lexical_block, true,
		   PAIRS(DW_AT_decl_line, DW_FORM_flag_present));
	abbreviate(b, CHAINED, DW_TAG_subprogram, false,
		   PAIRS(DW_AT_abstract_origin, DW_FORM_ref4, DW_AT_specification, DW_FORM_ref4));
	abbreviate(b, EMPTY, DW_TAG_inlined_subroutine, true,
		   PAIRS(DW_AT_abstract_origin, DW_FORM_ref4, DW_AT_call_line, DW_FORM_data1));
	abbreviate(b, RANGED, DW_TAG_subprogram, true,
		   PAIRS(DW_AT_name, DW_FORM_string, DW_AT_ranges, DW_FORM_sec_offset));
	abbreviate(b, SIBLING, DW_TAG_variable, true, PAIRS(DW_AT_sibling, DW_FORM_ref4));
	abbreviate(b, INDIRECT, DW_TAG_subprogram, false,
		   PAIRS(DW_AT_name, DW_FORM_indirect, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc,
			 DW_FORM_indirect));
	abbreviate(b, PLAIN_UNIT, DW_TAG_compile_unit, true, PAIRS(DW_AT_name, DW_FORM_string));
	abbreviate(b, FAR, DW_TAG_inlined_subroutine, false,
		   PAIRS(DW_AT_abstract_origin, DW_FORM_ref_addr, DW_AT_low_pc, DW_FORM_addr,
			 DW_AT_high_pc, DW_FORM_data2, DW_AT_call_line, DW_FORM_udata));
	abbreviate(b, PLACED, DW_TAG_subprogram, false,
		   PAIRS(DW_AT_name, DW_FORM_string, DW_AT_decl_line, DW_FORM_data1,
			 DW_AT_decl_column, DW_FORM_data1));
	abbreviate(b, CALLED, DW_TAG_inlined_subroutine, true,
		   PAIRS(DW_AT_abstract_origin, DW_FORM_ref4, DW_AT_low_pc, DW_FORM_addr,
			 DW_AT_high_pc, DW_FORM_data2, DW_AT_call_line, DW_FORM_data1,
			 DW_AT_call_column, DW_FORM_data1, DW_AT_GNU_discriminator, DW_FORM_data4));
	abbreviate(b, INSTANCE, DW_TAG_subprogram, true,
		   PAIRS(DW_AT_abstract_origin, DW_FORM_ref4, DW_AT_low_pc, DW_FORM_addr,
			 DW_AT_high_pc, DW_FORM_udata));
	abbreviate(b, LONG_CODE, DW_TAG_lexical_block, true, PAIRS(DW_AT_decl_line, DW_FORM_udata));
	put(b, 0, 1);
}

/* The header of a unit; offsets in it count from `start`. */
static size_t begin_unit(struct dwarf_bytes *d, unsigned int version, size_t *start)
{
	struct buf *b = &d->parts[INFO];
	size_t length;
	if (!d->parts[ABBREV].size)
		put_abbrevs(&d->parts[ABBREV]);
	*start = b->size;
	length = put_length(b);
	put(b, version, 2);
	if (version >= 5)
		put(b, DW_UT_compile | 8 << 8, 2);
	put(b, 0, 4);
	if (version < 5)
		put(b, 8, 1);
	return length;
}

static void unit_die(struct buf *b)
{
	put(b, UNIT, 1);
	put(b, CODE, 8);
	put(b, CODE_SIZE, 4);
	put_text(b, "hand");
}

static void function_die(struct buf *b, const char *name, uint64_t start, uint64_t size)
{
	put(b, FUNCTION, 1);
	put_text(b, name);
	put(b, start, 8);
	put_uleb(b, size);
}

static uint32_t abstract_die(struct buf *b, size_t unit, const char *name)
{
	size_t at = b->size;
	put(b, ABSTRACT, 1);
	put_text(b, name);
	return (uint32_t)(at - unit);
}

static void inlined_die(struct buf *b, uint32_t origin, uint64_t start, uint64_t size,
			unsigned int line)
{
	put(b, INLINED, 1);
	put(b, origin, 4);
	put(b, start, 8);
	put(b, size, 2);
	put_uleb(b, line);
}

static struct reader hand_made(struct dwarf_bytes *d)
{
	return reader_of(dwarf_image(d), NULL);
}

static uint32_t placed_die(struct buf *b, size_t unit, const char *name, unsigned int line,
			   unsigned int column)
{
	size_t at = b->size;
	put(b, PLACED, 1);
	put_text(b, name);
	put(b, line, 1);
	put(b, column, 1);
	return (uint32_t)(at - unit);
}

static void called_die(struct buf *b, uint32_t origin, uint64_t start, unsigned int line,
		       unsigned int column)
{
	put(b, CALLED, 1);
	put(b, origin, 4);
	put(b, start, 8);
	put(b, 8, 2);
	put(b, line, 1);
	put(b, column, 1);
	put(b, 0x10000 + column, 4);
	put(b, 0, 1);
}

/* A part that was split off and inlined back is "called" where the function is declared; a call by itself
   comes from another place, and only the column may tell. */
static void own_parts(void **state)
{
	static const bool own[] = {false, true, false, false, false, false, false};
	struct dwarf_bytes d = {0};
	struct buf *b = &d.parts[INFO];
	struct inline_procedure p;
	struct reader r;
	size_t unit, length = begin_unit(&d, 4, &unit);
	uint32_t self, twin, bare;
	(void)state;
	unit_die(b);
	self = placed_die(b, unit, "self", 7, 12);
	twin = placed_die(b, unit, "twin", 7, 12); /* another instance of one template */
	bare = placed_die(b, unit, "bare", 7, 0);
	put(b, INSTANCE, 1);
	put(b, self, 4);
	put(b, CODE, 8);
	put_uleb(b, 0x100);
	called_die(b, self, CODE + 0x10, 7, 12);
	called_die(b, self, CODE + 0x20, 7, 44);
	called_die(b, self, CODE + 0x30, 8, 12);
	called_die(b, self, CODE + 0x40, 7, 0);
	called_die(b, twin, CODE + 0x50, 7, 12);
	called_die(b, bare, CODE + 0x60, 7, 0);
	put(b, 0, 2);
	end_length(b, length);
	r = hand_made(&d);
	assert_true(find(&r, CODE, &p));
	assert_int_equal(p.scope_count, 7);
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(p.scopes[i].own, own[i]);
	for (size_t i = 1; i < p.scope_count; i++)
		assert_int_equal(p.scopes[i].call_discriminator, 0x10000 + p.scopes[i].call_column);
	inline_procedure_free(&p);
	reader_close(&r);
}

/* Blocks between scopes, what has no addresses of its own, functions in functions, siblings, forms
   that say themselves what they are. */
static void a_tree(void **state)
{
	struct dwarf_bytes d = {0};
	struct buf *b = &d.parts[INFO];
	struct inline_procedure p;
	struct reader r;
	size_t unit, length = begin_unit(&d, 4, &unit), sibling;
	uint32_t one, two;
	(void)state;
	unit_die(b);
	one = abstract_die(b, unit, "one");
	two = abstract_die(b, unit, "two");
	function_die(b, "outer", CODE, 0x100);
	inlined_die(b, one, CODE + 0x10, 0x10, 1);
	put(b, 0, 1);
	put(b, BLOCK, 1);
	put_uleb(b, LONG_CODE);
	put_uleb(b, 5);
	inlined_die(b, two, CODE + 0x30, 0x10, 2);
	put(b, SIBLING, 1); /* leads over bytes that are no DIEs */
	sibling = b->size;
	put(b, 0, 4);
	put(b, 0xffffffff, 4);
	uint32_t here = (uint32_t)(b->size - unit);
	memcpy(b->data + sibling, &here, 4);
	inlined_die(b, one, CODE + 0x34, 4, 3);
	put(b, 0, 1);
	put(b, 0, 1);                           /* two */
	inlined_die(b, one, CODE + 0x50, 4, 4); /* beside it, in the block */
	put(b, 0, 1);
	put(b, 0, 2);     /* blocks */
	put(b, EMPTY, 1); /* all of its code is of what is in it */
	put(b, two, 4);
	put(b, 9, 1);
	inlined_die(b, one, CODE + 0x60, 8, 10);
	put(b, 0, 1);
	inlined_die(b, one, CODE + 0x70, 8, 11);
	put(b, 0, 2);
	put(b, EMPTY, 1); /* and this has none at all */
	put(b, two, 4);
	put(b, 12, 1);
	put(b, 0, 1);
	function_die(b, "inner", CODE + 0x200, 0x10); /* contained, as Fortran's are */
	inlined_die(b, one, CODE + 0x204, 4, 13);
	put(b, 0, 2);
	put(b, 0, 1); /* outer */
	put(b, INDIRECT, 1);
	put_uleb(b, DW_FORM_indirect);
	put_uleb(b, DW_FORM_string);
	put_text(b, "named");
	put(b, CODE + 0x300, 8);
	put_uleb(b, DW_FORM_data1);
	put(b, 0x20, 1);
	put(b, 0, 1);
	end_length(b, length);
	r = hand_made(&d);
	assert_true(find(&r, CODE + 0x31, &p));
	assert_int_equal(p.scope_count, 8);
	is_scope(&p, 0, "outer", 0, 0);
	assert_int_equal(p.scopes[0].line, 77);
	is_scope(&p, 1, "one", 0, 1);
	is_scope(&p, 2, "two", 0, 2);
	is_scope(&p, 3, "one", 2, 3);
	is_scope(&p, 4, "one", 0, 4);
	is_scope(&p, 5, "two", 0, 9);
	assert_int_equal(p.scopes[5].count, 2);
	assert_int_equal(p.ranges[p.scopes[5].first].start, CODE + 0x60);
	is_scope(&p, 6, "one", 5, 10);
	is_scope(&p, 7, "one", 5, 11);
	inline_procedure_free(&p);
	assert_true(find(&r, CODE + 0x204, &p));
	assert_int_equal(p.scope_count, 2);
	is_scope(&p, 0, "inner", 0, 0);
	inline_procedure_free(&p);
	assert_true(find(&r, CODE + 0x31f, &p));
	is_scope(&p, 0, "named", 0, 0);
	assert_true(p.records_inlining);
	inline_procedure_free(&p);
	assert_false(find(&r, CODE + 0x320, &p));
	assert_false(find(&r, CODE + 0x100, &p));
	assert_false(find(&r, 0, &p));
	assert_int_equal(list_all(&r).procedures, 3);
	assert_null(inlines_damage(r.inlines));
	reader_close(&r);
}

/* Names of another unit, and through a chain; a chain that runs in a circle ends. */
static void names_elsewhere(void **state)
{
	struct dwarf_bytes d = {0};
	struct buf *b = &d.parts[INFO];
	struct inline_procedure p;
	struct reader r;
	size_t unit, length = begin_unit(&d, 3, &unit);
	uint32_t chained, circle;
	(void)state;
	put(b, PLAIN_UNIT, 1);
	put_text(b, "types");
	uint32_t far = abstract_die(b, unit, "far");
	chained = (uint32_t)(b->size - unit);
	put(b, CHAINED, 1);
	put(b, far, 4);
	put(b, 0, 4);
	circle = (uint32_t)(b->size - unit);
	put(b, CHAINED, 1);
	put(b, circle, 4);
	put(b, circle, 4);
	put(b, 0, 1);
	end_length(b, length);
	length = begin_unit(&d, 4, &unit);
	unit_die(b);
	function_die(b, "outer", CODE, 0x100);
	for (unsigned int i = 0; i < 4; i++) {
		put(b, FAR, 1);
		put(b, i == 0 ? far : i == 1 ? chained : i == 2 ? circle : 0xfffffff0, 4);
		put(b, CODE + 16 * i, 8);
		put(b, 8, 2);
		put_uleb(b, i);
	}
	put(b, 0, 2);
	end_length(b, length);
	r = hand_made(&d);
	assert_true(find(&r, CODE, &p));
	assert_int_equal(p.scope_count, 5);
	is_scope(&p, 1, "far", 0, 0);
	is_scope(&p, 2, "far", 0, 1);
	assert_null(p.scopes[3].name);
	assert_null(p.scopes[4].name);
	inline_procedure_free(&p);
	reader_close(&r);
}

/* Lists of ranges up to DWARF 4: with a base, with a new base, cut off. */
static void old_ranges(void **state)
{
	struct dwarf_bytes d = {0};
	struct buf *b = &d.parts[INFO], *ranges = &d.parts[RANGES];
	struct inline_procedure p;
	struct reader r;
	size_t unit, length = begin_unit(&d, 4, &unit);
	(void)state;
	static const uint64_t list[] = {
		0x10, 0x20, 0x40,       0x40, UINT64_MAX, CODE + 0x100, 0x10, 0x18,     0x0, 0x8,
		0,    0,    UINT64_MAX, 0,    0,          0x50,         CODE, CODE + 8, 0,   0};
	buf_append(ranges, list, sizeof list);
	unit_die(b);
	put(b, RANGED, 1);
	put_text(b, "outer");
	put(b, 0, 4);
	put(b, LISTED, 1);
	put(b, 0, 4);
	put(b, 96, 4);
	put(b, 0, 3);
	end_length(b, length);
	r = hand_made(&d);
	assert_true(find(&r, CODE + 0x104, &p));
	assert_int_equal(p.scopes[0].count, 3);
	assert_int_equal(p.ranges[0].start, CODE + 0x10);
	assert_int_equal(p.ranges[0].end, CODE + 0x20);
	assert_int_equal(p.ranges[1].start, CODE + 0x100);
	assert_int_equal(p.ranges[2].end, CODE + 0x118);
	assert_int_equal(p.scope_count, 2);
	assert_int_equal(p.scopes[1].count, 1); /* what lies at 0 was dropped */
	assert_int_equal(p.scopes[1].call_line, 77);
	inline_procedure_free(&p);
	reader_close(&r);
}

/* Every kind of entry of DWARF 5. */
static void new_ranges(void **state)
{
	struct dwarf_bytes d = {0};
	struct buf *b = &d.parts[INFO], *list = &d.parts[RNGLISTS], *addresses = &d.parts[ADDR];
	struct inline_procedure p;
	struct reader r;
	size_t unit, length = begin_unit(&d, 5, &unit);
	(void)state;
	put(addresses, 0, 8); /* a header of some sort */
	put(addresses, CODE + 0x200, 8);
	put(addresses, CODE + 0x208, 8);
	put(list, 0, 8);
	put(list, DW_RLE_offset_pair, 1); /* from the unit's start */
	put_uleb(list, 0);
	put_uleb(list, 4);
	put(list, DW_RLE_base_addressx, 1);
	put_uleb(list, 0);
	put(list, DW_RLE_offset_pair, 1);
	put_uleb(list, 0x100);
	put_uleb(list, 0x104);
	put(list, DW_RLE_startx_endx, 1);
	put_uleb(list, 0);
	put_uleb(list, 1);
	put(list, DW_RLE_startx_length, 1);
	put_uleb(list, 1);
	put_uleb(list, 8); /* touches the one before: one range */
	put(list, DW_RLE_base_address, 1);
	put(list, CODE + 0x400, 8);
	put(list, DW_RLE_offset_pair, 1);
	put_uleb(list, 0);
	put_uleb(list, 1);
	put(list, DW_RLE_start_end, 1);
	put(list, CODE + 0x500, 8);
	put(list, CODE + 0x501, 8);
	put(list, DW_RLE_start_length, 1);
	put(list, CODE + 0x600, 8);
	put_uleb(list, 2);
	put(list, DW_RLE_startx_length, 1);
	put_uleb(list, 1000); /* not there: ends the list */
	put_uleb(list, 2);
	unit_die(b);
	put(b, RANGED, 1);
	put_text(b, "outer");
	put(b, 8, 4);
	put(b, 0, 2);
	end_length(b, length);
	r = hand_made(&d);
	assert_true(find(&r, CODE + 0x20c, &p));
	static const uint64_t want[][2] = {{0, 4},         {0x200, 0x210}, {0x300, 0x304},
					   {0x400, 0x401}, {0x500, 0x501}, {0x600, 0x602}};
	assert_int_equal(p.scopes[0].count, 6);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(p.ranges[i].start, CODE + want[i][0]);
		assert_int_equal(p.ranges[i].end, CODE + want[i][1]);
	}
	inline_procedure_free(&p);
	reader_close(&r);
}

/* A unit that does not say where its code is, and no table that does. */
static void a_unit_without_addresses(void **state)
{
	struct dwarf_bytes d = {0};
	struct buf *b = &d.parts[INFO];
	struct inline_procedure p;
	struct reader r;
	size_t unit, length = begin_unit(&d, 2, &unit);
	(void)state;
	put(b, PLAIN_UNIT, 1);
	put_text(b, "plain");
	function_die(b, "outer", CODE + 0x40, 0x40);
	put(b, 0, 2);
	end_length(b, length);
	r = hand_made(&d);
	assert_true(find(&r, CODE + 0x50, &p));
	is_scope(&p, 0, "outer", 0, 0);
	assert_false(p.records_inlining);
	inline_procedure_free(&p);
	assert_int_equal(list_all(&r).procedures, 1);
	reader_close(&r);
}

/* The linker folded two equal functions: it is listed once, as it is found. */
static void folded_functions(void **state)
{
	struct dwarf_bytes d = {0};
	struct buf *b = &d.parts[INFO];
	struct inline_procedure p;
	struct reader r;
	size_t unit, length;
	(void)state;
	for (int i = 0; i < 2; i++) {
		length = begin_unit(&d, 4, &unit);
		unit_die(b);
		function_die(b, i ? "second" : "first", CODE, 0x40);
		put(b, 0, 1);
		function_die(b, "other", CODE + 0x100, 0x40);
		put(b, 0, 2);
		end_length(b, length);
	}
	r = hand_made(&d);
	assert_true(find(&r, CODE + 1, &p));
	is_scope(&p, 0, "first", 0, 0);
	inline_procedure_free(&p);
	assert_int_equal(list_all(&r).procedures, 2);
	reader_close(&r);
}

/* ---- hostile DWARF ---- */

static void deep_nesting(void **state)
{
	struct dwarf_bytes d = {0};
	struct buf *b = &d.parts[INFO];
	struct inline_procedure p;
	struct reader r;
	size_t unit, length = begin_unit(&d, 4, &unit);
	uint32_t one;
	(void)state;
	unit_die(b);
	one = abstract_die(b, unit, "one");
	function_die(b, "outer", CODE, 0x100);
	for (unsigned int i = 0; i < 100000; i++)
		inlined_die(b, one, CODE, 0x80, i);
	end_length(b, length); /* and none of them ends */
	r = hand_made(&d);
	assert_true(find(&r, CODE + 1, &p));
	assert_int_equal(p.scope_count, 100001);
	assert_true(p.scopes[100000].depth <= 2000);
	inline_procedure_free(&p);
	reader_close(&r);
}

/* Thousands of scopes share one list of thousands of ranges. */
static void shared_lists(void **state)
{
	struct dwarf_bytes d = {0};
	struct buf *b = &d.parts[INFO], *ranges = &d.parts[RANGES];
	struct inline_procedure p;
	struct reader r;
	size_t unit, length = begin_unit(&d, 4, &unit);
	(void)state;
	for (uint64_t i = 0; i < 100000; i++) {
		put(ranges, i % 1000 * 8, 8);
		put(ranges, i % 1000 * 8 + 1, 8);
	}
	unit_die(b);
	function_die(b, "outer", CODE, CODE_SIZE);
	for (int i = 0; i < 10000; i++) {
		put(b, LISTED, 1);
		put(b, 0, 4);
		put(b, 0, 4);
		put(b, 0, 1);
	}
	put(b, 0, 2);
	end_length(b, length);
	r = hand_made(&d);
	assert_true(find(&r, CODE + 1, &p));
	assert_true(p.range_count < 20000000);
	assert_non_null(inlines_damage(r.inlines));
	inline_procedure_free(&p);
	reader_close(&r);
}

/* Abbreviations that are missing, and tables that lie in each other: only those units are lost. */
static void broken_abbreviations(void **state)
{
	struct dwarf_bytes d = {0};
	struct buf *b = &d.parts[INFO];
	struct inline_procedure p;
	struct reader r;
	size_t unit, length = begin_unit(&d, 4, &unit);
	uint32_t wrong;
	(void)state;
	unit_die(b);
	function_die(b, "good", CODE, 0x10);
	put(b, 0, 1);
	put(b, 0x7f, 1);
	function_die(b, "lost", CODE + 0x10, 0x10);
	end_length(b, length);
	for (uint32_t i = 1; i < 2000; i++) {
		length = begin_unit(&d, 4, &unit);
		wrong = i % 60;
		memcpy(b->data + unit + 6, &wrong, 4);
		unit_die(b);
		end_length(b, length);
	}
	length = begin_unit(&d, 4, &unit);
	unit_die(b);
	function_die(b, "last", CODE + 0x40, 0x10);
	put(b, 0, 2);
	end_length(b, length);
	r = hand_made(&d);
	assert_true(find(&r, CODE, &p));
	is_scope(&p, 0, "good", 0, 0);
	inline_procedure_free(&p);
	assert_false(find(&r, CODE + 0x10, &p));
	assert_non_null(inlines_damage(r.inlines));
	assert_true(list_all(&r).procedures >= 1);
	reader_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tree),           cmocka_unit_test(own_parts),
		cmocka_unit_test(names_elsewhere),  cmocka_unit_test(old_ranges),
		cmocka_unit_test(new_ranges),       cmocka_unit_test(a_unit_without_addresses),
		cmocka_unit_test(folded_functions), cmocka_unit_test(deep_nesting),
		cmocka_unit_test(shared_lists),     cmocka_unit_test(broken_abbreviations),
	};
	return cmocka_run_group_tests_name("inlines_bytes", tests, NULL, NULL);
}
