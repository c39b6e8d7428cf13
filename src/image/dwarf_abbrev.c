/* SPDX-License-Identifier: Apache-2.0 */
#include "image/dwarf_abbrev.h"

#include <stdlib.h>

#include "base/array.h"
#include "image/dwarf_names.h"

/* ---- forms ---- */

static enum dwarf_how fixed(uint32_t *out, uint32_t size)
{
	*out = size;
	return HOW_FIXED;
}

static enum dwarf_how counted(uint32_t *out, uint32_t size)
{
	*out = size;
	return HOW_COUNTED;
}

enum dwarf_how dwarf_form_how(uint64_t form, struct dwarf_shape shape, uint32_t *size)
{
	*size = 0;
	switch (form) {
	case DW_FORM_implicit_const:
	case DW_FORM_flag_present:
		return HOW_FIXED;
	case DW_FORM_data1:
	case DW_FORM_flag:
	case DW_FORM_ref1:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return fixed(size, 1);
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return fixed(size, 2);
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return fixed(size, 3);
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_ref_sup4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
		return fixed(size, 4);
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return fixed(size, 8);
	case DW_FORM_data16:
		return fixed(size, 16);
	case DW_FORM_addr:
		return fixed(size, shape.address_size);
	case DW_FORM_ref_addr:
		return fixed(size, shape.version <= 2 ? shape.address_size : shape.offset_size);
	case DW_FORM_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_line_strp:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		return fixed(size, shape.offset_size);
	case DW_FORM_udata:
	case DW_FORM_sdata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		return HOW_LEB;
	case DW_FORM_string:
		return HOW_STRING;
	case DW_FORM_block1:
		return counted(size, 1);
	case DW_FORM_block2:
		return counted(size, 2);
	case DW_FORM_block4:
		return counted(size, 4);
	case DW_FORM_block:
	case DW_FORM_exprloc:
		return HOW_BLOCK;
	case DW_FORM_indirect:
		return HOW_INDIRECT;
	default:
		return HOW_UNKNOWN;
	}
}

void dwarf_form_skip(struct dwarf_cursor *c, uint64_t form, struct dwarf_shape shape)
{
	enum dwarf_how how;
	uint32_t size;
	while ((how = dwarf_form_how(form, shape, &size)) == HOW_INDIRECT && !c->bad)
		form = dwarf_take_uleb(c);
	switch (how) {
	case HOW_FIXED:
		dwarf_skip(c, size);
		break;
	case HOW_LEB:
		dwarf_take_uleb(c);
		break;
	case HOW_STRING:
		dwarf_take_string(c);
		break;
	case HOW_BLOCK:
		dwarf_skip(c, dwarf_take_uleb(c));
		break;
	case HOW_COUNTED:
		dwarf_skip(c, dwarf_take(c, size));
		break;
	default:
		c->bad = true;
	}
}

/* ---- what is wanted ---- */

static enum dwarf_kind kind_of(uint64_t tag)
{
	switch (tag) {
	case DW_TAG_compile_unit:
	case DW_TAG_partial_unit:
	case DW_TAG_skeleton_unit:
	case DW_TAG_type_unit:
		return DWARF_ROOT;
	case DW_TAG_subprogram:
		return DWARF_FUNCTION;
	case DW_TAG_inlined_subroutine:
		return DWARF_INLINED;
	case DW_TAG_lexical_block:
	case DW_TAG_with_stmt:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
		return DWARF_BLOCK;
	case DW_TAG_array_type:
	case DW_TAG_call_site:
	case DW_TAG_common_block:
	case DW_TAG_enumeration_type:
	case DW_TAG_formal_parameter:
	case DW_TAG_GNU_call_site:
	case DW_TAG_GNU_formal_parameter_pack:
	case DW_TAG_GNU_template_parameter_pack:
	case DW_TAG_label:
	case DW_TAG_subroutine_type:
	case DW_TAG_variable:
	case DW_TAG_variant:
	case DW_TAG_variant_part:
		return DWARF_BARREN;
	default:
		return DWARF_PASS;
	}
}

