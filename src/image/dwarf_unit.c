/* SPDX-License-Identifier: Apache-2.0 */
/* The units of a file: their headers, and what their own DIEs say. */
#include "image/dwarf_unit.h"

#include <stdlib.h>

#include "base/array.h"
#include "image/dwarf_names.h"
#include "image/dwarf_value.h"

#define UNITS_MAX ((size_t)1 << 20)
#define FIRST_MAX 512 /* bytes of a table that are looked at for one abbreviation */

/* The header after the length: version, and from version 5 on what kind of unit it is. */
static bool read_fields(struct dwarf_cursor *c, struct dwarf_unit *u)
{
	u->shape.version = (uint16_t)dwarf_take(c, 2);
	if (c->bad || u->shape.version < 2 || u->shape.version > 5)
		return false;
	if (u->shape.version == 5) {
		u->type = (uint8_t)dwarf_take(c, 1);
		u->shape.address_size = (uint8_t)dwarf_take(c, 1);
		u->abbrev_offset = dwarf_take(c, u->shape.offset_size);
		if (u->type == DW_UT_skeleton || u->type == DW_UT_split_compile ||
		    u->type == DW_UT_type || u->type == DW_UT_split_type)
			u->split_id = dwarf_take(c, 8);
		if (u->type == DW_UT_type || u->type == DW_UT_split_type)
			dwarf_take(c, u->shape.offset_size);
	} else {
		u->type = DW_UT_compile;
		u->abbrev_offset = dwarf_take(c, u->shape.offset_size);
		u->shape.address_size = (uint8_t)dwarf_take(c, 1);
	}
	return !c->bad && (u->shape.address_size == 8 || u->shape.address_size == 4);
}

bool dwarf_read_header(struct dwarf_file *file, uint64_t offset, struct dwarf_unit *out,
		       uint64_t *next)
{
	struct dwarf_span info = dwarf_section(file, DWARF_INFO);
	struct dwarf_cursor all = dwarf_cursor_at(info, offset), c;
	bool good;
	*out = (struct dwarf_unit){
		.file = file,
		.offset = offset,
		.lines = DWARF_NONE,
		.address_base = DWARF_NONE,
		.strings_base = DWARF_NONE,
		.ranges_base = DWARF_NONE,
	};
	*next = 0;
	if (!dwarf_take_unit(&all, &c, &out->shape.offset_size))
		return false;
	*next = (uint64_t)(all.at - info.bytes);
	out->end = *next;
	good = read_fields(&c, out);
	out->die = (uint64_t)(c.at - info.bytes);
	return good;
}

/* ---- the unit's own DIE ---- */

/* Mostly the abbreviation of a unit's own DIE is the first of its table, and then the rest of it
   need not be read, nor kept. */
static struct dwarf_abbrevs *first_abbrevs(struct dwarf_unit *u, uint64_t code)
{
	struct dwarf_span section = dwarf_section(u->file, DWARF_ABBREV);
	struct dwarf_abbrevs *t;
	if (section.size > u->abbrev_offset && section.size - u->abbrev_offset > FIRST_MAX)
		section.size = u->abbrev_offset + FIRST_MAX;
	t = dwarf_abbrevs_read(section, u->abbrev_offset, u->shape, code);
	if (t && !t->broken && t->count)
		return t;
	dwarf_abbrevs_free(t);
	return NULL;
}

static void take_bases(struct dwarf_unit *u, const struct dwarf_die *die)
{
	if (dwarf_has(die, WANT_ADDRESS_BASE))
		u->address_base = die->values[WANT_ADDRESS_BASE].raw;
	if (dwarf_has(die, WANT_STRINGS_BASE))
		u->strings_base = die->values[WANT_STRINGS_BASE].raw;
	if (dwarf_has(die, WANT_RANGES_BASE))
		u->ranges_base = die->values[WANT_RANGES_BASE].raw;
	if (dwarf_has(die, WANT_OLD_RANGES_BASE))
		u->old_ranges_base = die->values[WANT_OLD_RANGES_BASE].raw;
	if (dwarf_has(die, WANT_SPLIT_ID))
		u->split_id = die->values[WANT_SPLIT_ID].raw;
	if (dwarf_has(die, WANT_LANGUAGE))
		u->language = (uint16_t)die->values[WANT_LANGUAGE].raw;
	if (dwarf_has(die, WANT_LINES))
		u->lines = die->values[WANT_LINES].raw;
}

