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
	const char *name;    /* NULL: a class without one */
	uint32_t file, line; /* of such a class, where it is written; 0: not known */
	uint32_t outer;
	bool lambda; /* such a class, made by the compiler */
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

/* gcc gives the class of a lambda expression no name. The function in it is written nowhere. */
static bool is_lambda(const struct making *m, const struct dwarf_die *die, const char *name,
		      uint32_t depth)
{
	const struct open_scope *outer = m->nesting ? &m->open[m->nesting - 1] : NULL;
	return name && !strcmp(name, "operator()") && !dwarf_has(die, WANT_DECL_LINE) && outer &&
	       outer->depth + 1 == depth && !m->out->all[outer->index].name;
}

static void open_one(struct making *m, const struct dwarf_die *die, const char *name,
		     uint32_t depth)
{
	struct dwarf_scopes *out = m->out;
	if (is_lambda(m, die, name, depth))
		out->all[m->open[m->nesting - 1].index].lambda = true;
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
		.file = name ? 0 : dwarf_number(die, WANT_DECL_FILE),
		.line = name ? 0 : dwarf_number(die, WANT_DECL_LINE),
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

/* False: what it holds is not told by it. */
static bool scope_name(struct dwarf_unit *unit, const struct dwarf_die *die, const char **name)
{
	*name = dwarf_string(unit, die, WANT_NAME);
	if (!*name && die->abbrev->tag == DW_TAG_namespace)
		*name = "(anonymous namespace)";
	/* An instance of a function has none: the abstract one does. */
	return *name || die->abbrev->tag != DW_TAG_subprogram;
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
			if (!walk.c.bad && scope_name(unit, &die, &name))
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

/* The innermost scope that holds the DIE at `offset`; NONE: there is none. */
static uint32_t find_holder(const struct dwarf_scopes *scopes, uint64_t offset)
{
	size_t after = FIRST_NOT(i, scopes ? scopes->count : 0, scopes->all[i].start < offset);
	uint32_t at = after ? (uint32_t)(after - 1) : NONE;
	/* What holds the DIE holds, or is, the last one that began before it. */
	while (at != NONE && scopes->all[at].end <= offset)
		at = scopes->all[at].outer;
	return at;
}

static void append_name(const struct scope *scope, struct buf *out)
{
	if (scope->name)
		buf_append(out, scope->name, strnlen(scope->name, NAME_MAX_BYTES));
	else if (scope->lambda && scope->line)
		buf_printf(out, "{lambda at line %u}", (unsigned)scope->line);
	else
		buf_puts(out, scope->lambda ? "{lambda}" : "(anonymous)");
	buf_puts(out, "::");
}

void dwarf_scopes_append(struct dwarf_unit *unit, uint64_t offset, struct buf *out)
{
	const struct dwarf_scopes *scopes = need(unit);
	const struct scope *found[NESTING_MAX];
	size_t count = 0, length = 0;
	for (uint32_t at = find_holder(scopes, offset); at != NONE; at = scopes->all[at].outer) {
		const char *name = scopes->all[at].name;
		length += name ? strnlen(name, NAME_MAX_BYTES) : 0;
		if (length > NAME_MAX_BYTES || count == NESTING_MAX)
			break;
		found[count++] = &scopes->all[at];
	}
	while (count > 0)
		append_name(found[--count], out);
}

bool dwarf_scopes_lambda(struct dwarf_unit *unit, uint64_t offset, uint32_t *file, uint32_t *line)
{
	const struct dwarf_scopes *scopes = need(unit);
	uint32_t at = find_holder(scopes, offset);
	if (at == NONE || !scopes->all[at].lambda)
		return false;
	*file = scopes->all[at].file;
	*line = scopes->all[at].line;
	return true;
}
