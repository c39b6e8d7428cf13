/* SPDX-License-Identifier: Apache-2.0 */
#include "image/dwarf_scopes.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "image/dwarf_names.h"
#include "image/dwarf_value.h"

#define NESTING_MAX 64
#define SCOPES_MAX ((size_t)1 << 22)
#define NAME_MAX_BYTES 4096 /* of all names together: what is further out is left out */
#define NONE UINT32_MAX

struct scope {
	uint64_t start, end; /* offsets: of its DIE, and behind all that is in it */
	const char *name;
	uint32_t outer;
};

struct dwarf_scopes {
	struct scope *all; /* by start */
	size_t count, room;
};

struct open_scope {
	uint32_t index, depth;
	bool function;
};

struct making {
	struct dwarf_scopes *out;
	struct open_scope open[NESTING_MAX];
	size_t nesting;
	bool failed;
};

static bool has_scope(uint16_t tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_class_type ||
	       tag == DW_TAG_structure_type || tag == DW_TAG_union_type ||
	       tag == DW_TAG_interface_type || tag == DW_TAG_subprogram;
}

static void open_one(struct making *m, const struct dwarf_die *die, const char *name,
		     uint32_t depth)
{
	struct dwarf_scopes *out = m->out;
	if (m->nesting == NESTING_MAX)
		return;
	if (!ARRAY_ROOM_BELOW(out->all, out->count, out->room, SCOPES_MAX)) {
		m->failed = true;
		return;
	}
	out->all[out->count] = (struct scope){
		.start = die->offset,
		.end = UINT64_MAX,
		.name = name,
		.outer = m->nesting ? m->open[m->nesting - 1].index : NONE,
	};
	m->open[m->nesting++] = (struct open_scope){(uint32_t)out->count++, depth,
						    die->abbrev->tag == DW_TAG_subprogram};
}

/* Ends those that a DIE of this depth does not lie in. Most functions hold nothing that has to be
   told by them, and are not kept. */
static void close_to(struct making *m, uint32_t depth, uint64_t offset)
{
	while (m->nesting && m->open[m->nesting - 1].depth >= depth) {
		struct open_scope *last = &m->open[--m->nesting];
		m->out->all[last->index].end = offset;
		if (last->function && last->index + 1 == m->out->count)
			m->out->count--;
	}
}

static const char *scope_name(struct dwarf_unit *unit, const struct dwarf_die *die)
{
	const char *name = dwarf_string(unit, die, WANT_NAME);
	if (name || die->abbrev->tag == DW_TAG_subprogram)
		return name; /* an instance has none: the abstract one does */
	return die->abbrev->tag == DW_TAG_namespace ? "(anonymous namespace)" : "(anonymous)";
}

static struct dwarf_scopes *make(struct dwarf_unit *unit)
{
	struct making m = {.out = calloc(1, sizeof *m.out)};
	const struct dwarf_abbrev *abbrev;
	struct dwarf_walk walk;
	struct dwarf_die die;
	const char *name;
	uint32_t depth;
	if (!m.out || !dwarf_walk_start(&walk, unit, unit->die))
		return m.out;
	while (!m.failed && (abbrev = dwarf_walk_next(&walk, &depth))) {
		close_to(&m, depth, walk.offset);
		if (abbrev->kind == DWARF_BARREN) {
			dwarf_walk_pass_tree(&walk, abbrev);
		} else if (!abbrev->children || !has_scope(abbrev->tag)) {
			dwarf_walk_pass(&walk, abbrev);
		} else {
			dwarf_walk_read(&walk, abbrev, &die);
			name = walk.c.bad ? NULL : scope_name(unit, &die);
			if (name)
				open_one(&m, &die, name, depth);
		}
	}
	return m.out;
}

/* Made without a lock: of two threads that do so at once one throws its own away. */
static struct dwarf_scopes *need(struct dwarf_unit *unit)
{
	struct dwarf_scopes *scopes = atomic_load(&unit->scopes), *none = NULL;
	if (scopes)
		return scopes;
	scopes = make(unit);
	if (scopes && !atomic_compare_exchange_strong(&unit->scopes, &none, scopes)) {
		dwarf_scopes_free(scopes);
		scopes = none;
	}
	return scopes;
}

void dwarf_scopes_free(struct dwarf_scopes *scopes)
{
	if (!scopes)
		return;
	free(scopes->all);
	free(scopes);
}

void dwarf_scopes_append(struct dwarf_unit *unit, uint64_t offset, struct buf *out)
{
	const struct dwarf_scopes *scopes = need(unit);
	const char *names[NESTING_MAX];
	size_t low = 0, high = scopes ? scopes->count : 0, count = 0;
	size_t length = 0;
	uint32_t at;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (scopes->all[middle].start < offset)
			low = middle + 1;
		else
			high = middle;
	}
	/* What holds the DIE holds, or is, the last one that began before it. */
	for (at = low ? (uint32_t)(low - 1) : NONE; at != NONE; at = scopes->all[at].outer) {
		if (scopes->all[at].end <= offset)
			continue;
		length += strnlen(scopes->all[at].name, NAME_MAX_BYTES);
		if (length > NAME_MAX_BYTES || count == NESTING_MAX)
			break;
		names[count++] = scopes->all[at].name;
	}
	while (count > 0) {
		buf_puts(out, names[--count]);
		buf_puts(out, "::");
	}
}