static enum dwarf_wanted wanted_of_unit(uint64_t attribute)
{
	switch (attribute) {
	case DW_AT_low_pc:
		return WANT_LOW;
	case DW_AT_high_pc:
		return WANT_HIGH;
	case DW_AT_ranges:
		return WANT_RANGES;
	case DW_AT_stmt_list:
		return WANT_LINES;
	case DW_AT_comp_dir:
		return WANT_DIRECTORY;
	case DW_AT_producer:
		return WANT_PRODUCER;
	case DW_AT_language:
		return WANT_LANGUAGE;
	case DW_AT_dwo_name:
	case DW_AT_GNU_dwo_name:
		return WANT_SPLIT_NAME;
	case DW_AT_GNU_dwo_id:
		return WANT_SPLIT_ID;
	case DW_AT_addr_base:
	case DW_AT_GNU_addr_base:
		return WANT_ADDRESS_BASE;
	case DW_AT_str_offsets_base:
		return WANT_STRINGS_BASE;
	case DW_AT_rnglists_base:
		return WANT_RANGES_BASE;
	case DW_AT_GNU_ranges_base:
		return WANT_OLD_RANGES_BASE;
	default:
		return WANT_NOTHING;
	}
}

static enum dwarf_wanted wanted_of_function(uint64_t attribute)
{
	switch (attribute) {
	case DW_AT_name:
		return WANT_NAME;
	case DW_AT_linkage_name:
	case DW_AT_MIPS_linkage_name:
		return WANT_LINKAGE_NAME;
	case DW_AT_specification:
		return WANT_SPECIFICATION;
	case DW_AT_decl_file:
		return WANT_DECL_FILE;
	case DW_AT_decl_line:
		return WANT_DECL_LINE;
	case DW_AT_decl_column:
		return WANT_DECL_COLUMN;
	case DW_AT_low_pc:
		return WANT_LOW;
	case DW_AT_high_pc:
		return WANT_HIGH;
	case DW_AT_ranges:
		return WANT_RANGES;
	case DW_AT_abstract_origin:
		return WANT_ORIGIN;
	case DW_AT_call_file:
		return WANT_CALL_FILE;
	case DW_AT_call_line:
		return WANT_CALL_LINE;
	case DW_AT_call_column:
		return WANT_CALL_COLUMN;
	case DW_AT_GNU_discriminator:
		return WANT_DISCRIMINATOR;
	default:
		return WANT_NOTHING;
	}
}

static enum dwarf_wanted wanted_of(enum dwarf_kind kind, uint64_t attribute)
{
	if (kind == DWARF_ROOT)
		return wanted_of_unit(attribute);
	if (attribute == DW_AT_sibling)
		return WANT_SIBLING;
	if (kind == DWARF_FUNCTION || kind == DWARF_INLINED)
		return wanted_of_function(attribute);
	if (kind != DWARF_PASS) /* functions may be told by what they lie in */
		return WANT_NOTHING;
	return attribute == DW_AT_name        ? WANT_NAME
	       : attribute == DW_AT_decl_file ? WANT_DECL_FILE
	       : attribute == DW_AT_decl_line ? WANT_DECL_LINE
					      : WANT_NOTHING;
}

/* ---- tables ---- */

static bool add_step(struct dwarf_abbrevs *t, struct dwarf_abbrev *a, struct dwarf_step step)
{
	struct dwarf_step *last = a->count ? &t->steps[t->step_count - 1] : NULL;
	if (step.what == WANT_NOTHING && step.how == HOW_FIXED) {
		if (step.size == 0)
			return true;
		if (last && last->what == WANT_NOTHING && last->how == HOW_FIXED &&
		    last->size < UINT32_MAX - step.size) {
			last->size += step.size;
			return true;
		}
	}
	if (t->step_count == t->step_room) {
		size_t room = t->step_room * 2;
		struct dwarf_step *moved = reallocarray(t->steps, room, sizeof *moved);
		if (!moved)
			return false;
		t->steps = moved;
		t->step_room = room;
	}
	t->steps[t->step_count++] = step;
	a->count++;
	return true;
}

