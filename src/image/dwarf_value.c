/* SPDX-License-Identifier: Apache-2.0 */
#include "image/dwarf_value.h"

#include <stdlib.h>

#include "base/array.h"
#include "image/dwarf_names.h"

/* ---- strings ---- */

static uint64_t strings_base(const struct dwarf_unit *u)
{
	if (u->strings_base != DWARF_NONE)
		return u->strings_base;
	if (u->shape.version < 5)
		return 0;
	return u->shape.offset_size == 8 ? 16 : 8; /* after the header, where nobody says */
}

static const char *indexed_string(struct dwarf_unit *u, uint64_t index)
{
	struct dwarf_span offsets = dwarf_section(u->file, DWARF_STR_OFFSETS);
	struct dwarf_cursor c;
	uint64_t offset;
	if (index > offsets.size)
		return NULL;
	c = dwarf_cursor_at(offsets, strings_base(u));
	dwarf_skip(&c, index * u->shape.offset_size);
	offset = dwarf_take(&c, u->shape.offset_size);
	return c.bad ? NULL : dwarf_string_at(dwarf_section(u->file, DWARF_STR), offset);
}

const char *dwarf_string_of(struct dwarf_unit *u, struct dwarf_value value)
{
	switch (value.form) {
	case DW_FORM_string:
		return (const char *)(uintptr_t)value.raw;
	case DW_FORM_strp:
		return dwarf_string_at(dwarf_section(u->file, DWARF_STR), value.raw);
	case DW_FORM_line_strp:
		return dwarf_string_at(dwarf_section(u->file, DWARF_LINE_STR), value.raw);
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
		return u->file->shared ? dwarf_string_at(dwarf_section(u->file->shared, DWARF_STR),
							 value.raw)
				       : NULL;
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_GNU_str_index:
		return indexed_string(u, value.raw);
	default:
		return NULL;
	}
}

const char *dwarf_string(struct dwarf_unit *u, const struct dwarf_die *die, enum dwarf_wanted what)
{
	return dwarf_has(die, what) ? dwarf_string_of(u, die->values[what]) : NULL;
}

/* ---- addresses and numbers ---- */

static bool indexed_address(struct dwarf_unit *u, uint64_t index, uint64_t *out)
{
	struct dwarf_unit *s = u->skeleton ? u->skeleton : u;
	struct dwarf_span addresses = dwarf_section(s->file, DWARF_ADDR);
	uint64_t base = s->address_base;
	struct dwarf_cursor c;
	if (base == DWARF_NONE)
		base = s->shape.version < 5 ? 0 : 8;
	if (index > addresses.size)
		return false;
	c = dwarf_cursor_at(addresses, base);
	dwarf_skip(&c, index * u->shape.address_size);
	*out = dwarf_take(&c, u->shape.address_size);
	return !c.bad;
}

static bool is_indexed(uint16_t form)
{
	return form == DW_FORM_addrx || form == DW_FORM_GNU_addr_index ||
	       (form >= DW_FORM_addrx1 && form <= DW_FORM_addrx4);
}

bool dwarf_address(struct dwarf_unit *u, const struct dwarf_die *die, enum dwarf_wanted what,
		   uint64_t *out)
{
	const struct dwarf_value *v = &die->values[what];
	if (!dwarf_has(die, what))
		return false;
	*out = v->raw;
	if (is_indexed(v->form))
		return indexed_address(u, v->raw, out);
	return v->form == DW_FORM_addr;
}

bool dwarf_high(struct dwarf_unit *u, const struct dwarf_die *die, uint64_t low, uint64_t *out)
{
	const struct dwarf_value *v = &die->values[WANT_HIGH];
	if (!dwarf_has(die, WANT_HIGH))
		return false;
	if (v->form == DW_FORM_addr || is_indexed(v->form))
		return dwarf_address(u, die, WANT_HIGH, out);
	*out = low + v->raw;
	return v->raw <= UINT64_MAX - low;
}

uint32_t dwarf_number(const struct dwarf_die *die, enum dwarf_wanted what)
{
	uint64_t number = dwarf_has(die, what) ? die->values[what].raw : 0;
	return number <= UINT32_MAX ? (uint32_t)number : 0;
}

/* ---- other DIEs ---- */

bool dwarf_reference(struct dwarf_unit *u, const struct dwarf_die *die, enum dwarf_wanted what,
		     struct dwarf_unit **other, uint64_t *offset)
{
	const struct dwarf_value *v = &die->values[what];
	if (!dwarf_has(die, what))
		return false;
	*offset = v->raw;
	switch (v->form) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		*other = u;
		if (v->raw > u->end - u->offset)
			return false;
		*offset += u->offset;
		break;
	case DW_FORM_ref_addr:
		*other = *offset >= u->offset && *offset < u->end ? u
								  : dwarf_unit_at(u->file, *offset);
		break;
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
		*other = u->file->shared ? dwarf_unit_at(u->file->shared, *offset) : NULL;
		break;
	default:
		*other = NULL;
	}
	return *other && *offset >= (*other)->die && *offset < (*other)->end;
}

