/* SPDX-License-Identifier: Apache-2.0 */
/*
 * L D L^T. Columns are in the order of elimination; each has its rows below the diagonal, ascending. The
 * rows of a column but the first are among the rows of the column of its first row (the fill). So to
 * subtract a column from a later one is to walk two sorted lists, and the entries of the inverse at the
 * places of L follow from each other, from the last column to the first (Takahashi, Fagan and Chin, 1973).
 */
#include "explain/sparse.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"

#define ENTRIES_MAX (4u << 20)
#define DEGREE_MAX 1024u
#define TARGETS_MAX (8u << 20)

struct sparse {
	size_t size;
	uint32_t *place;  /* of each unknown: its column */
	size_t *first;    /* of each column, and one more: its entries */
	uint32_t *rows;   /* of each entry: a column */
	double *values;   /* of each entry */
	double *diagonal; /* of each column */
	double *work;
	/* For each column, and each pair of its entries: the entry of the later column that the pair is subtracted from,
	   in the order in which factors are made. NULL: too many. */
	uint32_t *targets;
};

/* ---- order ---- */

struct list {
	uint32_t *items; /* ascending */
	size_t count, room;
};

struct orderer {
	size_t size;
	struct list *around; /* the neighbours that are left, of each unknown */
	struct list *heaps; /* by number of neighbours: unknowns, some with another number by now */
	bool *gone;
	uint32_t *order; /* of each column: its unknown */
	size_t entries;
	struct list merged;
	bool failed, dense;
};

static void put(struct orderer *o, struct list *list, uint32_t item)
{
	if (!ARRAY_ROOM(list->items, list->count, list->room)) {
		o->failed = true;
		return;
	}
	list->items[list->count++] = item;
}

static void queue(struct orderer *o, uint32_t unknown)
{
	size_t degree = o->around[unknown].count;
	put(o, &o->heaps[degree < DEGREE_MAX ? degree : DEGREE_MAX], unknown);
}

/* The unknown with the fewest neighbours. */
static uint32_t next_unknown(struct orderer *o, size_t *lowest)
{
	for (;; (*lowest)++) {
		struct list *heap = &o->heaps[*lowest];
		while (heap->count) {
			uint32_t unknown = heap->items[--heap->count];
			size_t degree = o->around[unknown].count;
			if (!o->gone[unknown] &&
			    (degree < DEGREE_MAX ? degree : DEGREE_MAX) == *lowest)
				return unknown;
		}
	}
}

/* The neighbours of one that goes become each other's. */
static void join(struct orderer *o, uint32_t gone, uint32_t unknown)
{
	struct list *mine = &o->around[unknown];
	const struct list *other = &o->around[gone];
	size_t i = 0, k = 0;
	o->merged.count = 0;
	while (i < mine->count || k < other->count) {
		uint32_t a = i < mine->count ? mine->items[i] : UINT32_MAX;
		uint32_t b = k < other->count ? other->items[k] : UINT32_MAX;
		uint32_t least = a < b ? a : b;
		i += a == least;
		k += b == least;
		if (least != gone && least != unknown)
			put(o, &o->merged, least);
	}
	struct list before = *mine;
	*mine = o->merged;
	o->merged = before;
}

static void eliminate(struct orderer *o)
{
	size_t lowest = 0;
	for (size_t i = 0; i < o->size && !o->failed && !o->dense; i++) {
		uint32_t unknown = next_unknown(o, &lowest);
		const struct list *around = &o->around[unknown];
		o->gone[unknown] = true;
		o->order[i] = unknown;
		o->entries += around->count;
		o->dense = o->entries > ENTRIES_MAX || around->count > DEGREE_MAX;
		for (size_t k = 0; k < around->count && !o->dense; k++) {
			join(o, unknown, around->items[k]);
			queue(o, around->items[k]);
			size_t degree = o->around[around->items[k]].count;
			if (degree < lowest)
				lowest = degree;
		}
	}
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

static void take_pairs(struct orderer *o, const struct sparse_pair *pairs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		put(o, &o->around[pairs[i].row], pairs[i].column);
		put(o, &o->around[pairs[i].column], pairs[i].row);
	}
	for (uint32_t i = 0; i < o->size && !o->failed; i++) {
		struct list *l = &o->around[i];
		size_t kept = 0;
		if (l->count)
			qsort(l->items, l->count, sizeof *l->items, by_number);
		for (size_t k = 0; k < l->count; k++)
			if (!kept || l->items[kept - 1] != l->items[k])
				l->items[kept++] = l->items[k];
		l->count = kept;
		queue(o, i);
	}
}

