/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of one function: the DIEs below its own, of which the inlined ones
 * become scopes; blocks between them count for nothing, functions and types in
 * them stand for themselves.
 *
 * Bounds: a scope costs at least a byte of DWARF; lists of ranges may be shared,
 * so their entries are counted against the size of what was read; names lie
 * behind a chain of references of which few steps are followed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "image/dwarf_names.h"
#include "image/dwarf_scopes.h"
#include "image/dwarf_value.h"
#include "image/inlines_unit.h"
#include "image/lines.h"
#include "image/lines_files.h"
#include "image/lines_table.h"

#define REFERENCES_MAX 16
#define NESTING_MAX 1024 /* of inlined functions: those further in count as the last one's */
#define SCOPES_MAX ((size_t)1 << 24)
#define RANGES_FREE 1024
#define RANGES_PER_BYTE 16
#define NAMES_FREE 16384
#define NAMES_PER_BYTE 256
#define NAME_MAX_BYTES 4096

struct nested {
	uint32_t scope, depth; /* depth: of its DIE */
};

struct tree {
	struct inline_unit *unit;
	struct lines *lines;
	struct lines_files *made; /* names that stand nowhere in the file */
	struct inline_memory *memory;
	struct inline_procedure *out;
	size_t scope_room;
	struct dwarf_ranges ranges; /* of all scopes */
	struct nested stack[NESTING_MAX];
	size_t nesting;
	uint64_t names_left;     /* bytes that may be read to find names */
	const uint8_t *credited; /* up to here what was read adds to these bounds */
	bool failed;
};

/* ---- names ---- */

/* What this DIE itself says. */
static void take_names(struct tree *t, struct dwarf_unit *unit, const struct dwarf_die *die,
		       struct inline_names *out)
{
	if (!out->name)
		out->name = dwarf_string(unit, die, WANT_LINKAGE_NAME);
	if (!out->plain)
		out->plain = dwarf_string(unit, die, WANT_NAME);
	if (!out->line)
		out->line = dwarf_number(die, WANT_DECL_LINE);
	if (!out->column)
		out->column = dwarf_number(die, WANT_DECL_COLUMN);
	if (!out->file && dwarf_has(die, WANT_DECL_FILE))
		out->file = lines_unit_file(t->lines, unit, die->values[WANT_DECL_FILE].raw);
}

static bool follow(struct dwarf_unit **unit, const struct dwarf_die *die, uint64_t *offset)
{
	struct dwarf_unit *other;
	if (!dwarf_reference(*unit, die, WANT_ORIGIN, &other, offset) &&
	    !dwarf_reference(*unit, die, WANT_SPECIFICATION, &other, offset))
		return false;
	*unit = other;
	return true;
}

static bool is_cplusplus(uint16_t language)
{
	return language == DW_LANG_C_plus_plus || language == DW_LANG_C_plus_plus_03 ||
	       language == DW_LANG_C_plus_plus_11 || language == DW_LANG_C_plus_plus_14 ||
	       language == DW_LANG_C_plus_plus_17 || language == DW_LANG_C_plus_plus_20;
}

/* A name for a function that has no linkage name, with what it lies in: "main::{lambda at line 8}::" is
   what tells one "operator()" from all the others. */
static const char *qualified(struct tree *t, struct dwarf_unit *unit, uint64_t offset,
			     const char *plain)
{
	struct buf name = {0};
	uint32_t number = 0;
	if (!plain || !is_cplusplus(t->out->language))
		return plain;
	dwarf_scopes_append(unit, offset, &name);
	if (name.size > 0) {
		buf_append(&name, plain, strnlen(plain, NAME_MAX_BYTES));
		if (!name.failed)
			number = lines_files_number(t->made, name.data, name.size);
	}
	buf_free(&name);
	return number ? lines_files_path(t->made, number) : plain;
}

/* What is said of a function by its DIE and those that it refers to: of an instance it is the
   abstract one, of a definition outside of its class the declaration. */