/* ---- ranges ---- */

void dwarf_ranges_add(struct dwarf_ranges *out, uint64_t start, uint64_t end)
{
	if (start >= end || start < out->code_start || end > out->code_end)
		return;
	if (!ARRAY_ROOM(out->all, out->count, out->room)) {
		out->exceeded = true;
		return;
	}
	out->all[out->count++] = (struct inline_range){start, end};
}

static bool spend(struct dwarf_ranges *out)
{
	if (out->budget == 0)
		out->exceeded = true;
	else
		out->budget--;
	return !out->exceeded;
}

/* Up to DWARF 4: pairs of offsets from a base, which a pair with the highest address changes. */
static void read_pairs(struct dwarf_unit *u, struct dwarf_cursor c, uint64_t base,
		       struct dwarf_ranges *out)
{
	const uint8_t size = u->shape.address_size;
	const uint64_t highest = size == 8 ? UINT64_MAX : UINT32_MAX;
	while (spend(out)) {
		uint64_t start = dwarf_take(&c, size), end = dwarf_take(&c, size);
		if (c.bad || (start == 0 && end == 0))
			return;
		if (start == highest)
			base = end;
		else
			dwarf_ranges_add(out, base + start, base + end);
	}
}

static uint64_t take_address(struct dwarf_unit *u, struct dwarf_cursor *c, bool indexed)
{
	uint64_t address = 0;
	if (!indexed)
		return dwarf_take(c, u->shape.address_size);
	if (!indexed_address(u, dwarf_take_uleb(c), &address))
		c->bad = true;
	return address;
}

/* DWARF 5: entries of several kinds. */
static void read_entries(struct dwarf_unit *u, struct dwarf_cursor c, uint64_t base,
			 struct dwarf_ranges *out)
{
	uint64_t start, end;
	while (spend(out)) {
		uint64_t kind = dwarf_take(&c, 1);
		switch (kind) {
		case DW_RLE_base_addressx:
		case DW_RLE_base_address:
			base = take_address(u, &c, kind == DW_RLE_base_addressx);
			start = end = 0;
			break;
		case DW_RLE_startx_endx:
		case DW_RLE_start_end:
			start = take_address(u, &c, kind == DW_RLE_startx_endx);
			end = take_address(u, &c, kind == DW_RLE_startx_endx);
			break;
		case DW_RLE_startx_length:
		case DW_RLE_start_length:
			start = take_address(u, &c, kind == DW_RLE_startx_length);
			end = start + dwarf_take_uleb(&c);
			break;
		case DW_RLE_offset_pair:
			start = base + dwarf_take_uleb(&c);
			end = base + dwarf_take_uleb(&c);
			break;
		default: /* the end, or nothing that can be passed over */
			return;
		}
		if (c.bad)
			return;
		dwarf_ranges_add(out, start, end);
	}
}

void dwarf_ranges_read(struct dwarf_unit *u, uint64_t offset, struct dwarf_ranges *out)
{
	struct dwarf_unit *s = u->skeleton ? u->skeleton : u;
	uint64_t base = s->has_low ? s->low : 0;
	if (u->shape.version >= 5)
		read_entries(u, dwarf_cursor_at(dwarf_section(u->file, DWARF_RNGLISTS), offset),
			     base, out);
	else
		read_pairs(u, dwarf_cursor_at(dwarf_section(s->file, DWARF_RANGES), offset), base,
			   out);
}

bool dwarf_ranges_offset(struct dwarf_unit *u, const struct dwarf_die *die, uint64_t *out)
{
	const struct dwarf_value *v = &die->values[WANT_RANGES];
	uint64_t base = u->ranges_base;
	struct dwarf_cursor c;
	if (!dwarf_has(die, WANT_RANGES))
		return false;
	if (v->form != DW_FORM_rnglistx) {
		*out = v->raw + u->ranges_start;
		if (u->shape.version < 5 && u->skeleton && u->skeleton != u)
			*out += u->skeleton->old_ranges_base;
		return true;
	}
	if (base == DWARF_NONE) /* after the header of the first table */
		base = u->ranges_start + (u->shape.offset_size == 8 ? 20 : 12);
	c = dwarf_cursor_at(dwarf_section(u->file, DWARF_RNGLISTS), base);
	if (c.bad || v->raw > dwarf_left(&c))
		return false;
	dwarf_skip(&c, v->raw * u->shape.offset_size);
	*out = base + dwarf_take(&c, u->shape.offset_size);
	return !c.bad;
}

void dwarf_ranges_of(struct dwarf_unit *u, const struct dwarf_die *die, struct dwarf_ranges *out)
{
	uint64_t low, high, offset;
	if (dwarf_ranges_offset(u, die, &offset))
		dwarf_ranges_read(u, offset, out);
	else if (dwarf_address(u, die, WANT_LOW, &low) && dwarf_high(u, die, low, &high))
		dwarf_ranges_add(out, low, high);
}
