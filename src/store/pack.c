/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of counts, in this order:
 *
 *    number of rows, number of different processes,
 *    processes: each less the one before
 *    by row: image less that of the row before
 *            address less that of the row before where the image is the same
 *            place among the processes
 *            event
 *            count less 1
 *
 * Rows of paths: the same with node, less the one before, for image and address.
 *
 * Nodes: contexts are many, the frames in them few, so these are listed first:
 *
 *    number of nodes, number of different frames,
 *    by frame (ordered): image less that of the frame before; kind; address less that before (signed)
 *    by node: its number less its parent's; place among the frames
 */
#include "store/pack.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/err.h"
#include "profile/format.h"
#include "profile/sections.h"

enum { PACKED_RAW = 1, PACKED_ZSTD = 2 };
#define RAW_SMALL 48 /* less does not become smaller */

static struct err *no_memory(void)
{
	return err_new("out of memory");
}

/* Order */

#define ORDER(x, y)                                \
	do {                                       \
		if ((x) != (y))                    \
			return (x) < (y) ? -1 : 1; \
	} while (0)

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
	ORDER(x->node, y->node);
	ORDER(x->process, y->process);
	ORDER(x->event, y->event);
	return 0;
}

static int compare_frames(const void *a, const void *b)
{
	const struct pack_node *x = a, *y = b;
	ORDER(x->image, y->image);
	ORDER(x->address, y->address);
	ORDER(x->kind, y->kind);
	return 0;
}

static int compare_numbers(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	ORDER(*x, *y);
	return 0;
}

static uint64_t add(uint64_t a, uint64_t b)
{
	uint64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

size_t pack_settle_counts(struct pack_count *rows, size_t count)
{
	size_t kept = 0;
	qsort(rows, count, sizeof *rows, compare_counts);
	for (size_t i = 0; i < count; i++) {
		if (kept && !compare_counts(&rows[kept - 1], &rows[i]))
			rows[kept - 1].count = add(rows[kept - 1].count, rows[i].count);
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
			rows[kept - 1].count = add(rows[kept - 1].count, rows[i].count);
		else if (rows[i].count)
			rows[kept++] = rows[i];
	}
	return kept;
}

/* The bytes around the columns */

static struct err *finish(const struct buf *raw, int level, struct buf *out)
{
	char kind = PACKED_ZSTD;
	size_t bound = ZSTD_compressBound(raw->size);
	if (raw->failed)
		return no_memory();
	ZSTD_CCtx *z = raw->size > RAW_SMALL ? ZSTD_createCCtx() : NULL;
	if (z && buf_reserve(out, bound + 1)) {
		ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, level);
		ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
		size_t size = ZSTD_compress2(z, out->data + out->size + 1, bound, raw->data,
					     raw->size);
		ZSTD_freeCCtx(z);
		if (!ZSTD_isError(size) && size < raw->size) {
			out->data[out->size] = kind;
			out->size += size + 1;
			return NULL;
		}
	} else {
		ZSTD_freeCCtx(z);
	}
	kind = PACKED_RAW;
	buf_append(out, &kind, 1);
	buf_append(out, raw->data, raw->size);
	return out->failed ? no_memory() : NULL;
}

static struct err *inflate(const uint8_t *bytes, size_t size, struct cursor *c)
{
	unsigned long long raw = ZSTD_getFrameContentSize(bytes, size);
	if (raw == ZSTD_CONTENTSIZE_UNKNOWN || raw == ZSTD_CONTENTSIZE_ERROR ||
	    raw > FORMAT_RAW_MAX)
		return err_new("packed rows are damaged");
	c->own = malloc(raw + 1);
	if (!c->own)
		return no_memory();
	size_t got = ZSTD_decompress(c->own, raw, bytes, size);
	c->at = c->own;
	c->end = c->own + raw;
	return ZSTD_isError(got) || got != raw ? err_new("packed rows are damaged") : NULL;
}

static struct err *start(const void *bytes, size_t size, struct cursor *c)
{
	const uint8_t *at = bytes;
	*c = (struct cursor){0};
	if (at[0] == PACKED_ZSTD)
		return inflate(at + 1, size - 1, c);
	c->at = at + 1;
	c->end = at + size;
	return at[0] == PACKED_RAW ? NULL : err_new("packed rows are damaged");
}

/* Begins to read rows of so many columns, of which each takes a byte at least. *rows: room for them,
   all zero. */
static struct err *unpack_begin(const void *bytes, size_t size, unsigned columns, size_t row_size,
				struct cursor *c, void **rows, size_t *count)
{
	struct err *e = start(bytes, size, c);
	*count = e ? 0 : cursor_rows(c, columns);
	if (!e && *count > PACK_ROWS_MAX)
		e = err_new("packed rows are too many");
	*rows = e ? NULL : calloc(*count + 1, row_size);
	return e || *rows ? e : no_memory();
}

