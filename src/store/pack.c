/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of counts, in this order:
 *
 *    number of rows, number of different processes,
 *    processes: each less the one before
 *    how many low bits of addresses are left out, because all of them are 0
 *    by row: image less that of the row before
 *            address less that of the row before where the image is the same    (*)
 *            place among the processes
 *            event
 *            count less 1                                                       (*)
 *
 * Rows of paths: the same with one column for image and address:
 *
 *            node less that of the row before where the process is the same     (*)
 *            place among the processes less that of the row before
 *            event
 *            count less 1                                                       (*)
 *
 * Columns with (*) have numbers of any size, of whose low bits nothing can be said: these stand apart,
 * so that they do not spoil what can be compressed. By row a byte, which is the number where that is below
 * 16, else 16 + 4 * (length - 5) + the two bits below the highest, for its length in bits; then,
 * one after the other, the length - 3 bits that are left of each, lowest first, in bytes from the lowest bit up.
 *
 * Files of version 2 have no such columns, no low bits that are left out, and paths in the order of nodes:
 * node less the one before, place as it is.
 */
#include "store/pack_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sum.h"
#include "profile/format.h"
#include "profile/sections.h"

/* ---- order ---- */

static int compare_counts(const void *a, const void *b)
{
	const struct pack_count *x = a, *y = b;
	ORDER(x->image, y->image);
	ORDER(x->address, y->address);
	ORDER(x->process, y->process);
	ORDER(x->event, y->event);
	return 0;
}

static int compare_paths(const void *a, const void *b)
{
	const struct pack_path *x = a, *y = b;
	ORDER(x->process, y->process);
	ORDER(x->node, y->node);
	ORDER(x->event, y->event);
	return 0;
}

static int compare_numbers(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	ORDER(*x, *y);
	return 0;
}

size_t pack_settle_counts(struct pack_count *rows, size_t count)
{
	size_t kept = 0;
	qsort(rows, count, sizeof *rows, compare_counts);
	for (size_t i = 0; i < count; i++) {
		if (kept && !compare_counts(&rows[kept - 1], &rows[i]))
			rows[kept - 1].count = sum_add(rows[kept - 1].count, rows[i].count);
		else if (rows[i].count)
			rows[kept++] = rows[i];
	}
	return kept;
}

size_t pack_settle_paths(struct pack_path *rows, size_t count)
{
	size_t kept = 0;
	qsort(rows, count, sizeof *rows, compare_paths);
	for (size_t i = 0; i < count; i++) {
		if (kept && !compare_paths(&rows[kept - 1], &rows[i]))
			rows[kept - 1].count = sum_add(rows[kept - 1].count, rows[i].count);
		else if (rows[i].count)
			rows[kept++] = rows[i];
	}
	return kept;
}

/* ---- processes: few, and their numbers may be large ---- */

struct list {
	uint64_t *items;
	size_t count;
};

static bool list_make(struct list *l, const uint64_t *first, size_t stride, size_t count)
{
	size_t kept = 0;
	l->items = malloc((count + 1) * sizeof *l->items);
	if (!l->items)
		return false;
	for (size_t i = 0; i < count; i++) {
		l->items[kept] = *(const uint64_t *)((const char *)first + i * stride);
		kept += !kept || l->items[kept] != l->items[kept - 1];
	}
	qsort(l->items, kept, sizeof *l->items, compare_numbers);
	for (size_t i = 0; i < kept; i++)
		if (!l->count || l->items[i] != l->items[l->count - 1])
			l->items[l->count++] = l->items[i];
	return true;
}

static size_t list_place(const struct list *l, uint64_t item)
{
	const uint64_t *found = bsearch(&item, l->items, l->count, sizeof item, compare_numbers);
	return (size_t)(found - l->items);
}

static void list_put(const struct list *l, struct buf *raw)
{
	format_put_number(raw, l->count);
	for (size_t i = 0; i < l->count; i++)
		format_put_number(raw, l->items[i] - (i ? l->items[i - 1] : 0));
}

