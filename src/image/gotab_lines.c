/* SPDX-License-Identifier: Apache-2.0 */
#include "image/gotab_lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "image/gotab.h"
#include "image/inlines.h"
#include "image/lines.h"
#include "image/lines_files.h"

#define SCOPES_MAX 65536
#define RANGES_MAX (1u << 20)
#define NESTED_MAX 256

static uint32_t file_number(const struct gotab *t, size_t index, struct lines_files *files,
			    int32_t file)
{
	const char *path = gotab_file(t, index, file);
	return path ? lines_files_number(files, path, strlen(path)) : 0;
}

/* ---- rows ---- */

struct row_list {
	struct line_row *all;
	size_t count, room;
};

static bool add_row(struct row_list *l, const struct line_row *row)
{
	if (!ARRAY_ROOM(l->all, l->count, l->room))
		return false;
	l->all[l->count++] = *row;
	return true;
}

/* Files change less often than lines do. */
static bool add_function(const struct gotab *t, size_t index, struct lines_files *files,
			 uint64_t start, uint64_t end, struct row_list *out)
{
	struct gotab_values line = {.table = t, .index = index, .what = GOTAB_LINE};
	struct gotab_values file = {.table = t, .index = index, .what = GOTAB_FILE};
	uint32_t number = 0;
	bool has_file = gotab_next(&file);
	if (has_file)
		number = file_number(t, index, files, file.value);
	while (gotab_next(&line) && line.start < end) {
		for (uint64_t at = line.start; at < line.end;) {
			while (has_file && file.end <= at) {
				has_file = gotab_next(&file);
				number = has_file ? file_number(t, index, files, file.value) : 0;
			}
			uint64_t to = has_file && file.end < line.end ? file.end : line.end;
			struct line_row row = {.address = at > start ? at : start,
					       .end = to < end ? to : end,
					       .file = number,
					       .line = line.value > 0 ? (uint32_t)line.value : 0,
					       .statement = true};
			if (row.address < row.end && !add_row(out, &row))
				return false;
			at = to;
		}
	}
	return true;
}

bool gotab_rows(const struct gotab *t, struct lines_files *files, uint64_t start, uint64_t end,
		struct line_row **rows, size_t *count)
{
	struct row_list list = {0};
	struct gotab_function f;
	size_t index;
	bool good = true;
	gotab_find(t, start, &index); /* else the first one, which may begin after it */
	for (; good && gotab_function(t, index, &f) && f.start < end; index++)
		if (f.end > start)
			good = add_function(t, index, files, start, end, &list);
	if (!good) {
		free(list.all);
		return false;
	}
	*rows = list.all;
	*count = list.count;
	return true;
}

/* ---- what was inlined ---- */

struct tree {
	const struct gotab *table;
	size_t index;
	struct lines_files *files;
	struct gotab_function function;
	struct inline_procedure *out;
	int32_t *which; /* of each scope; that of the function is -1 */
	size_t scope_room, range_room;
	uint32_t *owners; /* of each range, its scope */
	bool failed;
};

static void read_place(const struct tree *t, uint64_t address, uint32_t *file, uint32_t *line)
{
	int32_t value;
	*file = *line = 0;
	if (gotab_value(t->table, t->index, GOTAB_FILE, address, &value))
		*file = file_number(t->table, t->index, t->files, value);
	if (gotab_value(t->table, t->index, GOTAB_LINE, address, &value) && value > 0)
		*line = (uint32_t)value;
}

static bool grow_scopes(struct tree *t)
{
	size_t room = t->scope_room ? t->scope_room * 2 : 8;
	if (t->out->scope_count < t->scope_room)
		return true;
	struct inline_scope *scopes = reallocarray(t->out->scopes, room, sizeof *scopes);
	if (scopes)
		t->out->scopes = scopes;
	int32_t *which = reallocarray(t->which, room, sizeof *which);
	if (which)
		t->which = which;
	t->failed = t->failed || !scopes || !which;
	t->scope_room = t->failed ? t->scope_room : room;
	return !t->failed;
}

static bool grow_ranges(struct tree *t)
{
	size_t room = t->range_room ? t->range_room * 2 : 16;
	if (t->out->range_count < t->range_room)
		return true;
	struct inline_range *ranges = reallocarray(t->out->ranges, room, sizeof *ranges);
	if (ranges)
		t->out->ranges = ranges;
	uint32_t *owners = reallocarray(t->owners, room, sizeof *owners);
	if (owners)
		t->owners = owners;
	t->failed = t->failed || !ranges || !owners;
	t->range_room = t->failed ? t->range_room : room;
	return !t->failed;
}

