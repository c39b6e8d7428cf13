/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time line. Samples are appended behind the spans that are in order, as
 * with values:
 *
 *    spans: [ by thread and start, none overlap | as they came ]
 *          0                                   ordered        span_count
 *
 * Most come in order, but not all: stacks that were left to the collector are walked late, and
 * some threads may share a row. So settling sorts, then goes through each thread's:
 *
 *    [  a  ][  a  ]        one span, if there is no gap between
 *    [  a  ] [ b ]         b begins where a ends: samples come a little early and late
 *    [  a  ]        [ a ]  a gap: the thread did not work
 *    [  a     b    a ]     b came late, in the midst of a: a is cut in two
 *
 * Where there are too many spans the time line gets coarser: those that lie within the same
 * interval of coarse_us (and that of no longer span) become one. Its context is that of one
 * of its samples, each with the same chance: then sums over the time line stay right on the
 * average, which they would not if the most frequent one always won.
 */
#include <stdlib.h>

#include "base/err.h"
#include "base/sum.h"
#include "profile/own.h"

#define MOMENT_US 1000 /* samples that stand for no time belong together if so close */
#define ROOM_MAX ((size_t)2 * PROFILE_SPAN_MAX)
#define ENOUGH (PROFILE_SPAN_MAX - PROFILE_SPAN_MAX / 4) /* after getting coarser */

static uint64_t end_of(const struct profile_span *r)
{
	return r->start_us + r->duration_us;
}

uint64_t profile_step_us(const struct profile *p, uint32_t metric)
{
	const struct profile_metric *m = &p->metrics[metric];
	if (m->period && m->unit[0] == 'n' && m->unit[1] == 's' && !m->unit[2])
		return profile_period(p, metric) / 1000;
	return p->hz && p->hz <= 1000000 ? 1000000 / p->hz : 0;
}

/* How long no sample may come without a gap. */
static uint64_t slack_of(const struct profile *p, uint32_t metric)
{
	uint64_t step = profile_step_us(p, metric);
	return step ? step : MOMENT_US;
}

/* Whether they may become one. Waits of which it is known who ended them stay as they are. */
static bool same_context(const struct profile_span *a, const struct profile_span *b)
{
	return !a->waker && !b->waker && a->thread == b->thread && a->node == b->node &&
	       a->metric == b->metric && a->samples <= UINT32_MAX - b->samples;
}

static bool is_ordered(const struct profile_span *a, const struct profile_span *b)
{
	return a->thread < b->thread || (a->thread == b->thread && a->start_us <= b->start_us);
}

static int compare(const void *a, const void *b)
{
	const struct profile_span *x = a, *y = b;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->start_us != y->start_us)
		return x->start_us < y->start_us ? -1 : 1;
	if (x->duration_us != y->duration_us)
		return x->duration_us < y->duration_us ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

/* ---- joining what follows each other ---- */

struct list {
	struct profile_span *spans;
	size_t count, room;
	bool failed;
};

static void push(struct list *out, const struct profile_span *span)
{
	struct profile_span *moved = own_grow(out->spans, &out->room, out->count, sizeof *span);
	if (!moved) {
		out->failed = true;
		return;
	}
	out->spans = moved;
	out->spans[out->count++] = *span;
}

/* `span` came late, in the midst of the last one. False where one side of it would have no sample. */
static bool cut(struct list *out, const struct profile_span *span)
{
	struct profile_span *last = &out->spans[out->count - 1], tail = *last;
	uint64_t end = end_of(span), left = end_of(last) - end;
	tail.samples = (uint32_t)((double)last->samples * (double)left / (double)last->duration_us);
	if (!tail.samples || tail.samples == last->samples || span->start_us == last->start_us)
		return false;
	tail.start_us = end;
	tail.duration_us = left;
	last->duration_us = span->start_us - last->start_us;
	last->samples -= tail.samples;
	last->waker = 0;
	push(out, span);
	push(out, &tail);
	return true;
}

static void join_overlapping(struct list *out, struct profile_span span)
{
	struct profile_span *last = &out->spans[out->count - 1];
	uint64_t last_end = end_of(last), end = end_of(&span);
	if (same_context(last, &span)) {
		last->samples += span.samples;
		if (end > last_end)
			last->duration_us = end - last->start_us;
		return;
	}
	if (end < last_end && cut(out, &span))
		return;
	span.start_us = last_end;
	span.duration_us = end > last_end ? end - last_end : 0;
	push(out, &span);
}

static void join(const struct profile *p, struct list *out, struct profile_span span)
{
	struct profile_span *last = out->count ? &out->spans[out->count - 1] : NULL;
	uint64_t end = end_of(&span);
	if (!last || last->thread != span.thread) {
		push(out, &span);
		return;
	}
	if (span.start_us < last->start_us) { /* what was cut is behind it */
		span.start_us = last->start_us;
		span.duration_us = end > span.start_us ? end - span.start_us : 0;
	}
	if (span.start_us < end_of(last)) {
		join_overlapping(out, span);
		return;
	}
	if (span.start_us - end_of(last) <= slack_of(p, span.metric)) {
		if (same_context(last, &span)) {
			last->duration_us = end_of(&span) - last->start_us;
			last->samples += span.samples;
			return;
		}
		if (profile_step_us(p, span.metric)) {
			end = end_of(&span);
			span.start_us = end_of(last);
			span.duration_us = end - span.start_us;
		}
	}
	push(out, &span);
}

/* ---- getting coarser ---- */

static bool is_within(const struct profile_span *r, uint64_t interval, uint64_t coarse_us)
{
	return r->start_us / coarse_us == interval &&
	       (end_of(r) - interval * coarse_us) <= coarse_us;
}