static bool list_get(struct list *l, struct cursor *c)
{
	uint64_t last = 0;
	l->count = cursor_rows(c, 1);
	l->items = malloc((l->count + 1) * sizeof *l->items);
	for (size_t i = 0; l->items && i < l->count; i++) {
		c->bad |= __builtin_add_overflow(last, cursor_number(c), &last);
		l->items[i] = last;
	}
	return l->items != NULL;
}

/* ---- columns ---- */

#define CLASS_PLAIN 16u  /* numbers below that are their own class */
#define CLASS_BITS 5u    /* in the smallest of the others */
#define CLASS_LEADING 3u /* bits that the class tells */

static unsigned length_of(uint64_t n)
{
	return 64 - (unsigned)__builtin_clzll(n);
}

/* Bits of a number that its class does not tell. */
static unsigned class_rest(uint8_t class)
{
	return class < CLASS_PLAIN ? 0 : (class - CLASS_PLAIN) / 4 + CLASS_BITS - CLASS_LEADING;
}

static uint8_t class_of(uint64_t n)
{
	if (n < CLASS_PLAIN)
		return (uint8_t)n;
	unsigned length = length_of(n);
	return (uint8_t)(CLASS_PLAIN + 4 * (length - CLASS_BITS) +
			 (n >> (length - CLASS_LEADING) & 3));
}

static void put_apart(const uint64_t *column, size_t count, struct buf *raw)
{
	uint8_t byte = 0;
	unsigned used = 0;
	for (size_t i = 0; i < count; i++) {
		uint8_t class = class_of(column[i]);
		buf_append(raw, &class, 1);
	}
	for (size_t i = 0; i < count; i++)
		for (unsigned bit = 0, rest = class_rest(class_of(column[i])); bit < rest; bit++) {
			byte |= (uint8_t)((column[i] >> bit & 1) << used);
			if (++used == 8) {
				buf_append(raw, &byte, 1);
				byte = used = 0;
			}
		}
	if (used)
		buf_append(raw, &byte, 1);
}

static void get_apart(struct cursor *c, uint64_t *column, size_t count)
{
	if (c->bad || (size_t)(c->end - c->at) < count) {
		c->bad = true;
		return;
	}
	const uint8_t *classes = c->at;
	unsigned used = 8;
	c->at += count;
	for (size_t i = 0; i < count; i++) {
		uint8_t class = classes[i];
		unsigned rest = class_rest(class);
		column[i] = class < CLASS_PLAIN ? class
						: (uint64_t)(4 + (class - CLASS_PLAIN) % 4) << rest;
		for (unsigned bit = 0; bit < rest; bit++) {
			if (used == 8 && c->at == c->end) {
				c->bad = true;
				return;
			}
			c->at += used == 8;
			used = used == 8 ? 0 : used;
			column[i] |= (uint64_t)(c->at[-1] >> used++ & 1) << bit;
		}
	}
}

/* What rows have in common: each column of numbers after the other, and to whom they belong. */
struct columns {
	struct list processes;
	uint64_t shift;
	uint64_t *values;
	size_t count;
	bool apart;
};
#define APART 'a' /* in the kinds of columns; others are plain */

static uint64_t *column(const struct columns *x, unsigned number)
{
	return x->values + number * x->count;
}

static void columns_free(struct columns *x)
{
	free(x->processes.items);
	free(x->values);
}

/* Room for columns of these kinds. */
static bool columns_make(struct columns *x, const char *kinds, size_t count)
{
	x->count = count;
	x->values = calloc(strlen(kinds) * count + 1, sizeof *x->values);
	return x->values != NULL;
}

static struct err *columns_pack(const struct columns *x, const char *kinds, int level,
				struct buf *out)
{
	struct buf raw = {0};
	format_put_number(&raw, x->count);
	list_put(&x->processes, &raw);
	format_put_number(&raw, x->shift);
	for (unsigned k = 0; kinds[k]; k++) {
		if (kinds[k] == APART)
			put_apart(column(x, k), x->count, &raw);
		for (size_t i = 0; kinds[k] != APART && i < x->count; i++)
			format_put_number(&raw, column(x, k)[i]);
	}
	struct err *e = pack_frame(&raw, true, level, out);
	buf_free(&raw);
	return e;
}