static bool make_columns(struct sparse *s, const struct orderer *o)
{
	s->rows = malloc((o->entries + 1) * sizeof *s->rows);
	s->values = malloc((o->entries + 1) * sizeof *s->values);
	if (!s->rows || !s->values)
		return false;
	for (uint32_t i = 0; i < s->size; i++)
		s->place[o->order[i]] = i;
	for (size_t i = 0; i < s->size; i++) {
		const struct list *around = &o->around[o->order[i]];
		size_t at = s->first[i];
		for (size_t k = 0; k < around->count; k++)
			s->rows[at + k] = s->place[around->items[k]];
		s->first[i + 1] = at + around->count;
		if (around->count)
			qsort(s->rows + at, around->count, sizeof *s->rows, by_number);
	}
	return true;
}

static struct err *order(struct sparse *s, const struct sparse_pair *pairs, size_t count,
			 bool *dense)
{
	struct orderer o = {.size = s->size};
	o.around = calloc(s->size + 1, sizeof *o.around);
	o.heaps = calloc(DEGREE_MAX + 1, sizeof *o.heaps);
	o.gone = calloc(s->size + 1, sizeof *o.gone);
	o.order = calloc(s->size + 1, sizeof *o.order);
	o.failed = !o.around || !o.heaps || !o.gone || !o.order;
	if (!o.failed)
		take_pairs(&o, pairs, count);
	if (!o.failed)
		eliminate(&o);
	if (!o.failed && !o.dense)
		o.failed = !make_columns(s, &o);
	for (size_t i = 0; o.around && i < s->size; i++)
		free(o.around[i].items);
	for (size_t i = 0; o.heaps && i <= DEGREE_MAX; i++)
		free(o.heaps[i].items);
	free(o.around);
	free(o.heaps);
	free(o.gone);
	free(o.order);
	free(o.merged.items);
	*dense = o.dense;
	return o.failed ? err_new("out of memory") : NULL;
}

/* Where column entries behind `at` go, in the column of that one's row. */
static void find_targets(const struct sparse *s, size_t at, size_t end, uint32_t *out)
{
	size_t to = s->first[s->rows[at]];
	for (size_t i = at + 1; i < end; i++, to++) {
		while (s->rows[to] < s->rows[i])
			to++;
		*out++ = (uint32_t)to;
	}
}

/* Finding them takes as long as a factor does, and there are dozens of factors. Without memory, they are found each
   time. */
static void keep_targets(struct sparse *s)
{
	size_t count = 0;
	for (size_t i = 0; i < s->size; i++) {
		size_t entries = s->first[i + 1] - s->first[i];
		count += entries ? entries * (entries - 1) / 2 : 0;
	}
	s->targets = count < TARGETS_MAX ? malloc((count + 1) * sizeof *s->targets) : NULL;
	uint32_t *out = s->targets;
	for (size_t i = 0; out && i < s->size; i++)
		for (size_t at = s->first[i]; at < s->first[i + 1]; at++) {
			find_targets(s, at, s->first[i + 1], out);
			out += s->first[i + 1] - at - 1;
		}
}

struct err *sparse_open(size_t size, const struct sparse_pair *pairs, size_t pair_count,
			struct sparse **out)
{
	struct sparse *s = calloc(1, sizeof *s);
	bool dense = false;
	struct err *e = NULL;
	*out = NULL;
	if (!s)
		return err_new("out of memory");
	s->size = size;
	s->place = calloc(size + 1, sizeof *s->place);
	s->first = calloc(size + 1, sizeof *s->first);
	s->diagonal = calloc(size + 1, sizeof *s->diagonal);
	s->work = calloc(size + 1, sizeof *s->work);
	if (!s->place || !s->first || !s->diagonal || !s->work)
		e = err_new("out of memory");
	if (!e)
		e = order(s, pairs, pair_count, &dense);
	if (e || dense) {
		sparse_close(s);
		return e;
	}
	keep_targets(s);
	*out = s;
	return NULL;
}

void sparse_close(struct sparse *s)
{
	if (!s)
		return;
	free(s->place);
	free(s->first);
	free(s->rows);
	free(s->values);
	free(s->diagonal);
	free(s->work);
	free(s->targets);
	free(s);
}

/* ---- entries ---- */

void sparse_clear(struct sparse *s)
{
	memset(s->values, 0, s->first[s->size] * sizeof *s->values);
	memset(s->diagonal, 0, s->size * sizeof *s->diagonal);
}

/* The entry of a row in an earlier column; SIZE_MAX: it has none. */
static size_t find(const struct sparse *s, uint32_t row, uint32_t column)
{
	size_t from = s->first[column], count = s->first[column + 1] - from;
	size_t at = from + FIRST_NOT(i, count, s->rows[from + i] < row);
	return at < from + count && s->rows[at] == row ? at : SIZE_MAX;
}

void sparse_add(struct sparse *s, uint32_t row, uint32_t column, double value)
{
	uint32_t a = s->place[row], b = s->place[column];
	if (a == b) {
		s->diagonal[a] += value;
		return;
	}
	size_t at = a > b ? find(s, a, b) : find(s, b, a);
	if (at != SIZE_MAX)
		s->values[at] += value;
}