/* The same whenever it is asked, so that equal recordings have equal files. */
static bool is_chosen(const struct profile_span *a, const struct profile_span *b)
{
	uint64_t chance = own_mix(own_mix(a->start_us ^ (uint64_t)a->thread << 40) + b->start_us);
	return chance % ((uint64_t)a->samples + b->samples) < b->samples;
}

static size_t combine(struct profile_span *spans, size_t count, uint64_t coarse_us)
{
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		struct profile_span *last = kept ? &spans[kept - 1] : NULL, *r = &spans[i];
		uint64_t interval = r->start_us / coarse_us;
		if (!last || last->thread != r->thread || last->metric != r->metric ||
		    last->samples > UINT32_MAX - r->samples || !is_within(r, interval, coarse_us) ||
		    !is_within(last, interval, coarse_us)) {
			spans[kept++] = *r;
			continue;
		}
		if (is_chosen(last, r)) {
			last->node = r->node;
			last->waker = r->waker;
		}
		last->duration_us = end_of(r) - last->start_us;
		last->samples += r->samples;
	}
	return kept;
}

static uint64_t latest(const struct list *l)
{
	uint64_t end = 0;
	for (size_t i = 0; i < l->count; i++)
		if (end < end_of(&l->spans[i]))
			end = end_of(&l->spans[i]);
	return end;
}

/* What is too much even then, threads beyond number, is left out. */
static void cut_off(struct profile *p, struct list *l)
{
	while (l->count > PROFILE_SPAN_MAX)
		p->untimed = sum_add(p->untimed, l->spans[--l->count].samples);
}

static void combine_all(const struct profile *p, struct list *l)
{
	struct list joined = {0};
	l->count = combine(l->spans, l->count, p->coarse_us);
	for (size_t i = 0; i < l->count; i++)
		join(p, &joined, l->spans[i]);
	free(l->spans);
	*l = joined;
}

/* First what is new gets as coarse as the rest. */
static void get_coarser(struct profile *p, struct list *l)
{
	uint64_t end = latest(l);
	if (p->coarse_us)
		combine_all(p, l);
	while (l->count > ENOUGH && p->coarse_us <= end && !l->failed) {
		p->coarse_us = 2 * (p->coarse_us ? p->coarse_us : slack_of(p, l->spans[0].metric));
		combine_all(p, l);
	}
	cut_off(p, l);
}

/* ---- the face ---- */

struct err *own_settle_spans(struct profile *p)
{
	struct list out = {0};
	if (p->own->ordered == p->span_count)
		return NULL;
	for (size_t i = p->own->ordered ? p->own->ordered : 1; i < p->span_count; i++)
		if (!is_ordered(&p->spans[i - 1], &p->spans[i])) {
			qsort(p->spans, p->span_count, sizeof *p->spans, compare);
			break;
		}
	for (size_t i = 0; i < p->span_count && !out.failed; i++)
		join(p, &out, p->spans[i]);
	if (out.count > PROFILE_SPAN_MAX)
		get_coarser(p, &out);
	if (out.failed) {
		free(out.spans);
		return err_new("out of memory");
	}
	free(p->spans);
	p->spans = out.spans;
	p->own->span_room = out.room;
	p->span_count = p->own->ordered = out.count;
	return NULL;
}

/* Settles where that is likely to help, or has to. */
static struct err *make_room(struct profile *p)
{
	struct profile_private *own = p->own;
	struct profile_span *moved;
	struct err *e;
	if (p->span_count < own->span_room)
		return NULL;
	if (own->span_room >= ROOM_MAX || p->span_count - own->ordered > own->span_room / 2) {
		e = own_settle_spans(p);
		if (e || p->span_count <= own->span_room / 2)
			return e;
	}
	moved = own_grow(p->spans, &own->span_room, own->span_room, sizeof *moved);
	if (!moved)
		return err_new("out of memory");
	p->spans = moved;
	return NULL;
}

struct err *own_append_span(struct profile *p, const struct profile_span *span)
{
	struct err *e = make_room(p);
	if (!e)
		p->spans[p->span_count++] = *span;
	return e;
}

struct err *profile_time_span(struct profile *p, const struct profile_span *span)
{
	uint32_t waker = span->waker > PROFILE_WAKERS ? span->waker - 1 - PROFILE_WAKERS : 0;
	if (span->node >= p->node_count || span->thread >= p->thread_count ||
	    span->metric >= p->metric_count || (waker && waker >= p->thread_count))
		return err_new("no such time: context %u, thread %u, metric %u", span->node,
			       span->thread, span->metric);
	return span->samples ? own_append_span(p, span) : NULL;
}

struct err *profile_time(struct profile *p, uint32_t node, uint32_t thread, uint32_t metric,
			 uint64_t ns, uint64_t weight)
{
	struct profile_span span = {.thread = thread, .node = node, .metric = metric}, *last;
	uint64_t end = ns / 1000, length;
	if (node >= p->node_count || thread >= p->thread_count || metric >= p->metric_count)
		return err_new("no such time: context %u, thread %u, metric %u", node, thread,
			       metric);
	if (!weight)
		return NULL;
	if (__builtin_mul_overflow(weight, profile_step_us(p, metric), &length) || length > end)
		length = end;
	span.start_us = end - length;
	span.duration_us = length;
	span.samples = weight < UINT32_MAX ? (uint32_t)weight : UINT32_MAX;
	last = p->span_count > p->own->ordered ? &p->spans[p->span_count - 1] : NULL;
	if (last && same_context(last, &span) && span.start_us >= last->start_us &&
	    end >= end_of(last) && span.start_us <= end_of(last) + slack_of(p, metric)) {
		last->duration_us = end - last->start_us;
		last->samples += span.samples;
		return NULL;
	}
	return own_append_span(p, &span);
}