static void find_names(struct tree *t, struct dwarf_unit *unit, struct dwarf_die *die,
		       struct inline_names *out)
{
	uint64_t offset;
	take_names(t, unit, die, out);
	for (int i = 0; i < REFERENCES_MAX && follow(&unit, die, &offset); i++) {
		if (!dwarf_read_die(unit, offset, die, &t->names_left))
			break;
		if (die->abbrev->kind != DWARF_FUNCTION && die->abbrev->kind != DWARF_INLINED)
			break;
		take_names(t, unit, die, out);
	}
	if (out->name)
		return;
	out->name = qualified(t, unit, die->offset, out->plain);
	uint32_t file, line;
	if (!out->line && dwarf_scopes_lambda(unit, die->offset, &file, &line)) {
		out->line = line;
		out->file = file ? lines_unit_file(t->lines, unit, file) : out->file;
	}
}

/* The names of the function that was inlined; many scopes have the same. */
static struct inline_names origin_names(struct tree *t, struct dwarf_unit *unit,
					struct dwarf_die *die)
{
	struct inline_names names = {0}, *kept;
	struct dwarf_unit *other;
	const uint8_t *key;
	uint64_t offset;
	if (!dwarf_reference(unit, die, WANT_ORIGIN, &other, &offset))
		return names;
	key = dwarf_section(other->file, DWARF_INFO).bytes + offset;
	kept = &t->memory->all[((uintptr_t)key * 0x9e3779b97f4a7c15ull >> 32) & t->memory->mask];
	if (kept->die == key)
		return *kept;
	if (dwarf_read_die(other, offset, die, &t->names_left) &&
	    die->abbrev->kind == DWARF_FUNCTION)
		find_names(t, other, die, &names);
	names.die = key;
	*kept = names;
	return names;
}

/* ---- scopes ---- */

