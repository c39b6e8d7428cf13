/* SPDX-License-Identifier: Apache-2.0 */
#include "image/dwarf_bounds.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#define ATTRIBUTES_MAX 256            /* of one abbreviation */
#define ROWS_MAX (UINT64_C(8) << 20)  /* of one line table: libdw takes 100 bytes for each */
#define TEXT_MAX (UINT64_C(64) << 20) /* of the paths of one line table */
#define FORMATS_MAX 16                /* parts of a file's entry */

/* Bytes still to read; reading past their end gives zeros and sets `bad`. */
struct cursor {
	const uint8_t *at, *end;
	bool bad;
};

static size_t left(const struct cursor *c)
{
	return (size_t)(c->end - c->at);
}

static void skip(struct cursor *c, uint64_t size)
{
	if (size > left(c)) {
		c->bad = true;
		size = left(c);
	}
	c->at += size;
}

static uint64_t take(struct cursor *c, size_t size)
{
	uint64_t value = 0;

	if (size > left(c)) {
		c->bad = true;
		c->at = c->end;
		return 0;
	}
	memcpy(&value, c->at, size);
	c->at += size;
	return value;
}

static uint64_t take_uleb(struct cursor *c)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		if (c->at == c->end) {
			c->bad = true;
			return 0;
		}
		byte = *c->at++;
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return value;
}

/* The contents of a unit, as long as it says. */
static bool take_unit(struct cursor *c, struct cursor *unit, size_t *offset_size)
{
	uint64_t length = take(c, 4);

	*offset_size = 4;
	if (length == 0xffffffff) {
		*offset_size = 8;
		length = take(c, 8);
	}
	if (c->bad || length > left(c))
		return false;
	*unit = (struct cursor){c->at, c->at + length, false};
	c->at += length;
	return true;
}

/* ---- abbreviations ---- */

struct offsets {
	uint64_t *all;
	size_t count, room;
};

static bool offsets_add(struct offsets *offsets, uint64_t offset)
{
	if (offsets->count && offsets->all[offsets->count - 1] == offset)
		return true;
	if (offsets->count == offsets->room) {
		size_t room = offsets->room ? offsets->room * 2 : 256;
		uint64_t *moved = reallocarray(offsets->all, room, sizeof(*moved));

		if (!moved)
			return false;
		offsets->all = moved;
		offsets->room = room;
	}
	offsets->all[offsets->count++] = offset;
	return true;
}

/* Where the units say that their abbreviations are. */
static bool read_offsets(struct dwarf_part info, struct offsets *offsets)
{
	struct cursor c = {info.bytes, info.bytes + info.size, false}, unit;
	size_t offset_size;

	while (take_unit(&c, &unit, &offset_size)) {
		uint64_t version = take(&unit, 2), offset;

		if (version >= 5)
			skip(&unit, 2); /* its type and the size of addresses */
		offset = take(&unit, offset_size);
		if (!unit.bad && !offsets_add(offsets, offset))
			return false;
	}
	return true;
}

