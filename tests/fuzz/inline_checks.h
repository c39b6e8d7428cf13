/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Asks for the procedures of a file whose code is only spoken of (elf_parts.h), and checks them. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "elf_parts.h"
#include "image/inlines.h"
#include "image/lines.h"

static inline void inline_check(const struct inline_procedure *p)
{
	assert(p->scope_count > 0 && p->scopes[0].depth == 0);
	for (size_t i = 0; i < p->scope_count; i++) {
		const struct inline_scope *s = &p->scopes[i];
		assert(s->first + (size_t)s->count <= p->range_count && s->count > 0);
		assert(i == 0 || s->parent < i);
		assert(i == 0 || s->depth == p->scopes[s->parent].depth + 1);
		assert(!s->name || strlen(s->name) < 1u << 24);
		assert(!s->plain || strlen(s->plain) < 1u << 24);
		for (uint32_t k = 0; k < s->count; k++) {
			const struct inline_range *r = &p->ranges[s->first + k];
			assert(r->start < r->end && r->start >= ELF_ROOM_START);
			assert(k == 0 || r[-1].end < r->start);
		}
	}
}

static inline struct err *inline_each(void *context, const struct inline_procedure *p)
{
	uint64_t *last = context, start = p->ranges[p->scopes[0].first].start;
	inline_check(p);
	assert(start >= *last);
	*last = start;
	return NULL;
}

static inline void inline_ask(struct inlines *inlines, uint64_t address)
{
	struct inline_procedure p;
	bool found, inside = false;
	struct err *e = inlines_find(inlines, address, &p, &found);
	assert(!e);
	if (!found)
		return;
	inline_check(&p);
	for (uint32_t k = 0; k < p.scopes[0].count; k++)
		inside |= address >= p.ranges[p.scopes[0].first + k].start &&
			  address < p.ranges[p.scopes[0].first + k].end;
	assert(inside);
	inline_procedure_free(&p);
}

/* Everything that can be asked of an image. */
static inline void inline_check_all(struct image *image)
{
	struct inlines *inlines;
	struct lines *lines;
	uint64_t last = 0;
	struct err *e = lines_open(image, NULL, &lines);
	assert(!e);
	e = inlines_open(image, NULL, lines, &inlines);
	assert(!e);
	for (uint64_t address = 0; address < ELF_ROOM_START + ELF_ROOM; address += 509)
		inline_ask(inlines, address);
	inline_ask(inlines, UINT64_MAX);
	e = inlines_each(inlines, inline_each, &last);
	assert(!e);
	assert(!inlines_damage(inlines) || strlen(inlines_damage(inlines)) < 1000);
	inlines_close(inlines);
	lines_close(lines);
}