static int compare_ranges(const void *a, const void *b)
{
	const struct inline_range *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

/* Sorts the ranges from `first` on and joins those that overlap or touch. */
static void tidy_ranges(struct dwarf_ranges *r, size_t first)
{
	size_t kept = first;
	bool sorted = true;
	for (size_t i = first + 1; i < r->count; i++)
		sorted &= r->all[i - 1].start <= r->all[i].start;
	if (!sorted)
		qsort(r->all + first, r->count - first, sizeof *r->all, compare_ranges);
	for (size_t i = first; i < r->count; i++) {
		if (kept > first && r->all[i].start <= r->all[kept - 1].end) {
			if (r->all[i].end > r->all[kept - 1].end)
				r->all[kept - 1].end = r->all[i].end;
		} else {
			r->all[kept++] = r->all[i];
		}
	}
	r->count = kept;
}

static struct inline_scope *new_scope(struct tree *t)
{
	struct inline_procedure *out = t->out;
	if (!ARRAY_ROOM_BELOW(out->scopes, out->scope_count, t->scope_room, SCOPES_MAX)) {
		t->failed = true;
		return NULL;
	}
	return &out->scopes[out->scope_count++];
}

/* Reads the ranges of a DIE behind those that there are. */
static void read_ranges(struct tree *t, const struct dwarf_die *die, struct inline_scope *scope)
{
	scope->first = (uint32_t)t->ranges.count;
	dwarf_ranges_of(t->unit->unit, die, &t->ranges);
	if (scope->first == 0 && t->ranges.count && t->out->scope_count == 1)
		t->out->entry =
			t->ranges.all[0].start; /* lists begin with the part that is entered */
	tidy_ranges(&t->ranges, scope->first);
	scope->count = (uint32_t)(t->ranges.count - scope->first);
}

static void set_names(struct inline_scope *scope, const struct inline_names *names)
{
	scope->name = names->name;
	scope->plain = names->plain;
	scope->file = names->file;
	scope->line = names->line;
}

static void add_root(struct tree *t, struct dwarf_die *die)
{
	struct inline_scope *scope = new_scope(t);
	struct inline_names names = {0};
	if (!scope)
		return;
	*scope = (struct inline_scope){0};
	read_ranges(t, die, scope);
	find_names(t, t->unit->unit, die, &names);
	set_names(scope, &names);
	t->stack[t->nesting++] = (struct nested){0, 0};
}

/* A function that was split, and whose part was inlined back into the rest, is recorded as inlined into
   itself, and its name, where it is declared, as the place of the call. What really calls
   itself does so from another place, be it of the same line. */
static bool is_own_part(const struct tree *t, const struct inline_scope *scope, uint32_t column)
{
	const struct inline_scope *outer = &t->out->scopes[scope->parent];
	return scope->call_column && scope->call_column == column && scope->call_line &&
	       scope->call_line == scope->line && scope->call_file == scope->file &&
	       outer->line == scope->line && outer->file == scope->file && scope->name &&
	       outer->name && strcmp(scope->name, outer->name) == 0;
}

static void add_inlined(struct tree *t, struct dwarf_die *die, uint32_t depth)
{
	struct dwarf_unit *unit = t->unit->unit;
	struct inline_scope scope = {0}, *place;
	struct inline_names names;
	read_ranges(t, die, &scope);
	scope.parent = t->stack[t->nesting - 1].scope;
	scope.depth = t->out->scopes[scope.parent].depth + 1;
	if (dwarf_has(die, WANT_CALL_FILE))
		scope.call_file = lines_unit_file(t->lines, unit, die->values[WANT_CALL_FILE].raw);
	scope.call_line = dwarf_number(die, WANT_CALL_LINE);
	scope.call_column = dwarf_number(die, WANT_CALL_COLUMN) <= UINT16_MAX
				    ? (uint16_t)dwarf_number(die, WANT_CALL_COLUMN)
				    : 0;
	scope.call_discriminator = dwarf_number(die, WANT_DISCRIMINATOR);
	names = origin_names(t, unit, die);
	set_names(&scope, &names);
	scope.own = is_own_part(t, &scope, names.column);
	place = new_scope(t);
	if (!place)
		return;
	*place = scope;
	if (t->nesting < NESTING_MAX)
		t->stack[t->nesting++] = (struct nested){(uint32_t)(t->out->scope_count - 1),
							 depth};
}

/* ---- the walk ---- */

static void credit(struct tree *t, const struct dwarf_walk *walk)
{
	uint64_t bytes = (uint64_t)(walk->c.at - t->credited);
	t->ranges.budget += RANGES_PER_BYTE * bytes;
	t->names_left += NAMES_PER_BYTE * bytes;
	t->credited = walk->c.at;
}

static void walk_body(struct tree *t, struct dwarf_walk *walk)
{
	const struct dwarf_abbrev *abbrev;
	struct dwarf_die die;
	uint32_t depth;
	while (!t->failed && walk->depth > 0 && (abbrev = dwarf_walk_next(walk, &depth))) {
		while (t->nesting > 1 && t->stack[t->nesting - 1].depth >= depth)
			t->nesting--;
		switch (abbrev->kind) {
		case DWARF_BLOCK:
			dwarf_walk_pass(walk, abbrev);
			break;
		case DWARF_INLINED:
			dwarf_walk_read(walk, abbrev, &die);
			credit(t, walk);
			if (!walk->c.bad)
				add_inlined(t, &die, depth);
			break;
		default:
			dwarf_walk_pass_tree(walk, abbrev);
		}
	}
}

/* ---- scopes without addresses ---- */

#define NONE UINT32_MAX

struct family {                     /* of a scope */
	uint32_t first_child, next; /* next: the following child of the same parent */
	uint32_t place;             /* where it is moved to */
};

/* All code of an inlined function may belong to those inlined into it in turn: then theirs is
   its own. */
static void take_over(struct tree *t, const struct family *family, size_t index)
{
	struct inline_scope *scopes = t->out->scopes, *scope = &scopes[index];
	size_t first = t->ranges.count;
	for (uint32_t i = family[index].first_child; i != NONE; i = family[i].next) {
		if (scopes[i].count > t->ranges.budget)
			break;
		t->ranges.budget -= scopes[i].count;
		for (uint32_t k = 0; k < scopes[i].count; k++) {
			struct inline_range range = t->ranges.all[scopes[i].first + k];
			dwarf_ranges_add(&t->ranges, range.start, range.end);
		}
	}
	tidy_ranges(&t->ranges, first);
	scope->first = (uint32_t)first;
	scope->count = (uint32_t)(t->ranges.count - first);
}

/* Leaves out those that have no code, nor anything in them. Scopes stand before what is in them:
   from the last to the first each is finished when its parent's turn comes. */
static bool drop_empty(struct tree *t)
{
	struct inline_scope *scopes = t->out->scopes;
	struct family *family = reallocarray(NULL, t->out->scope_count, sizeof *family);
	size_t kept = 0;
	if (!family)
		return false;
	for (size_t i = 0; i < t->out->scope_count; i++)
		family[i] = (struct family){NONE, NONE, 0};
	for (size_t i = t->out->scope_count; i-- > 1;) {
		if (scopes[i].count == 0)
			take_over(t, family, i);
		if (scopes[i].count == 0)
			continue;
		family[i].next = family[scopes[i].parent].first_child;
		family[scopes[i].parent].first_child = (uint32_t)i;
	}
	for (size_t i = 0; i < t->out->scope_count; i++) {
		family[i].place = (uint32_t)kept;
		if (i > 0 && scopes[i].count == 0)
			continue;
		scopes[kept] = scopes[i];
		scopes[kept].parent = family[scopes[i].parent].place;
		kept++;
	}
	t->out->scope_count = kept;
	free(family);
	return true;
}

static bool finish(struct tree *t)
{
	struct inline_procedure *out = t->out;
	bool empty = false;
	for (size_t i = 1; i < out->scope_count; i++)
		empty |= out->scopes[i].count == 0;
	if (empty && !t->failed)
		t->failed = !drop_empty(t);
	out->ranges = t->ranges.all;
	out->range_count = t->ranges.count;
	if (t->ranges.exceeded)
		dwarf_note(t->unit->unit->file->note,
			   "a function of the unit at %#llx has too many ranges",
			   (unsigned long long)t->unit->unit->offset);
	if (!t->failed && out->scope_count > 0 && t->ranges.count <= UINT32_MAX)
		return true;
	inline_procedure_free(out);
	return false;
}

bool inline_unit_build(struct inline_unit *unit, const struct inline_tools *tools,
		       struct inline_memory *memory, const struct inline_function *function,
		       struct inline_procedure *out)
{
	struct tree t = {.unit = unit, .lines = tools->lines, .made = tools->names};
	const struct dwarf_abbrev *abbrev;
	struct dwarf_walk walk;
	struct dwarf_die die;
	uint32_t depth;
	t.memory = memory;
	t.out = out;
	*out = (struct inline_procedure){.records_inlining = unit->records};
	out->language = unit->unit->language ? unit->unit->language
					     : unit->unit->skeleton->language;
	dwarf_module_code(tools->module, &t.ranges.code_start, &t.ranges.code_end);
	t.ranges.budget = RANGES_FREE;
	t.names_left = NAMES_FREE;
	if (!dwarf_walk_start(&walk, unit->unit, function->offset))
		return false;
	t.credited = walk.c.at;
	abbrev = dwarf_walk_next(&walk, &depth);
	if (!abbrev)
		return false;
	dwarf_walk_read(&walk, abbrev, &die);
	add_root(&t, &die);
	if (abbrev->children && !t.failed)
		walk_body(&t, &walk);
	return finish(&t);
}

/* LLVM's record counts the pushes at the entry to the inlined function whose code comes first. The line
   map knows better: it has a row for them, with the line in which the procedure opens and no column. */
uint64_t inline_procedure_opening(const struct inline_procedure *p, const struct line_row *rows,
				  size_t count)
{
	const struct inline_scope *self = p->scopes;
	/* Where the next row has no column either, the compiler writes none. */
	if (count < 2 || rows[0].address != p->entry || rows[0].column || !rows[1].column ||
	    rows[0].file != self->file || rows[0].line < self->line)
		return 0;
	/* A function that is written between the two is one whose line this may be. */
	for (size_t i = 1; i < p->scope_count; i++)
		if (p->scopes[i].file == self->file && p->scopes[i].line > self->line &&
		    p->scopes[i].line <= rows[0].line)
			return 0;
	return rows[0].end;
}

void inline_procedure_free(struct inline_procedure *procedure)
{
	free(procedure->scopes);
	free(procedure->ranges);
	*procedure = (struct inline_procedure){0};
}