/* The scope of what was inlined as `which`: made, with those that it lies in, where it is new. */
static uint32_t scope_of(struct tree *t, int32_t which, unsigned depth)
{
	struct inline_procedure *p = t->out;
	struct inline_scope scope = {0};
	int32_t outer = -1;
	uint64_t call;
	for (uint32_t i = 0; i < p->scope_count; i++)
		if (t->which[i] == which)
			return i;
	if (depth > NESTED_MAX || p->scope_count >= SCOPES_MAX ||
	    !gotab_inlined(t->table, t->index, which, &scope.name, &call))
		return 0;
	gotab_value(t->table, t->index, GOTAB_INLINE, call, &outer);
	if (outer >= 0 && outer != which)
		scope.parent = scope_of(t, outer, depth + 1);
	if (!grow_scopes(t))
		return 0;
	scope.depth = p->scopes[scope.parent].depth + 1;
	read_place(t, call, &scope.call_file, &scope.call_line);
	t->which[p->scope_count] = which;
	p->scopes[p->scope_count] = scope;
	return (uint32_t)p->scope_count++;
}

/* A piece of code is its scope's, and of all that it lies in. */
static void add_range(struct tree *t, uint32_t scope, uint64_t start, uint64_t end)
{
	struct inline_procedure *p = t->out;
	for (unsigned i = 0; i <= NESTED_MAX && scope; i++, scope = p->scopes[scope].parent) {
		if (p->range_count >= RANGES_MAX || !grow_ranges(t))
			return;
		t->owners[p->range_count] = scope;
		p->ranges[p->range_count++] = (struct inline_range){start, end};
	}
}

/* The ranges of each scope one after another, those that touch as one. */
static void sort_ranges(struct tree *t)
{
	struct inline_procedure *p = t->out;
	struct inline_range *sorted = calloc(p->range_count + 1, sizeof *sorted);
	size_t count = 0;
	t->failed = t->failed || !sorted;
	for (uint32_t s = 0; sorted && s < p->scope_count; s++) {
		struct inline_scope *scope = &p->scopes[s];
		scope->first = (uint32_t)count;
		for (size_t i = 0; i < p->range_count; i++) {
			if (t->owners[i] != s)
				continue;
			if (count > scope->first && sorted[count - 1].end == p->ranges[i].start)
				sorted[count - 1].end = p->ranges[i].end;
			else
				sorted[count++] = p->ranges[i];
		}
		scope->count = (uint32_t)count - scope->first;
	}
	free(p->ranges);
	p->ranges = sorted;
	p->range_count = sorted ? count : 0;
}

static void add_procedure(struct tree *t)
{
	struct inline_scope scope = {.name = t->function.name};
	if (!grow_scopes(t) || !grow_ranges(t))
		return;
	read_place(t, t->function.start, &scope.file, &scope.line);
	if (t->function.line)
		scope.line = t->function.line;
	t->which[0] = -1;
	t->out->scopes[0] = scope;
	t->out->scope_count = 1;
	t->owners[0] = 0;
	t->out->ranges[0] = (struct inline_range){t->function.start, t->function.end};
	t->out->range_count = 1;
}

#define LANGUAGE_GO 0x16 /* DW_LANG_Go */

bool gotab_tree(const struct gotab *table, size_t index, struct lines_files *files,
		struct inline_procedure *out)
{
	struct tree t = {.table = table, .index = index, .files = files, .out = out};
	struct gotab_values v = {.table = table, .index = index, .what = GOTAB_INLINE};
	*out = (struct inline_procedure){.records_inlining = true, .language = LANGUAGE_GO};
	if (!gotab_function(table, index, &t.function) || !t.function.name[0])
		return false;
	out->entry = t.function.start;
	add_procedure(&t);
	while (!t.failed && gotab_next(&v))
		if (v.value >= 0)
			add_range(&t, scope_of(&t, v.value, 0), v.start, v.end);
	if (!t.failed)
		sort_ranges(&t);
	free(t.which);
	free(t.owners);
	if (t.failed)
		inline_procedure_free(out);
	return !t.failed;
}
