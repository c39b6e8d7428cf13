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
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "profile/format.h"

static int compare_frames(const void *a, const void *b)
{
	const struct pack_node *x = a, *y = b;
	ORDER(x->image, y->image);
	ORDER(x->address, y->address);
	ORDER(x->kind, y->kind);
	return 0;
}

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
		return err_new("out of memory");
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
