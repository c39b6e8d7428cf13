/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Asks inlines.h, and checks of every answer what holds of all. */
#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "image/image.h"
#include "image/inlines.h"
#include "image/lines.h"
#include "unit.h"

struct reader {
	struct image *image, *debug;
	struct lines *lines;
	struct inlines *inlines;
};

static inline struct reader reader_of(struct image *image, struct image *debug)
{
	struct reader r = {.image = image, .debug = debug};
	assert_null(lines_open(image, debug, &r.lines));
	assert_null(inlines_open(image, debug, r.lines, &r.inlines));
	return r;
}

static inline void reader_close(struct reader *r)
{
	inlines_close(r->inlines);
	lines_close(r->lines);
	image_close(r->debug);
	image_close(r->image);
}

/* What holds of every procedure. */
static inline void check_shape(const struct inline_procedure *p)
{
	assert_true(p->scope_count > 0);
	assert_int_equal(p->scopes[0].depth, 0);
	assert_true(p->scopes[0].count > 0);
	for (size_t i = 0; i < p->scope_count; i++) {
		const struct inline_scope *s = &p->scopes[i];
		assert_true(s->first + (size_t)s->count <= p->range_count);
		assert_true(i == 0 || (s->parent < i && s->count > 0));
		assert_true(i == 0 || s->depth == p->scopes[s->parent].depth + 1);
		for (uint32_t k = 0; k < s->count; k++) {
			const struct inline_range *r = &p->ranges[s->first + k];
			assert_true(r->start < r->end);
			assert_true(k == 0 || r[-1].end < r->start);
		}
	}
}

static inline bool find(struct reader *r, uint64_t address, struct inline_procedure *p)
{
	struct err *e;
	bool found;
	e = inlines_find(r->inlines, address, p, &found);
	assert_null(e);
	if (found)
		check_shape(p);
	return found;
}

struct listing {
	size_t procedures, scopes;
	uint64_t last, sum;
};

static inline struct err *list_one(void *context, const struct inline_procedure *p)
{
	struct listing *l = context;
	check_shape(p);
	assert_true(p->ranges[p->scopes[0].first].start >= l->last);
	l->last = p->ranges[p->scopes[0].first].start;
	l->procedures++;
	l->scopes += p->scope_count;
	for (size_t i = 0; i < p->range_count; i++)
		l->sum = l->sum * 31 + p->ranges[i].start + p->ranges[i].end;
	for (size_t i = 0; i < p->scope_count; i++)
		l->sum = l->sum * 31 + p->scopes[i].call_line +
			 (p->scopes[i].name ? strlen(p->scopes[i].name) : 0);
	return NULL;
}

static inline struct listing list_all(struct reader *r)
{
	struct listing l = {0};
	assert_null(inlines_each(r->inlines, list_one, &l));
	return l;
}

static inline void is_scope(const struct inline_procedure *p, size_t index, const char *name,
			    uint32_t parent, uint32_t call_line)
{
	assert_true(index < p->scope_count);
	assert_true(p->scopes[index].name && strcmp(p->scopes[index].name, name) == 0);
	assert_int_equal(p->scopes[index].parent, parent);
	assert_int_equal(p->scopes[index].call_line, call_line);
}
