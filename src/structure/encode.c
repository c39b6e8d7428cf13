/* SPDX-License-Identifier: Apache-2.0 */
#include "structure/encode.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/leb.h"
#include "structure/structure.h"

enum { FLAG_GUESSED = 8, FLAG_IRREDUCIBLE = 16 };
enum { FLAG_OVER_BUDGET = 1, FLAG_LINES_ONLY = 2 };

/* ---- numbers: seven bits in a byte, the lowest first ---- */

/* The difference, small in either direction. */
static void put_near(struct buf *out, uint64_t value, uint64_t base)
{
	leb_put(out, zigzag((int64_t)(value - base)));
}

struct cursor {
	const uint8_t *at, *end;
	bool bad;
};

static uint64_t get(struct cursor *c)
{
	uint64_t value;
	c->bad |= !leb_take(&c->at, c->end, &value);
	return value;
}

static uint64_t get_near(struct cursor *c, uint64_t base)
{
	uint64_t value = get(c);
	return base + (value >> 1 ^ (0 - (value & 1)));
}

static uint32_t get_small(struct cursor *c)
{
	uint64_t value = get(c);
	if (value > UINT32_MAX)
		c->bad = true;
	return (uint32_t)value;
}

/* ---- writing ---- */

static bool put_text(struct buf *out, const struct encode_texts *texts, const char *text)
{
	uint32_t number = text ? texts->number(texts->context, text) : 0;
	leb_put(out, number);
	return number != UINT32_MAX;
}

static bool put_scope(const struct structure_procedure *p, size_t i,
		      const struct encode_texts *texts, struct buf *out)
{
	const struct structure_scope *s = &p->scopes[i];
	bool good = true;
	leb_put(out, s->type | (s->guessed ? FLAG_GUESSED : 0u) |
			     (s->irreducible ? FLAG_IRREDUCIBLE : 0u));
	leb_put(out, i - s->parent);
	good &= put_text(out, texts, s->file);
	leb_put(out, s->line);
	put_near(out, s->last_line, s->line);
	if (s->type <= STRUCTURE_INLINE)
		good &= put_text(out, texts, s->name);
	if (s->type == STRUCTURE_INLINE) {
		good &= put_text(out, texts, s->call_file);
		leb_put(out, s->call_line);
	}
	if (s->type == STRUCTURE_LOOP)
		put_near(out, s->header, p->start);
	return good;
}

bool encode_procedure(const struct structure_procedure *p, const struct encode_texts *texts,
		      struct buf *out)
{
	uint64_t at = p->start;
	uint32_t scope = 0;
	leb_put(out,
		(p->over_budget ? FLAG_OVER_BUDGET : 0u) | (p->lines_only ? FLAG_LINES_ONLY : 0u));
	leb_put(out, p->start);
	leb_put(out, p->unresolved);
	leb_put(out, p->scope_count);
	leb_put(out, p->range_count);
	for (size_t i = 0; i < p->scope_count; i++)
		if (!put_scope(p, i, texts, out))
			return false;
	for (size_t i = 0; i < p->range_count; i++) {
		const struct structure_range *r = &p->ranges[i];
		put_near(out, r->start, at);
		leb_put(out, r->end - r->start);
		put_near(out, r->scope, scope);
		at = r->end;
		scope = r->scope;
	}
	return !out->failed;
}

/* ---- reading ---- */

struct reader {
	struct cursor c;
	const char *const *texts;
	size_t text_count;
};

static const char *get_text(struct reader *r)
{
	uint64_t number = get(&r->c);
	if (number < r->text_count)
		return r->texts[number];
	r->c.bad = true;
	return NULL;
}

static void get_scope(struct reader *r, const struct structure_procedure *p, size_t i,
		      struct structure_scope *out)
{
	uint64_t type = get(&r->c), up = get(&r->c);
	out->type = type & 3;
	out->guessed = type & FLAG_GUESSED;
	out->irreducible = type & FLAG_IRREDUCIBLE;
	if (i ? !up || up > i : up != 0) /* parents before children */
		r->c.bad = true;
	else
		out->parent = (uint32_t)(i - up);
	out->file = get_text(r);
	out->line = get_small(&r->c);
	out->last_line = (uint32_t)get_near(&r->c, out->line);
	if (out->type <= STRUCTURE_INLINE)
		out->name = get_text(r);
	if (out->type == STRUCTURE_INLINE) {
		out->call_file = get_text(r);
		out->call_line = get_small(&r->c);
	}
	if (out->type == STRUCTURE_LOOP)
		out->header = get_near(&r->c, p->start);
	if ((out->type == STRUCTURE_PROCEDURE) != (i == 0))
		r->c.bad = true;
}

static void get_ranges(struct reader *r, struct structure_procedure *p)
{
	uint64_t at = p->start, beyond = 0;
	uint32_t scope = 0;
	for (size_t i = 0; i < p->range_count && !r->c.bad; i++) {
		struct structure_range *range = &p->ranges[i];
		range->start = get_near(&r->c, at);
		range->end = range->start + get(&r->c);
		range->scope = (uint32_t)get_near(&r->c, scope);
		if (range->start < beyond || range->end <= range->start ||
		    range->scope >= p->scope_count)
			r->c.bad = true;
		at = beyond = range->end;
		scope = range->scope;
	}
}

struct structure_procedure *decode_procedure(const uint8_t *bytes, size_t size,
					     const char *const *texts, size_t text_count)
{
	struct reader r = {{bytes, bytes + size, false}, texts, text_count};
	struct structure_procedure *p = calloc(1, sizeof *p);
	uint64_t flags = get(&r.c);
	if (!p)
		return NULL;
	p->over_budget = flags & FLAG_OVER_BUDGET;
	p->lines_only = flags & FLAG_LINES_ONLY;
	p->start = get(&r.c);
	p->unresolved = get_small(&r.c);
	p->scope_count = get(&r.c);
	p->range_count = get(&r.c);
	/* Each takes several bytes: more than there are bytes are a lie. */
	if (r.c.bad || !p->scope_count || p->scope_count > size || p->range_count > size)
		p->scope_count = p->range_count = 0;
	p->scopes = calloc(p->scope_count + 1, sizeof *p->scopes);
	p->ranges = calloc(p->range_count + 1, sizeof *p->ranges);
	if (!p->scopes || !p->ranges || !p->scope_count)
		r.c.bad = true;
	for (size_t i = 0; i < p->scope_count && !r.c.bad; i++)
		get_scope(&r, p, i, &p->scopes[i]);
	if (!r.c.bad)
		get_ranges(&r, p);
	if (!r.c.bad && r.c.at == r.c.end)
		return p;
	structure_procedure_free(p);
	return NULL;
}
