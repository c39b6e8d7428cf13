/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/timeline_file.h"

#include <stdlib.h>

#include "base/err.h"
#include "profile/decode.h"
#include "profile/own.h"

static uint64_t end_of(const struct profile_span *r)
{
	return r->start_us + r->duration_us;
}

/* A thread's first one in a section says when it is, the others how long after the one before. */
static uint64_t base_of(const struct profile_span *before, uint32_t thread)
{
	return before && before->thread == thread ? end_of(before) : 0;
}

static bool has_wakers(const struct profile_span *spans, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (spans[i].waker)
			return true;
	return false;
}

void timeline_put(struct buf *raw, const struct profile_span *spans, size_t count,
		  uint64_t coarse_us)
{
	format_put_number(raw, coarse_us);
	format_put_number(raw, count);
	for (size_t i = 0; i < count; i++)
		format_put_number(raw, spans[i].thread - (i ? spans[i - 1].thread : 0));
	for (size_t i = 0; i < count; i++)
		format_put_number(raw, spans[i].start_us -
					       base_of(i ? &spans[i - 1] : NULL, spans[i].thread));
	for (size_t i = 0; i < count; i++)
		format_put_number(raw, spans[i].duration_us);
	for (size_t i = 0; i < count; i++)
		format_put_signed(raw, (int64_t)spans[i].node - (i ? spans[i - 1].node : 0));
	for (size_t i = 0; i < count; i++)
		format_put_number(raw, spans[i].metric);
	for (size_t i = 0; i < count; i++)
		format_put_number(raw, spans[i].samples);
	bool wakers = has_wakers(spans, count);
	for (size_t i = 0; wakers && i < count; i++)
		format_put_number(raw, spans[i].waker);
}

static void read_columns(struct cursor *c, struct profile_span *spans, size_t count)
{
	uint64_t thread = 0, node = 0;
	for (size_t i = 0; i < count; i++) {
		thread += cursor_limited(c, INDEX_NONE - 1);
		c->bad |= thread >= INDEX_NONE;
		spans[i].thread = (uint32_t)thread;
	}
	for (size_t i = 0; i < count; i++)
		spans[i].start_us = cursor_number(c);
	for (size_t i = 0; i < count; i++)
		spans[i].duration_us = cursor_number(c);
	for (size_t i = 0; i < count; i++) {
		node += (uint64_t)cursor_signed(c);
		spans[i].node = node < INDEX_NONE ? (uint32_t)node : INDEX_NONE;
	}
	for (size_t i = 0; i < count; i++)
		spans[i].metric = cursor_limited(c, INDEX_NONE - 1);
	for (size_t i = 0; i < count; i++)
		spans[i].samples = cursor_limited(c, UINT32_MAX);
	for (size_t i = 0; i < count && !c->bad && c->at < c->end; i++)
		spans[i].waker = cursor_limited(c, INDEX_NONE - 1);
}

/* Makes the start what it is. False where the span does not come after the one before. */
static bool place_span(const struct decoder *d, const struct profile_span *before,
		       struct profile_span *r)
{
	const struct profile_span *last = d->last_span.samples ? &d->last_span : NULL;
	uint64_t end;
	if (__builtin_add_overflow(r->start_us, base_of(before, r->thread), &r->start_us) ||
	    __builtin_add_overflow(r->start_us, r->duration_us, &end) || end > INT64_MAX)
		return false;
	return !last || last->thread < r->thread ||
	       (last->thread == r->thread && end_of(last) <= r->start_us);
}

/* Not own_append_span: what it refers to may be missing as yet. */
static void add_span(struct decoder *d, struct profile_span r)
{
	struct profile *p = d->p;
	struct profile_span *moved;
	r.node = map_find(&d->nodes, r.node);
	if (r.node == INDEX_NONE) {
		decode_complain(d, FORMAT_SPANS, "their contexts are missing");
		return;
	}
	d->tables[FORMAT_SPANS].got++;
	moved = own_grow(p->spans, &p->own->span_room, p->span_count, sizeof r);
	if (!moved) {
		d->error = err_new("out of memory");
		return;
	}
	p->spans = moved;
	p->spans[p->span_count++] = r;
}

void timeline_read(struct decoder *d, struct cursor *c)
{
	uint64_t coarse_us = cursor_number(c);
	size_t count = cursor_rows(c, 6);
	struct profile_span *spans = calloc(count + 1, sizeof *spans);
	if (!spans) {
		d->error = err_new("out of memory");
		return;
	}
	read_columns(c, spans, count);
	if (count > PROFILE_SPAN_MAX - d->p->span_count || coarse_us > INT64_MAX)
		c->bad = true;
	for (size_t i = 0; i < count && !c->bad && !d->error; i++) {
		if (!spans[i].samples || !place_span(d, i ? &spans[i - 1] : NULL, &spans[i]))
			c->bad = true;
		if (c->bad)
			break;
		d->last_span = spans[i];
		add_span(d, spans[i]);
	}
	d->p->timed = true;
	if (!c->bad && d->p->coarse_us < coarse_us)
		d->p->coarse_us = coarse_us;
	free(spans);
}