/* ---- factors ---- */

/* Subtracts what column `from` leaves for the column of its entry `at`. From where both have as many rows left, they are the
   same rows: most of the time goes there, so that loop is kept simple. */
static void subtract(struct sparse *s, uint32_t from, size_t at, double pivot)
{
	uint32_t column = s->rows[at];
	double factor = s->values[at] / pivot;
	size_t end = s->first[from + 1], to = s->first[column], to_end = s->first[column + 1];
	size_t i = at + 1;
	s->diagonal[column] -= factor * s->values[at];
	for (; i < end && to_end - to > end - i; i++, to++) {
		while (s->rows[to] < s->rows[i])
			to++;
		s->values[to] -= factor * s->values[i];
	}
	const double *restrict source = s->values + i;
	double *restrict target = s->values + (to_end - (end - i));
	for (size_t k = 0; k < end - i; k++)
		target[k] -= factor * source[k];
}

typedef double pair __attribute__((vector_size(16), aligned(8), may_alias));

static void subtract_row(double *restrict target, const double *restrict source, size_t count,
			 double factor)
{
	size_t k = 0;
	for (; k + 4 <= count; k += 4) {
		pair *to = (pair *)(target + k);
		const pair *from = (const pair *)(source + k);
		to[0] -= factor * from[0];
		to[1] -= factor * from[1];
	}
	for (; k < count; k++)
		target[k] -= factor * source[k];
}

/* The same where it is known which entries they are. Mostly they follow each other, because columns that are eliminated one
   after the other have the same rows. */
static void subtract_at(struct sparse *s, size_t at, size_t end, double pivot,
			const uint32_t *targets)
{
	double factor = s->values[at] / pivot, *values = s->values;
	const double *source = values + at + 1;
	size_t count = end - at - 1;
	s->diagonal[s->rows[at]] -= factor * values[at];
	if (!count)
		return;
	if (targets[count - 1] - targets[0] == count - 1) {
		subtract_row(values + targets[0], source, count, factor);
		return;
	}
	for (size_t k = 0; k < count; k++)
		values[targets[k]] -= factor * source[k];
}

void sparse_factor(struct sparse *s)
{
	const uint32_t *targets = s->targets;
	for (uint32_t i = 0; i < s->size; i++) {
		if (!(s->diagonal[i] > 1e-12))
			s->diagonal[i] = 1e-12;
		double pivot = s->diagonal[i];
		for (size_t at = s->first[i], end = s->first[i + 1]; at < end; at++) {
			if (targets) {
				subtract_at(s, at, end, pivot, targets);
				targets += end - at - 1;
			} else {
				subtract(s, i, at, pivot);
			}
		}
		for (size_t at = s->first[i]; at < s->first[i + 1]; at++)
			s->values[at] /= pivot;
	}
}

void sparse_solve(const struct sparse *s, double *values)
{
	double *x = s->work;
	for (size_t i = 0; i < s->size; i++)
		x[s->place[i]] = values[i];
	for (size_t i = 0; i < s->size; i++)
		for (size_t at = s->first[i]; at < s->first[i + 1]; at++)
			x[s->rows[at]] -= s->values[at] * x[i];
	for (size_t i = s->size; i-- > 0;) {
		x[i] /= s->diagonal[i];
		for (size_t at = s->first[i]; at < s->first[i + 1]; at++)
			x[i] -= s->values[at] * x[s->rows[at]];
	}
	for (size_t i = 0; i < s->size; i++)
		values[i] = x[s->place[i]];
}

/* Adds to `sums` what the entries of a column make of those of the inverse, where rows and columns are both among its
   rows; those are done. Each entry of the inverse is met once and stands for two. */
static void multiply(const struct sparse *s, size_t first, size_t end, double *sums)
{
	for (size_t at = first; at < end; at++) {
		uint32_t column = s->rows[at];
		size_t in = s->first[column];
		sums[at - first] -= s->values[at] * s->diagonal[column];
		for (size_t k = at + 1; k < end; k++, in++) {
			while (s->rows[in] < s->rows[k])
				in++;
			sums[at - first] -= s->values[k] * s->values[in];
			sums[k - first] -= s->values[at] * s->values[in];
		}
	}
}

void sparse_invert(struct sparse *s, double *diagonal)
{
	double *column = s->work;
	for (size_t i = s->size; i-- > 0;) {
		size_t first = s->first[i], end = s->first[i + 1];
		double own = 1 / s->diagonal[i];
		memset(column, 0, (end - first) * sizeof *column);
		multiply(s, first, end, column);
		for (size_t at = first; at < end; at++)
			own -= s->values[at] * column[at - first];
		for (size_t at = first; at < end; at++)
			s->values[at] = column[at - first];
		s->diagonal[i] = own;
	}
	for (size_t i = 0; i < s->size; i++)
		diagonal[i] = s->diagonal[s->place[i]];
}