static int compare_offsets(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Goes to the end of a table; false where an abbreviation has too many attributes. */
static bool pass_table(struct cursor *c)
{
	while (!c->bad && take_uleb(c)) {
		uint64_t name, form;
		unsigned int count = 0;

		take_uleb(c); /* tag */
		skip(c, 1);   /* has children */
		do {
			name = take_uleb(c);
			form = take_uleb(c);
			if (form == DW_FORM_implicit_const)
				take_uleb(c);
			if (++count > ATTRIBUTES_MAX)
				return false;
		} while (!c->bad && (name || form));
	}
	return true;
}

static bool tables_are_apart(struct offsets *offsets, struct dwarf_part abbrev)
{
	struct cursor c = {abbrev.bytes, abbrev.bytes + abbrev.size, false};

	qsort(offsets->all, offsets->count, sizeof(*offsets->all), compare_offsets);
	for (size_t i = 0; i < offsets->count; i++) {
		if (i > 0 && offsets->all[i] == offsets->all[i - 1])
			continue;
		if (offsets->all[i] >= abbrev.size)
			break;
		if (abbrev.bytes + offsets->all[i] < c.at)
			return false;
		c.at = abbrev.bytes + offsets->all[i];
		if (!pass_table(&c))
			return false;
	}
	return true;
}

bool dwarf_bounds_abbrevs(struct dwarf_part info, struct dwarf_part abbrev)
{
	struct offsets offsets = {0};
	bool good;

	if (!info.bytes || !abbrev.bytes)
		return true;
	good = read_offsets(info, &offsets);
	if (good && offsets.count)
		good = tables_are_apart(&offsets, abbrev);
	free(offsets.all);
	return good;
}

/* ---- lines ---- */

struct lines {
	const struct dwarf_line_parts *parts;
	struct cursor c;
	size_t offset_size;
	size_t directory_length; /* of the longest, with the unit's before it */
	uint64_t files, text;
	struct dwarf_lines_cost *cost;
};

static size_t take_string(struct cursor *c)
{
	size_t length = strnlen((const char *)c->at, left(c));

	skip(c, (uint64_t)length + 1);
	return length;
}

/* The length of a string elsewhere. */
static size_t string_length(struct dwarf_part strings, uint64_t offset)
{
	if (!strings.bytes || offset >= strings.size)
		return 0;
	return strnlen((const char *)strings.bytes + offset, strings.size - (size_t)offset);
}

/* One part of an entry; its length where it is a string. */
static bool take_form(struct lines *l, uint64_t form, size_t *length)
{
	*length = 0;
	switch (form) {
	case DW_FORM_string:
		*length = take_string(&l->c);
		return true;
	case DW_FORM_line_strp:
		*length = string_length(l->parts->line_str, take(&l->c, l->offset_size));
		return true;
	case DW_FORM_strp:
		*length = string_length(l->parts->str, take(&l->c, l->offset_size));
		return true;
	case DW_FORM_udata:
		take_uleb(&l->c);
		return true;
	case DW_FORM_block:
		skip(&l->c, take_uleb(&l->c));
		return true;
	case DW_FORM_data1:
		skip(&l->c, 1);
		return true;
	case DW_FORM_data2:
		skip(&l->c, 2);
		return true;
	case DW_FORM_data4:
		skip(&l->c, 4);
		return true;
	case DW_FORM_data8:
		skip(&l->c, 8);
		return true;
	case DW_FORM_data16:
		skip(&l->c, 16);
		return true;
	default: /* nothing writes others here */
		return false;
	}
}

/* DWARF 5: a list of directories or of files, in a format that stands before it. */
static bool take_entries(struct lines *l, uint64_t *count, uint64_t *sum, size_t *longest)
{
	uint64_t forms[FORMATS_MAX];
	size_t format_count = (size_t)take(&l->c, 1), length;

	if (format_count > FORMATS_MAX)
		return false;
	for (size_t i = 0; i < format_count; i++) {
		take_uleb(&l->c); /* what it is */
		forms[i] = take_uleb(&l->c);
	}
	*count = take_uleb(&l->c);
	if (l->c.bad || *count > left(&l->c) || (*count && !format_count))
		return false;
	for (uint64_t i = 0; i < *count && !l->c.bad && *sum <= TEXT_MAX; i++) {
		for (size_t k = 0; k < format_count; k++) {
			if (!take_form(l, forms[k], &length))
				return false;
			*sum += length;
			*longest = length > *longest ? length : *longest;
		}
	}
	return !l->c.bad && *sum <= TEXT_MAX;
}

/* Before DWARF 5: strings up to an empty one, those of files with three numbers. */
static void take_old_list(struct lines *l, bool files, uint64_t *sum, size_t *longest)
{
	size_t length;

	while (!l->c.bad && (length = take_string(&l->c)) > 0) {
		*sum += length;
		*longest = length > *longest ? length : *longest;
		if (!files)
			continue;
		l->files++;
		for (int i = 0; i < 3; i++)
			take_uleb(&l->c);
	}
}

static bool take_lists(struct lines *l, uint64_t version)
{
	uint64_t directories = 0, ignored;
	size_t longest = 0, longest_file = 0;

	if (version >= 5) {
		if (!take_entries(l, &ignored, &directories, &longest) ||
		    !take_entries(l, &l->files, &l->text, &longest_file))
			return false;
	} else {
		take_old_list(l, false, &directories, &longest);
		take_old_list(l, true, &l->text, &longest_file);
	}
	l->directory_length += longest + 3;
	return !l->c.bad;
}

/* An opcode with a length of its own. */
static void pass_extended(struct lines *l)
{
	uint64_t length = take_uleb(&l->c);

	if (length && left(&l->c)) {
		l->cost->rows += l->c.at[0] == DW_LNE_end_sequence;
		if (l->c.at[0] == DW_LNE_define_file) {
			l->files++;
			l->text += length;
		}
	}
	skip(&l->c, length);
}

static void pass_program(struct lines *l, uint64_t opcode_base, const uint8_t *operands)
{
	while (left(&l->c) && !l->c.bad) {
		uint64_t opcode = take(&l->c, 1);

		if (opcode >= opcode_base || opcode == DW_LNS_copy)
			l->cost->rows++;
		else if (opcode == 0)
			pass_extended(l);
		else if (opcode == DW_LNS_fixed_advance_pc)
			skip(&l->c, 2);
		else
			for (unsigned int i = 0; i < operands[opcode - 1]; i++)
				take_uleb(&l->c);
	}
}

bool dwarf_bounds_lines(const struct dwarf_line_parts *parts, uint64_t offset,
			size_t directory_length, struct dwarf_lines_cost *out)
{
	struct lines l = {.parts = parts, .directory_length = directory_length, .cost = out};
	struct cursor all = {0};
	uint64_t version, header_length, opcode_base;
	const uint8_t *operands, *program;

	*out = (struct dwarf_lines_cost){0};
	if (!parts->line.bytes || offset >= parts->line.size)
		return false;
	all.at = parts->line.bytes + offset;
	all.end = parts->line.bytes + parts->line.size;
	if (!take_unit(&all, &l.c, &l.offset_size))
		return false;
	version = take(&l.c, 2);
	skip(&l.c, version >= 5 ? 2 : 0); /* sizes of addresses and segment selectors */
	header_length = take(&l.c, l.offset_size);
	program = l.c.at + (header_length < left(&l.c) ? header_length : left(&l.c));
	skip(&l.c, version >= 4 ? 5 : 4); /* how special opcodes work */
	opcode_base = take(&l.c, 1);
	operands = l.c.at;
	skip(&l.c, opcode_base ? opcode_base - 1 : 0);
	if (l.c.bad || !take_lists(&l, version) || l.c.at > program)
		return false;
	l.c.at = program;
	pass_program(&l, opcode_base, operands);
	if (l.files > TEXT_MAX || l.directory_length > TEXT_MAX)
		return false;
	out->text = l.text + l.files * l.directory_length;
	return out->rows <= ROWS_MAX && out->text <= TEXT_MAX;
}