static bool columns_get(struct cursor *c, const char *kinds, struct columns *x)
{
	if (!list_get(&x->processes, c))
		return false;
	x->shift = x->apart ? cursor_limited(c, 63) : 0;
	for (unsigned k = 0; kinds[k] && !c->bad; k++) {
		if (x->apart && kinds[k] == APART)
			get_apart(c, column(x, k), x->count);
		for (size_t i = 0; !(x->apart && kinds[k] == APART) && i < x->count; i++)
			column(x, k)[i] = cursor_number(c);
	}
	return true;
}

/* Reads them; columns_free in any case. All were there, and nothing else. */
static struct err *columns_unpack(const void *bytes, size_t size, const char *kinds,
				  struct columns *x)
{
	struct cursor c;
	struct err *e = unpack_frame(bytes, size, &c, &x->apart);
	size_t count = e ? 0 : cursor_rows(&c, strlen(kinds)); /* a byte each at least */
	if (!e && count > PACK_ROWS_MAX)
		e = err_new("packed rows are too many");
	if (!e && (!columns_make(x, kinds, count) || !columns_get(&c, kinds, x)))
		e = err_new("out of memory");
	if (!e && (c.bad || c.at != c.end))
		e = err_new("packed rows are damaged");
	cursor_close(&c);
	return e;
}

/* The last three columns of counts and paths are the same: process, event, count. `less`: the place of a
   process is that of the row before less. */
static bool get_owner(const struct columns *x, unsigned first, size_t row, uint64_t *place,
		      bool less, uint64_t *process, uint64_t *event, uint64_t *count)
{
	uint64_t at = column(x, first)[row], samples = column(x, first + 2)[row];
	if (less && __builtin_add_overflow(at, *place, &at))
		return false;
	if (at >= x->processes.count || samples == UINT64_MAX)
		return false;
	*place = at;
	*process = x->processes.items[at];
	*event = column(x, first + 1)[row];
	*count = samples + 1;
	return true;
}

/* ---- counts ---- */

static const char count_kinds[] = {'-', APART, '-', '-', APART, 0};
enum { COUNT_IMAGE, COUNT_ADDRESS, COUNT_OWNER };

/* How many low bits are 0 in all of them. */
static uint64_t common_shift(const uint64_t *values, size_t count)
{
	uint64_t any = 0;
	for (size_t i = 0; i < count; i++)
		any |= values[i];
	return any ? (uint64_t)__builtin_ctzll(any) : 0;
}

struct err *pack_counts(const struct pack_count *rows, size_t count, int level, struct buf *out)
{
	struct columns x = {0};
	if (!count)
		return NULL;
	if (!columns_make(&x, count_kinds, count) ||
	    !list_make(&x.processes, &rows->process, sizeof *rows, count)) {
		columns_free(&x);
		return err_new("out of memory");
	}
	for (size_t i = 0; i < count; i++) {
		bool same = i && rows[i].image == rows[i - 1].image;
		column(&x, COUNT_IMAGE)[i] = rows[i].image - (i ? rows[i - 1].image : 0);
		column(&x, COUNT_ADDRESS)[i] = rows[i].address - (same ? rows[i - 1].address : 0);
		column(&x, COUNT_OWNER)[i] = list_place(&x.processes, rows[i].process);
		column(&x, COUNT_OWNER + 1)[i] = rows[i].event;
		column(&x, COUNT_OWNER + 2)[i] = rows[i].count - 1;
	}
	x.shift = common_shift(column(&x, COUNT_ADDRESS), count);
	for (size_t i = 0; i < count; i++)
		column(&x, COUNT_ADDRESS)[i] >>= x.shift;
	struct err *e = columns_pack(&x, count_kinds, level, out);
	columns_free(&x);
	return e;
}