/* What was read must have been all; else there are no rows. */
static struct err *unpack_end(struct cursor *c, struct err *e, void **rows, size_t *count)
{
	if (!e && (c->bad || c->at != c->end))
		e = err_new("packed rows are damaged");
	cursor_close(c);
	if (e) {
		free(*rows);
		*rows = NULL;
		*count = 0;
	}
	return e;
}

/* Processes: few, and their numbers may be large */

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

static uint64_t list_item(const struct list *l, struct cursor *c)
{
	uint64_t place = cursor_number(c);
	c->bad |= place >= l->count;
	return place < l->count ? l->items[place] : 0;
}

/* Counts */

struct err *pack_counts(const struct pack_count *rows, size_t count, int level, struct buf *out)
{
	struct list processes = {0};
	struct buf raw = {0};
	if (!count)
		return NULL;
	if (!list_make(&processes, &rows->process, sizeof *rows, count))
		return no_memory();
	format_put_number(&raw, count);
	list_put(&processes, &raw);
	for (size_t i = 0; i < count; i++)
		format_put_number(&raw, rows[i].image - (i ? rows[i - 1].image : 0));
	for (size_t i = 0; i < count; i++) {
		bool same = i && rows[i].image == rows[i - 1].image;
		format_put_number(&raw, rows[i].address - (same ? rows[i - 1].address : 0));
	}
	for (size_t i = 0; i < count; i++)
		format_put_number(&raw, list_place(&processes, rows[i].process));
	for (size_t i = 0; i < count; i++)
		format_put_number(&raw, rows[i].event);
	for (size_t i = 0; i < count; i++)
		format_put_number(&raw, rows[i].count - 1);
	free(processes.items);
	struct err *e = finish(&raw, level, out);
	buf_free(&raw);
	return e;
}

/* The count of a row, which is never 0. */
static uint64_t get_count(struct cursor *c)
{
	uint64_t less = cursor_number(c);
	c->bad |= less == UINT64_MAX;
	return less + 1;
}

static bool get_count_columns(struct cursor *c, struct pack_count *rows, size_t count)
{
	struct list processes = {0};
	uint64_t image = 0, address = 0;
	if (!list_get(&processes, c))
		return false;
	for (size_t i = 0; i < count; i++) {
		c->bad |= __builtin_add_overflow(image, cursor_number(c), &image);
		rows[i].image = image;
	}
	for (size_t i = 0; i < count; i++) {
		if (!i || rows[i].image != rows[i - 1].image)
			address = 0;
		c->bad |= __builtin_add_overflow(address, cursor_number(c), &address);
		rows[i].address = address;
	}
	for (size_t i = 0; i < count; i++)
		rows[i].process = list_item(&processes, c);
	for (size_t i = 0; i < count; i++)
		rows[i].event = cursor_number(c);
	for (size_t i = 0; i < count; i++)
		rows[i].count = get_count(c);
	free(processes.items);
	return true;
}

struct err *unpack_counts(const void *bytes, size_t size, struct pack_count **rows, size_t *count)
{
	struct cursor c;
	void *made;
	*rows = NULL;
	*count = 0;
	if (!size)
		return NULL;
	struct err *e = unpack_begin(bytes, size, 5, sizeof **rows, &c, &made, count);
	if (!e && !get_count_columns(&c, made, *count))
		e = no_memory();
	e = unpack_end(&c, e, &made, count);
	*rows = made;
	return e;
}

/* Paths */

struct err *pack_paths(const struct pack_path *rows, size_t count, int level, struct buf *out)
{
	struct list processes = {0};
	struct buf raw = {0};
	if (!count)
		return NULL;
	if (!list_make(&processes, &rows->process, sizeof *rows, count))
		return no_memory();
	format_put_number(&raw, count);
	list_put(&processes, &raw);
	for (size_t i = 0; i < count; i++)
		format_put_number(&raw, rows[i].node - (i ? rows[i - 1].node : 0));
	for (size_t i = 0; i < count; i++)
		format_put_number(&raw, list_place(&processes, rows[i].process));
	for (size_t i = 0; i < count; i++)
		format_put_number(&raw, rows[i].event);
	for (size_t i = 0; i < count; i++)
		format_put_number(&raw, rows[i].count - 1);
	free(processes.items);
	struct err *e = finish(&raw, level, out);
	buf_free(&raw);
	return e;
}

