/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values. Counting appends to a log behind the values that are in order:
 *
 *    values: [ in order, each key once | as they came ]
 *            0                         settled        value_count
 *
 * Settling the values sorts the log, joins equal keys and merges the two. It happens when
 * a reader asks, and when the array is full and the log is a good part of it,
 * so that counting the same few keys for ever takes no more memory, and each
 * count costs a constant time on average.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/sum.h"
#include "profile/own.h"

#define DIGIT_BITS 11
#define DIGITS (1u << DIGIT_BITS)
#define SMALL 4096 /* not worth counting digits */

static int compare(const struct profile_value *a, const struct profile_value *b)
{
	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return (a->metric > b->metric) - (a->metric < b->metric);
}

static int compare_untyped(const void *a, const void *b)
{
	return compare(a, b);
}

static uint32_t field(const struct profile_value *v, int which)
{
	return which == 0 ? v->metric : which == 1 ? v->thread : v->node;
}

static void sort_digit(const struct profile_value *from, struct profile_value *to, size_t count,
		       int which, unsigned shift)
{
	size_t starts[DIGITS] = {0}, sum = 0;
	for (size_t i = 0; i < count; i++)
		starts[field(&from[i], which) >> shift & (DIGITS - 1)]++;
	for (size_t i = 0; i < DIGITS; i++) {
		size_t here = starts[i];
		starts[i] = sum;
		sum += here;
	}
	for (size_t i = 0; i < count; i++)
		to[starts[field(&from[i], which) >> shift & (DIGITS - 1)]++] = from[i];
}

/* By digits from the last to the first, as many as the largest numbers have. */
static bool sort_large(struct profile_value *values, size_t count)
{
	struct profile_value *from = values, *to, *scratch;
	scratch = malloc(count * sizeof *scratch);
	if (!scratch)
		return false;
	to = scratch;
	for (int which = 0; which < 3; which++) {
		uint32_t all = 0;
		for (size_t i = 0; i < count; i++)
			all |= field(&values[i], which);
		for (unsigned shift = 0; shift < 32 && all >> shift; shift += DIGIT_BITS) {
			struct profile_value *other = from;
			sort_digit(from, to, count, which, shift);
			from = to;
			to = other;
		}
		if (from != values) { /* the next field's numbers are looked up there */
			memcpy(values, from, count * sizeof *values);
			from = values;
			to = scratch;
		}
	}
	free(scratch);
	return true;
}

static void sort(struct profile_value *values, size_t count)
{
	size_t i = 1;
	while (i < count && compare(&values[i - 1], &values[i]) <= 0)
		i++;
	if (i >= count)
		return;
	if (count < SMALL || !sort_large(values, count))
		qsort(values, count, sizeof *values, compare_untyped);
}

/* Equal neighbours become one; returns how many are left. */
static size_t join(struct profile_value *values, size_t count)
{
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		if (kept && !compare(&values[kept - 1], &values[i]))
			values[kept - 1].count = sum_add(values[kept - 1].count, values[i].count);
		else
			values[kept++] = values[i];
	}
	return kept;
}

/* Both halves are in order; the new array has room for as many as the old one. */
static struct profile_value *merge(const struct profile *p, size_t count, size_t *out_count)
{
	const struct profile_value *a = p->values, *a_end = a + p->own->settled;
	const struct profile_value *b = a_end, *b_end = p->values + count;
	struct profile_value *out = malloc(p->own->value_room * sizeof *out);
	size_t n = 0;
	while (out && (a < a_end || b < b_end)) {
		int order = a == a_end ? 1 : b == b_end ? -1 : compare(a, b);
		out[n] = order <= 0 ? *a++ : *b++;
		if (order == 0)
			out[n].count = sum_add(out[n].count, b++->count);
		n++;
	}
	*out_count = n;
	return out;
}

static struct err *settle_values(struct profile *p)
{
	size_t start = p->own->settled;
	struct profile_value *log, *merged;
	if (start == p->value_count)
		return NULL;
	log = p->values + start;
	sort(log, p->value_count - start);
	p->value_count = start + join(log, p->value_count - start);
	if (start && compare(&log[-1], &log[0]) >= 0) {
		merged = merge(p, p->value_count, &p->value_count);
		if (!merged)
			return err_new("out of memory");
		free(p->values);
		p->values = merged;
	}
	p->own->settled = p->value_count;
	return NULL;
}

struct err *profile_settle(struct profile *p)
{
	struct err *e = settle_values(p);
	own_settle_wakes(p);
	own_settle_edges(p);
	if (!e)
		e = own_settle_counted(p);
	if (!e)
		e = own_settle_contexts(p);
	return e ? e : own_settle_spans(p);
}

/* Room for one more: by settling where that is likely to help, else by growing. */
static struct err *make_room(struct profile *p)
{
	struct profile_private *own = p->own;
	struct profile_value *moved;
	struct err *e;
	if (p->value_count < own->value_room)
		return NULL;
	if (p->value_count - own->settled > own->value_room / 2) {
		e = settle_values(p);
		if (e || p->value_count <= own->value_room / 2)
			return e;
	}
	if (p->value_count >= PROFILE_VALUE_MAX) {
		e = settle_values(p);
		if (e || p->value_count < PROFILE_VALUE_MAX)
			return e;
		return err_new("a profile cannot have more than %u values", PROFILE_VALUE_MAX);
	}
	moved = own_grow(p->values, &own->value_room, own->value_room, sizeof *moved);
	if (!moved)
		return err_new("out of memory");
	p->values = moved;
	return NULL;
}

struct err *profile_count(struct profile *p, uint32_t node, uint32_t thread, uint32_t metric,
			  uint64_t count)
{
	const struct profile_value value = {node, thread, metric, count};
	struct profile_value *last;
	struct err *e;
	if (node >= p->node_count || thread >= p->thread_count || metric >= p->metric_count)
		return err_new("no such value: context %u, thread %u, metric %u", node, thread,
			       metric);
	if (count == 0)
		return NULL;
	last = p->value_count ? &p->values[p->value_count - 1] : NULL;
	if (last && !compare(last, &value)) {
		last->count = sum_add(last->count, count);
		return NULL;
	}
	e = make_room(p);
	if (!e)
		p->values[p->value_count++] = value;
	return e;
}

struct err *profile_move(struct profile *p, uint32_t metric, const uint32_t *to, size_t count)
{
	for (size_t i = 0; i < p->value_count; i++) {
		struct profile_value *v = &p->values[i];
		if (v->metric == metric && v->node < count && to[v->node])
			v->node = to[v->node];
	}
	p->own->settled = 0;
	return profile_settle(p);
}