static bool get_counts(const struct columns *x, struct pack_count *rows)
{
	uint64_t image = 0, address = 0, place = 0;
	for (size_t i = 0; i < x->count; i++) {
		uint64_t less = column(x, COUNT_ADDRESS)[i];
		struct pack_count *r = &rows[i];
		if (less << x->shift >> x->shift != less ||
		    __builtin_add_overflow(image, column(x, COUNT_IMAGE)[i], &image))
			return false;
		if (column(x, COUNT_IMAGE)[i])
			address = 0;
		if (__builtin_add_overflow(address, less << x->shift, &address) ||
		    !get_owner(x, COUNT_OWNER, i, &place, false, &r->process, &r->event, &r->count))
			return false;
		r->image = image;
		r->address = address;
	}
	return true;
}

struct err *unpack_counts(const void *bytes, size_t size, struct pack_count **rows, size_t *count)
{
	struct columns x = {0};
	*rows = NULL;
	*count = 0;
	if (!size)
		return NULL;
	struct err *e = columns_unpack(bytes, size, count_kinds, &x);
	struct pack_count *made = e ? NULL : calloc(x.count + 1, sizeof *made);
	if (!e && !made)
		e = err_new("out of memory");
	else if (!e && !get_counts(&x, made))
		e = err_new("packed rows are damaged");
	if (e)
		free(made);
	*rows = e ? NULL : made;
	*count = e ? 0 : x.count;
	columns_free(&x);
	return e;
}

/* ---- paths ---- */

static const char path_kinds[] = {APART, '-', '-', APART, 0};
enum { PATH_NODE, PATH_OWNER };

struct err *pack_paths(const struct pack_path *rows, size_t count, int level, struct buf *out)
{
	struct columns x = {0};
	uint64_t before = 0;
	if (!count)
		return NULL;
	if (!columns_make(&x, path_kinds, count) ||
	    !list_make(&x.processes, &rows->process, sizeof *rows, count)) {
		columns_free(&x);
		return err_new("out of memory");
	}
	for (size_t i = 0; i < count; i++) {
		bool same = i && rows[i].process == rows[i - 1].process;
		uint64_t place = list_place(&x.processes, rows[i].process);
		column(&x, PATH_NODE)[i] = rows[i].node - (same ? rows[i - 1].node : 0);
		column(&x, PATH_OWNER)[i] = place - before;
		column(&x, PATH_OWNER + 1)[i] = rows[i].event;
		column(&x, PATH_OWNER + 2)[i] = rows[i].count - 1;
		before = place;
	}
	struct err *e = columns_pack(&x, path_kinds, level, out);
	columns_free(&x);
	return e;
}

static bool get_paths(const struct columns *x, struct pack_path *rows)
{
	uint64_t node = 0, place = 0;
	for (size_t i = 0; i < x->count; i++) {
		struct pack_path *r = &rows[i];
		if (x->apart && column(x, PATH_OWNER)[i])
			node = 0;
		if (__builtin_add_overflow(node, column(x, PATH_NODE)[i], &node) ||
		    !get_owner(x, PATH_OWNER, i, &place, x->apart, &r->process, &r->event,
			       &r->count))
			return false;
		r->node = node;
	}
	return true;
}

struct err *unpack_paths(const void *bytes, size_t size, struct pack_path **rows, size_t *count)
{
	struct columns x = {0};
	*rows = NULL;
	*count = 0;
	if (!size)
		return NULL;
	struct err *e = columns_unpack(bytes, size, path_kinds, &x);
	struct pack_path *made = e ? NULL : calloc(x.count + 1, sizeof *made);
	if (!e && !made)
		e = err_new("out of memory");
	else if (!e && !get_paths(&x, made))
		e = err_new("packed rows are damaged");
	if (e)
		free(made);
	*rows = e ? NULL : made;
	*count = e ? 0 : x.count;
	columns_free(&x);
	return e;
}