static bool get_path_columns(struct cursor *c, struct pack_path *rows, size_t count)
{
	struct list processes = {0};
	uint64_t node = 0;
	if (!list_get(&processes, c))
		return false;
	for (size_t i = 0; i < count; i++) {
		c->bad |= __builtin_add_overflow(node, cursor_number(c), &node);
		rows[i].node = node;
	}
	for (size_t i = 0; i < count; i++)
		rows[i].process = list_item(&processes, c);
	for (size_t i = 0; i < count; i++)
		rows[i].event = cursor_number(c);
	for (size_t i = 0; i < count; i++)
		rows[i].count = get_count(c);
	free(processes.items);
	return true;
}

struct err *unpack_paths(const void *bytes, size_t size, struct pack_path **rows, size_t *count)
{
	struct cursor c;
	void *made;
	*rows = NULL;
	*count = 0;
	if (!size)
		return NULL;
	struct err *e = unpack_begin(bytes, size, 4, sizeof **rows, &c, &made, count);
	if (!e && !get_path_columns(&c, made, *count))
		e = no_memory();
	e = unpack_end(&c, e, &made, count);
	*rows = made;
	return e;
}

/* Nodes */

static void put_frames(const struct pack_node *frames, size_t count, struct buf *raw)
{
	format_put_number(raw, count);
	for (size_t i = 0; i < count; i++)
		format_put_number(raw, frames[i].image - (i ? frames[i - 1].image : 0));
	for (size_t i = 0; i < count; i++)
		format_put_number(raw, frames[i].kind);
	for (size_t i = 0; i < count; i++)
		format_put_signed(raw,
				  (int64_t)(frames[i].address - (i ? frames[i - 1].address : 0)));
}

struct err *pack_nodes(const struct pack_node *rows, size_t count, uint32_t first, int level,
		       struct buf *out)
{
	struct pack_node *frames = malloc((count + 1) * sizeof *frames);
	struct buf raw = {0};
	size_t kept = 0;
	if (!frames)
		return no_memory();
	if (!count) {
		free(frames);
		return NULL;
	}
	memcpy(frames, rows, count * sizeof *frames);
	qsort(frames, count, sizeof *frames, compare_frames);
	for (size_t i = 0; i < count; i++)
		if (!kept || compare_frames(&frames[kept - 1], &frames[i]))
			frames[kept++] = frames[i];
	format_put_number(&raw, count);
	put_frames(frames, kept, &raw);
	for (size_t i = 0; i < count; i++)
		format_put_number(&raw, first + i - rows[i].parent);
	for (size_t i = 0; i < count; i++) {
		const struct pack_node *f = bsearch(&rows[i], frames, kept, sizeof *frames,
						    compare_frames);
		format_put_number(&raw, (uint64_t)(f - frames));
	}
	free(frames);
	struct err *e = finish(&raw, level, out);
	buf_free(&raw);
	return e;
}

static struct pack_node *get_frames(struct cursor *c, size_t *count)
{
	size_t n = *count = cursor_rows(c, 3);
	struct pack_node *frames = calloc(n + 1, sizeof *frames);
	uint64_t address = 0;
	uint32_t image = 0;
	for (size_t i = 0; frames && i < n; i++) {
		c->bad |= __builtin_add_overflow(image, cursor_limited(c, UINT32_MAX), &image);
		frames[i].image = image;
	}
	for (size_t i = 0; frames && i < n; i++) {
		frames[i].kind = (uint8_t)cursor_limited(c, PROFILE_PARTIAL);
		c->bad |= frames[i].kind == PROFILE_ROOT;
	}
	for (size_t i = 0; frames && i < n; i++) {
		address += (uint64_t)cursor_signed(c);
		frames[i].address = address;
	}
	return frames;
}

static bool get_nodes(struct cursor *c, uint32_t first, struct pack_node *rows, size_t count)
{
	size_t frame_count;
	struct pack_node *frames = get_frames(c, &frame_count);
	if (!frames)
		return false;
	for (size_t i = 0; i < count; i++) {
		uint64_t back = cursor_number(c), number = first + i;
		c->bad |= !back || back > number;
		rows[i].parent = c->bad ? 0 : (uint32_t)(number - back);
	}
	for (size_t i = 0; i < count; i++) {
		uint64_t place = cursor_number(c);
		uint32_t parent = rows[i].parent;
		c->bad |= place >= frame_count;
		rows[i] = frames[c->bad ? 0 : place];
		rows[i].parent = parent;
	}
	free(frames);
	return true;
}

struct err *unpack_nodes(const void *bytes, size_t size, uint32_t first, struct pack_node **rows,
			 size_t *count)
{
	struct cursor c;
	void *made;
	*rows = NULL;
	*count = 0;
	if (!size)
		return NULL;
	struct err *e = unpack_begin(bytes, size, 2, sizeof **rows, &c, &made, count);
	if (!e && !get_nodes(&c, first, made, *count))
		e = no_memory();
	e = unpack_end(&c, e, &made, count);
	*rows = made;
	return e;
}