static void take_root(struct dwarf_unit *u, const struct dwarf_die *die)
{
	take_bases(u, die);
	u->directory = dwarf_string(u, die, WANT_DIRECTORY);
	u->producer = dwarf_string(u, die, WANT_PRODUCER);
	u->split_name = dwarf_string(u, die, WANT_SPLIT_NAME);
	u->has_low = dwarf_address(u, die, WANT_LOW, &u->low);
	if (u->has_low && !dwarf_high(u, die, u->low, &u->high))
		u->high = 0;
	u->has_ranges = dwarf_ranges_offset(u, die, &u->ranges);
	u->has_root = true;
}

static void read_with(struct dwarf_unit *u, const struct dwarf_abbrevs *t, uint64_t code,
		      struct dwarf_cursor c)
{
	const struct dwarf_abbrev *abbrev = dwarf_abbrevs_find(t, code);
	struct dwarf_walk walk = {.unit = u, .abbrevs = t, .c = c};
	struct dwarf_die die;
	if (!abbrev || abbrev->kind != DWARF_ROOT)
		return;
	walk.base = dwarf_section(u->file, DWARF_INFO).bytes;
	walk.c.end = walk.base + u->end;
	dwarf_walk_read(&walk, abbrev, &die);
	if (!walk.c.bad)
		take_root(u, &die);
	if (u->shape.version < 5 && abbrev->tag == DW_TAG_partial_unit)
		u->type = DW_UT_partial;
	else if (u->shape.version < 5 && u->split_name)
		u->type = DW_UT_skeleton;
}

void dwarf_read_root(struct dwarf_unit *u)
{
	struct dwarf_cursor c = dwarf_cursor_at(dwarf_section(u->file, DWARF_INFO), u->die);
	uint64_t code = dwarf_take_uleb(&c);
	struct dwarf_abbrevs *first = c.bad || code == 0 ? NULL : first_abbrevs(u, code);
	const struct dwarf_abbrevs *t = first;
	if (!t && !c.bad && code != 0)
		t = dwarf_unit_abbrevs(u);
	if (t)
		read_with(u, t, code, c);
	if (!u->has_root)
		dwarf_note(u->file->note, "the unit at %#llx is broken",
			   (unsigned long long)u->offset);
	dwarf_abbrevs_free(first);
}

/* ---- all units ---- */

static bool add_unit(struct dwarf_file *file, const struct dwarf_unit *unit, size_t *room)
{
	if (file->unit_count == *room) {
		size_t more = *room ? *room * 2 : 64;
		struct dwarf_unit *moved;
		moved = more <= UNITS_MAX ? reallocarray(file->units, more, sizeof *moved) : NULL;
		if (!moved)
			return false;
		file->units = moved;
		*room = more;
	}
	file->units[file->unit_count++] = *unit;
	return true;
}

void dwarf_list_units(struct dwarf_file *file)
{
	struct dwarf_span info = dwarf_section(file, DWARF_INFO);
	struct dwarf_unit unit;
	size_t room = 0;
	uint64_t next;
	for (uint64_t at = 0; at < info.size; at = next) {
		bool good = dwarf_read_header(file, at, &unit, &next);
		if (!good) {
			dwarf_note(file->note, "the unit at %#llx is broken",
				   (unsigned long long)at);
		} else if (!add_unit(file, &unit, &room)) {
			dwarf_note(file->note, "it has too many units");
			break;
		}
		if (next <= at)
			break;
	}
	for (size_t i = 0; i < file->unit_count; i++) { /* they stay where they are now */
		struct dwarf_unit *u = &file->units[i];
		u->skeleton = u;
		if (u->type != DW_UT_type && u->type != DW_UT_split_type)
			dwarf_read_root(u);
	}
}

struct dwarf_unit *dwarf_unit_at(struct dwarf_file *file, uint64_t offset)
{
	size_t after = FIRST_NOT(i, file->unit_count, file->units[i].offset <= offset);
	if (after == 0 || offset >= file->units[after - 1].end)
		return NULL;
	return &file->units[after - 1];
}