static bool add_abbrev(struct dwarf_abbrevs *t, struct dwarf_abbrev a)
{
	if (!ARRAY_ROOM(t->all, t->count, t->room))
		return false;
	t->all[t->count++] = a;
	return true;
}

/* The attributes of one abbreviation, up to a pair of zeros. */
static bool read_attributes(struct dwarf_abbrevs *t, struct dwarf_abbrev *a, struct dwarf_cursor *c)
{
	uint64_t size = 0;
	for (;;) {
		uint64_t attribute = dwarf_take_uleb(c), form = dwarf_take_uleb(c);
		struct dwarf_step step = {.what = (uint8_t)wanted_of(a->kind, attribute)};
		if (c->bad)
			return false;
		if (attribute == 0 && form == 0)
			break;
		if (form == DW_FORM_implicit_const)
			step.value = dwarf_take_sleb(c);
		else if (form == DW_FORM_flag_present)
			step.value = 1;
		step.how = (uint8_t)dwarf_form_how(form, t->shape, &step.size);
		step.form = (uint16_t)form;
		if (step.how == HOW_UNKNOWN)
			return false;
		if (step.what != WANT_NOTHING && a->wanted & 1u << step.what)
			step.what = WANT_NOTHING; /* the first counts */
		if (step.what != WANT_NOTHING)
			a->wanted |= 1u << step.what;
		if (step.how == HOW_FIXED && size < INT32_MAX)
			size += step.size;
		else
			size = UINT64_MAX;
		if (!add_step(t, a, step))
			return false;
	}
	a->fixed = size < INT32_MAX ? (int32_t)size : -1;
	return true;
}

static int compare_codes(const void *a, const void *b)
{
	const struct dwarf_abbrev *x = a, *y = b;
	if (x->code != y->code)
		return x->code < y->code ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

static bool read_table(struct dwarf_abbrevs *t, struct dwarf_cursor *c, uint64_t only)
{
	uint64_t code, last = 0;
	bool sorted = true;
	while (dwarf_left(c) && (code = dwarf_take_uleb(c)) != 0) {
		uint64_t tag = dwarf_take_uleb(c);
		struct dwarf_abbrev a = {.code = code, .tag = (uint16_t)tag};
		a.kind = (uint8_t)kind_of(tag);
		a.children = dwarf_take(c, 1) != 0;
		a.first = (uint32_t)t->step_count;
		if (c->bad || t->step_count > UINT32_MAX / 2 || !read_attributes(t, &a, c)) {
			c->bad = true;
			break;
		}
		sorted &= code > last;
		last = code;
		if ((!only || only == code) && !add_abbrev(t, a))
			return false;
		if (only == code)
			break;
		if (only)
			t->step_count = 0;
	}
	if (!sorted && t->count)
		qsort(t->all, t->count, sizeof *t->all, compare_codes);
	return !c->bad;
}

struct dwarf_abbrevs *dwarf_abbrevs_read(struct dwarf_span section, uint64_t offset,
					 struct dwarf_shape shape, uint64_t only)
{
	struct dwarf_cursor c = dwarf_cursor_at(section, offset);
	struct dwarf_abbrevs *t = calloc(1, sizeof *t);
	const uint8_t *start = c.at;
	if (!t)
		return NULL;
	t->step_room = 16;
	t->steps = calloc(t->step_room,
			  sizeof *t->steps); /* so that there is something to count from */
	if (!t->steps) {
		free(t);
		return NULL;
	}
	t->offset = offset;
	t->shape = shape;
	t->broken = c.bad || !read_table(t, &c, only);
	t->bytes = (size_t)(c.at - start);
	return t;
}

void dwarf_abbrevs_free(struct dwarf_abbrevs *t)
{
	if (!t)
		return;
	free(t->all);
	free(t->steps);
	free(t);
}

const struct dwarf_abbrev *dwarf_abbrevs_search(const struct dwarf_abbrevs *t, uint64_t code)
{
	size_t found = FIRST_NOT(i, t->count, t->all[i].code < code);
	return found < t->count && t->all[found].code == code ? &t->all[found] : NULL;
}
