/* SPDX-License-Identifier: Apache-2.0 */
#include "image/dwarf_points.h"

#include <stdlib.h>

#include "base/array.h"

#define INTERVALS_MAX ((size_t)1 << 26)

bool dwarf_intervals_add(struct dwarf_intervals *in, uint64_t start, uint64_t end, uint32_t what,
			 uint32_t rank)
{
	if (!ARRAY_ROOM_BELOW(in->all, in->count, in->room, INTERVALS_MAX))
		return false;
	in->all[in->count++] = (struct dwarf_interval){start, end, what, rank};
	return true;
}

static int compare_starts(const void *a, const void *b)
{
	const struct dwarf_interval *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->what < y->what ? -1 : x->what > y->what;
}

/* Whether `a` counts more than `b`, where both cover an address. Compilers do let inlined
   functions of one parent overlap; then the later one counts. */
static bool is_inner(const struct dwarf_interval *a, const struct dwarf_interval *b)
{
	if (a->rank != b->rank)
		return a->rank > b->rank;
	if (a->start != b->start)
		return a->start > b->start;
	return a->what < b->what;
}

static void swap(struct dwarf_interval *a, struct dwarf_interval *b)
{
	struct dwarf_interval t = *a;
	*a = *b;
	*b = t;
}

/* The intervals that cover the current address are a heap with the innermost on top. */
static void heap_push(struct dwarf_interval *heap, size_t count, struct dwarf_interval new_one)
{
	heap[count] = new_one;
	while (count > 0 && is_inner(&heap[count], &heap[(count - 1) / 2])) {
		swap(&heap[count], &heap[(count - 1) / 2]);
		count = (count - 1) / 2;
	}
}

/* Takes the top out; `count` is what remains. */
static void heap_pop(struct dwarf_interval *heap, size_t count)
{
	size_t at = 0, child;
	heap[0] = heap[count];
	while ((child = 2 * at + 1) < count) {
		if (child + 1 < count && is_inner(&heap[child + 1], &heap[child]))
			child++;
		if (!is_inner(&heap[child], &heap[at]))
			break;
		swap(&heap[child], &heap[at]);
		at = child;
	}
}

static void points_add(struct dwarf_points *points, uint64_t start, uint32_t what)
{
	if (points->count == 0 || points->all[points->count - 1].what != what)
		points->all[points->count++] = (struct dwarf_point){start, what};
}

static bool is_sorted(const struct dwarf_intervals *in)
{
	for (size_t i = 1; i < in->count; i++)
		if (compare_starts(&in->all[i - 1], &in->all[i]) > 0)
			return false;
	return true;
}

/* Sweeps over the intervals from start to start and end to end. Each step takes one in or one
   out, so there are at most twice as many points. The heap grows over those already read. */
static void sweep(struct dwarf_points *points, struct dwarf_intervals *in)
{
	struct dwarf_interval *heap = in->all;
	size_t depth = 0, next = 0;
	uint64_t address;
	while (next < in->count || depth > 0) {
		if (depth > 0 && (next == in->count || heap[0].end <= in->all[next].start))
			address = heap[0].end;
		else
			address = in->all[next].start;
		for (; next < in->count && in->all[next].start == address; next++)
			heap_push(heap, depth++, in->all[next]);
		while (depth > 0 && heap[0].end <= address)
			heap_pop(heap, --depth);
		points_add(points, address, depth ? heap[0].what : POINT_NOTHING);
	}
}

bool dwarf_points_make(struct dwarf_points *points, struct dwarf_intervals *in)
{
	struct dwarf_point *smaller;
	*points = (struct dwarf_points){0};
	if (in->count)
		points->all = calloc(2 * in->count, sizeof *points->all);
	if (points->all) {
		if (!is_sorted(in))
			qsort(in->all, in->count, sizeof *in->all, compare_starts);
		sweep(points, in);
		smaller = realloc(points->all, points->count * sizeof *smaller);
		points->all = smaller ? smaller : points->all;
	}
	free(in->all);
	in->all = NULL;
	return points->all || !in->count;
}

size_t dwarf_points_before(const struct dwarf_points *points, uint64_t address)
{
	return FIRST_NOT(i, points->count, points->all[i].start <= address);
}

uint32_t dwarf_points_find(const struct dwarf_points *points, uint64_t address)
{
	size_t before = dwarf_points_before(points, address);
	return before ? points->all[before - 1].what : POINT_NOTHING;
}
