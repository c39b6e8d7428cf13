/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts are many, the frames in them few, so these are listed first:
 *
 *    number of nodes, number of different frames,
 *    by frame (ordered): image less that of the frame before; kind; address less that before (signed)
 *    by node: its number less its parent's; place among the frames
 */
#include "store/pack_internal.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "profile/format.h"

_Static_assert(PROFILE_PARTIAL == 3, "kinds of nodes have two bits");

/* The different frames of some nodes, with the place of each node's among them. */
struct frames {
	struct pack_node *items;
	uint32_t *order;  /* of items: by image, address, kind */
	uint32_t *of;     /* by node: among items */
	uint32_t *places; /* by item: in the order */
	uint32_t *slots;  /* items + 1 by hash; 0: free */
	size_t count;
};

static bool same_frame(const struct pack_node *x, const struct pack_node *y)
{
	return x->address == y->address && x->image == y->image && x->kind == y->kind;
}

static int compare_frames(const void *a, const void *b, void *items)
{
	const struct pack_node *x = (const struct pack_node *)items + *(const uint32_t *)a;
	const struct pack_node *y = (const struct pack_node *)items + *(const uint32_t *)b;
	ORDER(x->image, y->image);
	ORDER(x->address, y->address);
	ORDER(x->kind, y->kind);
	return 0;
}

static uint32_t frames_find(struct frames *f, size_t room, const struct pack_node *node)
{
	uint64_t hash = hash_number(HASH_START, (uint64_t)node->image << 8 ^ node->kind);
	size_t at = (size_t)hash_number(hash, node->address) & (room - 1);
	for (; f->slots[at]; at = (at + 1) & (room - 1))
		if (same_frame(&f->items[f->slots[at] - 1], node))
			return f->slots[at] - 1;
	f->items[f->count] = *node;
	f->slots[at] = (uint32_t)++f->count;
	return f->slots[at] - 1;
}

static void frames_free(struct frames *f)
{
	free(f->items);
	free(f->order);
	free(f->of);
	free(f->places);
	free(f->slots);
}

/* frames_free in any case. */
static bool frames_make(struct frames *f, const struct pack_node *rows, size_t count)
{
	size_t room = 64;
	while (room < count * 2)
		room *= 2;
	*f = (struct frames){.items = malloc(count * sizeof *f->items),
			     .order = malloc(count * sizeof *f->order),
			     .of = malloc(count * sizeof *f->of),
			     .places = malloc(count * sizeof *f->places),
			     .slots = calloc(room, sizeof *f->slots)};
	if (!f->items || !f->order || !f->of || !f->places || !f->slots)
		return false;
	for (size_t i = 0; i < count; i++)
		f->of[i] = frames_find(f, room, &rows[i]);
	for (uint32_t i = 0; i < f->count; i++)
		f->order[i] = i;
	qsort_r(f->order, f->count, sizeof *f->order, compare_frames, f->items);
	for (uint32_t i = 0; i < f->count; i++)
		f->places[f->order[i]] = i;
	return true;
}

static void put_frames(const struct frames *f, struct buf *raw)
{
	struct pack_node before = {0};
	format_put_number(raw, f->count);
	for (size_t i = 0; i < f->count; i++) {
		format_put_number(raw, f->items[f->order[i]].image - before.image);
		before = f->items[f->order[i]];
	}
	for (size_t i = 0; i < f->count; i++)
		format_put_number(raw, f->items[f->order[i]].kind);
	before.address = 0;
	for (size_t i = 0; i < f->count; i++) {
		format_put_signed(raw, (int64_t)(f->items[f->order[i]].address - before.address));
		before = f->items[f->order[i]];
	}
}

struct err *pack_nodes(const struct pack_node *rows, size_t count, uint32_t first, int level,
		       struct buf *out)
{
	struct frames frames;
	struct buf raw = {0};
	if (!count)
		return NULL;
	if (!frames_make(&frames, rows, count)) {
		frames_free(&frames);
		return err_new("out of memory");
	}
	format_put_number(&raw, count);
	put_frames(&frames, &raw);
	for (size_t i = 0; i < count; i++)
		format_put_number(&raw, first + i - rows[i].parent);
	for (size_t i = 0; i < count; i++)
		format_put_number(&raw, frames.places[frames.of[i]]);
	frames_free(&frames);
	struct err *e = pack_frame(&raw, false, level, out);
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
		image += (uint32_t)cursor_limited(c, PACK_IMAGE_MAX - image);
		frames[i].image = image;
	}
	for (size_t i = 0; frames && i < n; i++) {
		frames[i].kind = cursor_limited(c, PROFILE_PARTIAL) & 3;
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
	bool apart;
	*rows = NULL;
	*count = 0;
	if (!size)
		return NULL;
	struct err *e = unpack_frame(bytes, size, &c, &apart);
	size_t nodes = e ? 0 : cursor_rows(&c, 2); /* a byte at least for each of two columns */
	if (!e && (apart || nodes > PACK_ROWS_MAX))
		e = err_new("packed rows are %s", apart ? "damaged" : "too many");
	struct pack_node *made = e ? NULL : calloc(nodes + 1, sizeof *made);
	if (!e && (!made || !get_nodes(&c, first, made, nodes)))
		e = err_new("out of memory");
	if (!e && (c.bad || c.at != c.end))
		e = err_new("packed rows are damaged");
	cursor_close(&c);
	if (e)
		free(made);
	*rows = e ? NULL : made;
	*count = e ? 0 : nodes;
	return e;
}
