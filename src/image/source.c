/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an address to its places, quickly and often: lines.h knows the line,
 * inlines.h the functions. Many addresses lie in few functions, so the trees of
 * some are kept, with an index of which scope is the innermost where.
 */
#include "image/source.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/err.h"
#include "image/dwarf_points.h"
#include "image/image.h"
#include "image/inlines.h"
#include "image/inlines_unit.h"
#include "image/lines.h"

#define KEPT 1024       /* functions, a power of two */
#define OPENING_MAX 512 /* bytes of code */

struct function {
	uint64_t which;
	bool used;
	struct inline_procedure tree;
	struct dwarf_points points; /* from address to scope */
	uint64_t opened;            /* up to here, from its entry on, all code is its own */
};

struct source {
	struct lines *lines;
	struct inlines *inlines;
	pthread_mutex_t lock; /* of what is kept */
	struct function functions[KEPT];
};

struct err *source_open(struct image *image, struct image *debug, struct source **out)
{
	struct source *s = calloc(1, sizeof *s);
	struct err *e;
	*out = s;
	if (!s)
		return err_new("%s: out of memory", image_path(image));
	pthread_mutex_init(&s->lock, NULL);
	e = lines_open(image, debug, &s->lines);
	if (!e)
		e = inlines_open(image, debug, s->lines, &s->inlines);
	if (e) {
		source_close(s);
		*out = NULL;
	}
	return e;
}

static void forget(struct function *f)
{
	inline_procedure_free(&f->tree);
	free(f->points.all);
	*f = (struct function){0};
}

void source_close(struct source *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < KEPT; i++)
		forget(&s->functions[i]);
	inlines_close(s->inlines);
	lines_close(s->lines);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* ---- functions ---- */

static void index_scopes(struct function *f)
{
	struct dwarf_intervals in = {0};
	for (size_t i = 0; i < f->tree.scope_count; i++) {
		const struct inline_scope *s = &f->tree.scopes[i];
		for (uint32_t k = 0; k < s->count; k++) {
			const struct inline_range *r = &f->tree.ranges[s->first + k];
			dwarf_intervals_add(&in, r->start, r->end, (uint32_t)i, s->depth);
		}
	}
	dwarf_points_make(&f->points, &in);
}

static void find_opening(struct source *s, struct function *f)
{
	struct line_row *rows = NULL;
	uint64_t entry = f->tree.entry;
	size_t count = 0;
	if (f->tree.scope_count > 1 && entry < UINT64_MAX - OPENING_MAX)
		err_free(lines_range(s->lines, entry, entry + OPENING_MAX, &rows, &count));
	f->opened = inline_procedure_opening(&f->tree, rows, count);
	free(rows);
}

/* The function with this address, or NULL. */
static struct function *function_at(struct source *s, uint64_t address)
{
	struct function *f;
	uint64_t which;
	if (!inlines_function(s->inlines, address, &which))
		return NULL;
	f = &s->functions[(which * 0x9e3779b97f4a7c15u >> 32) & (KEPT - 1)];
	if (f->used && f->which == which)
		return f;
	forget(f);
	if (!inlines_build(s->inlines, which, &f->tree))
		return NULL;
	f->used = true;
	f->which = which;
	index_scopes(f);
	find_opening(s, f);
	return f;
}

/* ---- places ---- */

static int line_number(uint32_t line)
{
	return line <= INT32_MAX ? (int)line : 0;
}

/* File and line of the instruction itself. */
static void find_line(struct source *s, uint64_t address, struct source_place *out)
{
	struct line_row *rows = NULL;
	size_t count = 0;
	if (address < UINT64_MAX)
		err_free(lines_range(s->lines, address, address + 1, &rows, &count));
	if (count) {
		out->file = lines_file(s->lines, rows[0].file);
		out->line = line_number(rows[0].line);
	}
	free(rows);
}

size_t source_places(struct source *s, uint64_t address, struct source_place *out, size_t max)
{
	struct source_place place = {0};
	struct function *f;
	uint32_t at = POINT_NOTHING;
	size_t count = 0;
	if (max == 0)
		return 0;
	find_line(s, address, &place);
	pthread_mutex_lock(&s->lock);
	f = function_at(s, address);
	if (f)
		at = dwarf_points_find(&f->points, address);
	if (at != POINT_NOTHING && address >= f->tree.entry && address < f->opened)
		at = 0;
	while (at != POINT_NOTHING && count < max) {
		const struct inline_scope *scope = &f->tree.scopes[at];
		if (scope->own) {
			at = scope->parent;
			continue;
		}
		place.function = scope->name;
		place.declared_file = lines_file(s->lines, scope->file);
		place.declared_line = line_number(scope->line);
		out[count++] = place;
		place = (struct source_place){.file = lines_file(s->lines, scope->call_file),
					      .line = line_number(scope->call_line)};
		at = at ? scope->parent : POINT_NOTHING;
	}
	pthread_mutex_unlock(&s->lock);
	if (count == 0 && (place.file || place.line))
		out[count++] = place; /* assembly: lines but no functions */
	return count;
}
