/* SPDX-License-Identifier: Apache-2.0 */
/* Through the DIEs of a unit. */
#include "image/dwarf_names.h"
#include "image/dwarf_unit.h"

static void pass_step(struct dwarf_walk *w, const struct dwarf_step *s)
{
	switch (s->how) {
	case HOW_FIXED:
		dwarf_skip(&w->c, s->size);
		break;
	case HOW_LEB:
		dwarf_take_uleb(&w->c);
		break;
	case HOW_BLOCK:
		dwarf_skip(&w->c, dwarf_take_uleb(&w->c));
		break;
	default:
		dwarf_form_skip(&w->c, s->form, w->unit->shape);
	}
}

/* A value that is wanted. Blocks have none. */
static bool take_value(struct dwarf_walk *w, enum dwarf_how how, uint64_t form, uint32_t size,
		       struct dwarf_value *out)
{
	out->form = (uint16_t)form;
	switch (how) {
	case HOW_FIXED:
		if (size > 8) {
			dwarf_skip(&w->c, size);
			return false;
		}
		out->raw = dwarf_take(&w->c, size);
		break;
	case HOW_LEB:
		out->raw = form == DW_FORM_sdata ? (uint64_t)dwarf_take_sleb(&w->c)
						 : dwarf_take_uleb(&w->c);
		break;
	case HOW_STRING:
		out->raw = (uintptr_t)dwarf_take_string(&w->c);
		break;
	default:
		dwarf_form_skip(&w->c, form, w->unit->shape);
		return false;
	}
	return !w->c.bad;
}

static bool take_step(struct dwarf_walk *w, const struct dwarf_step *s, struct dwarf_value *out)
{
	uint64_t form = s->form;
	enum dwarf_how how = s->how;
	uint32_t size = s->size;
	while (how == HOW_INDIRECT && !w->c.bad) {
		form = dwarf_take_uleb(&w->c);
		how = dwarf_form_how(form, w->unit->shape, &size);
	}
	if (how == HOW_UNKNOWN) {
		w->c.bad = true;
		return false;
	}
	if (how == HOW_FIXED && size == 0) {
		*out = (struct dwarf_value){(uint64_t)s->value, (uint16_t)form};
		return true;
	}
	return take_value(w, how, form, size, out);
}

void dwarf_walk_read(struct dwarf_walk *w, const struct dwarf_abbrev *abbrev, struct dwarf_die *die)
{
	const struct dwarf_step *s = w->abbrevs->steps + abbrev->first, *end = s + abbrev->count;
	die->offset = w->offset;
	die->abbrev = abbrev;
	die->has = 0;
	for (; s < end && !w->c.bad; s++) {
		if (s->what == WANT_NOTHING)
			pass_step(w, s);
		else if (take_step(w, s, &die->values[s->what]))
			die->has |= 1u << s->what;
	}
	w->depth += abbrev->children;
}

void dwarf_walk_pass(struct dwarf_walk *w, const struct dwarf_abbrev *abbrev)
{
	const struct dwarf_step *s = w->abbrevs->steps + abbrev->first, *end = s + abbrev->count;
	w->depth += abbrev->children;
	if (abbrev->fixed >= 0) {
		dwarf_skip(&w->c, (uint64_t)abbrev->fixed);
		return;
	}
	for (; s < end && !w->c.bad; s++)
		pass_step(w, s);
}

/* DW_AT_sibling leads over the tree, where there is one that leads onwards. */
static bool jump(struct dwarf_walk *w, const struct dwarf_die *die)
{
	const struct dwarf_value *v = &die->values[WANT_SIBLING];
	uint64_t here = (uint64_t)(w->c.at - w->base), there;
	if (!dwarf_has(die, WANT_SIBLING) || w->c.bad)
		return false;
	there = v->form == DW_FORM_ref_addr ? v->raw : w->unit->offset + v->raw;
	if (there < here || there >= w->unit->end)
		return false;
	w->c.at = w->base + there;
	w->depth--;
	return true;
}

void dwarf_walk_pass_tree(struct dwarf_walk *w, const struct dwarf_abbrev *abbrev)
{
	uint32_t depth = w->depth;
	struct dwarf_die die;
	if (!abbrev->children) {
		dwarf_walk_pass(w, abbrev);
		return;
	}
	if (abbrev->wanted & 1u << WANT_SIBLING) {
		dwarf_walk_read(w, abbrev, &die);
		if (jump(w, &die))
			return;
	} else {
		dwarf_walk_pass(w, abbrev);
	}
	while (w->depth > depth && !w->c.bad) {
		uint64_t code = dwarf_take_uleb(&w->c);
		if (code == 0) {
			w->depth--;
			continue;
		}
		abbrev = dwarf_abbrevs_find(w->abbrevs, code);
		if (abbrev)
			dwarf_walk_pass(w, abbrev);
		else
			w->c.bad = true; /* the next one says so */
	}
}

bool dwarf_walk_start(struct dwarf_walk *w, struct dwarf_unit *unit, uint64_t offset)
{
	struct dwarf_span info = dwarf_section(unit->file, DWARF_INFO);
	*w = (struct dwarf_walk){.unit = unit, .base = info.bytes};
	w->abbrevs = dwarf_unit_abbrevs(unit);
	if (!w->abbrevs || offset < unit->die || offset >= unit->end || unit->end > info.size)
		return false;
	w->c = (struct dwarf_cursor){info.bytes + offset, info.bytes + unit->end, false};
	return true;
}

const struct dwarf_abbrev *dwarf_walk_next(struct dwarf_walk *w, uint32_t *depth)
{
	const struct dwarf_abbrev *abbrev;
	uint64_t code;
	for (;;) {
		w->offset = (uint64_t)(w->c.at - w->base);
		if (w->c.at == w->c.end && !w->c.bad)
			return NULL;
		code = dwarf_take_uleb(&w->c);
		if (w->c.bad)
			break;
		if (code == 0) {
			if (w->depth <= 1)
				return NULL;
			w->depth--;
			continue;
		}
		abbrev = dwarf_abbrevs_find(w->abbrevs, code);
		if (!abbrev)
			break;
		*depth = w->depth;
		return abbrev;
	}
	dwarf_note(w->unit->file->note, "the DIE at %#llx is broken",
		   (unsigned long long)w->offset);
	return NULL;
}

bool dwarf_read_die(struct dwarf_unit *unit, uint64_t offset, struct dwarf_die *die, uint64_t *room)
{
	const struct dwarf_abbrev *abbrev;
	struct dwarf_walk walk;
	uint64_t code;
	if (!dwarf_walk_start(&walk, unit, offset))
		return false;
	walk.offset = offset;
	if (dwarf_left(&walk.c) > *room)
		walk.c.end = walk.c.at + *room;
	code = dwarf_take_uleb(&walk.c);
	abbrev = dwarf_abbrevs_find(walk.abbrevs, code);
	if (!abbrev || walk.c.bad)
		return false;
	dwarf_walk_read(&walk, abbrev, die);
	*room -= walk.c.bad ? *room : (uint64_t)(walk.c.at - walk.base) - offset;
	return !walk.c.bad;
}
