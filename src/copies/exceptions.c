/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exception table:
 *
 *     LPStart encoding [LPStart]   what landing pads count from, else the procedure
 *     types' encoding [offset]     where the types begin, from behind the offset
 *     call sites' encoding, size
 *     call sites                   start, length, landing pad or 0, action + 1 or 0
 *     actions                      what a call site does, as chains: filter, distance to the next or 0
 *     types                        type i ends i - 1 entries before their begin
 *     specifications               behind it: lists of types, each with 0 at its end
 *
 * A filter above 0 is the number of a type, one below 0 says where a specification is. Nothing says how many actions,
 * types and specifications there are, so what call sites lead to is followed.
 *
 * Call sites count from the procedure. So each piece of a copy has a table of its own, with those of its calls that are
 * left. Its landing pads may be in another piece: then they count from the begin of the copy.
 */
#include "copies/exceptions.h"

#include <dwarf.h>
#include <inttypes.h>

#include "base/array.h"
#include "base/leb.h"
#include "image/image.h"
#include "copies/frames.h"
#include "copies/pieces.h"
#include "copies/relative.h"

#define ACTIONS_MAX 4096 /* of a call site: a chain may be a circle */
#define TYPES_MAX 65536

struct writer {
	const struct frames *frames;
	const struct copy_piece *pieces;
	size_t count;
	const struct copy_piece *piece;
	/* The table of the function. */
	struct cursor whole; /* from its first byte to the end of what can be read */
	struct cfi_bases bases;
	uint64_t pads_base;
	uint8_t types_encoding, sites_encoding;
	struct cursor sites;
	const uint8_t *actions, *types;
	/* What of it is in use. */
	const uint8_t *actions_end, *specifications_end;
	uint64_t type_count;
	/* Of the copy. */
	struct buf new_sites;
	uint32_t new_pads_base; /* in the code of the copy */
	bool base_is_copy;
};

struct site {
	uint64_t start, end; /* in the function */
	uint64_t pad;        /* 0: none */
	uint64_t action;
};

static struct err *refuse(const struct writer *w, const char *why)
{
	return err_new("exception table at 0x%" PRIx64 ": %s", w->piece->entry->lsda, why);
}

/* ---- the table of the function ---- */

static struct err *read_types_begin(struct writer *w, struct cursor *cursor)
{
	w->types_encoding = cursor_u8(cursor);
	if (w->types_encoding == CFI_POINTER_OMITTED)
		return NULL;
	uint64_t offset = cursor_uleb(cursor);
	if (cursor->bad || offset > cursor_left(cursor))
		return refuse(w, "its types are not there");
	w->types = w->specifications_end = cursor->at + offset;
	return NULL;
}

static struct err *read_head(struct writer *w)
{
	const struct frames_entry *entry = w->piece->entry;
	struct image *image = w->frames->image;
	size_t size;
	const uint8_t *bytes = image_bytes_at(image, entry->lsda, &size);
	if (!bytes)
		return refuse(w, "it is not in the file");
	w->whole = (struct cursor){bytes, bytes + size, false};
	w->bases = (struct cfi_bases){
		.bytes = bytes, .address = entry->lsda, .function = entry->start};
	struct cursor cursor = w->whole;
	uint8_t encoding = cursor_u8(&cursor);
	w->pads_base = entry->start;
	if (encoding != CFI_POINTER_OMITTED) {
		if (encoding & DW_EH_PE_indirect || !frames_can_encode(image, encoding))
			return refuse(w, "the encoding of its landing pads is not supported");
		w->pads_base = cfi_pointer(&cursor, encoding, &w->bases);
	}
	struct err *e = read_types_begin(w, &cursor);
	if (e)
		return e;
	w->sites_encoding = cursor_u8(&cursor);
	w->sites = cursor_block(&cursor, cursor_uleb(&cursor));
	if (cursor.bad || w->sites.bad || w->sites_encoding & 0xf0)
		return refuse(w, "it is damaged");
	w->actions = w->actions_end = cursor.at;
	return NULL;
}

static struct site read_site(struct writer *w)
{
	uint64_t start = cfi_pointer(&w->sites, w->sites_encoding, &w->bases);
	uint64_t size = cfi_pointer(&w->sites, w->sites_encoding, &w->bases);
	uint64_t pad = cfi_pointer(&w->sites, w->sites_encoding, &w->bases);
	struct site site = {.start = w->piece->entry->start + start};
	site.end = site.start + size;
	site.pad = pad ? w->pads_base + pad : 0;
	site.action = cursor_uleb(&w->sites);
	return site;
}

/* ---- what call sites lead to ---- */

static void use_type(struct writer *w, uint64_t type)
{
	if (type > w->type_count)
		w->type_count = type;
}

/* A list of types, which an exception must have one of. */
static struct err *follow_specification(struct writer *w, int64_t filter)
{
	uint64_t type, offset = 0 - (uint64_t)filter - 1;
	struct cursor cursor = {w->types, w->whole.end, false};
	cursor_skip(&cursor, offset);
	do {
		type = cursor_uleb(&cursor);
		use_type(w, type);
	} while (type && !cursor.bad);
	if (cursor.bad)
		return refuse(w, "a specification is damaged");
	if (cursor.at > w->specifications_end)
		w->specifications_end = cursor.at;
	return NULL;
}

static struct err *follow_filter(struct writer *w, int64_t filter)
{
	if (!filter)
		return NULL;
	if (!w->types)
		return refuse(w, "an action has a type, but there are none");
	if (filter < 0)
		return follow_specification(w, filter);
	use_type(w, (uint64_t)filter);
	return NULL;
}

static struct err *follow_actions(struct writer *w, uint64_t action)
{
	struct cursor cursor = {w->actions, w->whole.end, false};
	struct err *e = NULL;
	if (!action)
		return NULL;
	cursor_skip(&cursor, action - 1);
	for (unsigned i = 0; i < ACTIONS_MAX; i++) {
		int64_t filter = cursor_sleb(&cursor);
		const uint8_t *here = cursor.at;
		int64_t distance = cursor_sleb(&cursor);
		if (cursor.bad)
			return refuse(w, "an action is damaged");
		if (cursor.at > w->actions_end)
			w->actions_end = cursor.at;
		e = follow_filter(w, filter);
		if (e || !distance)
			return e;
		if (distance < w->actions - here || distance >= w->whole.end - here)
			return refuse(w, "an action leads out of it");
		cursor.at = here + distance;
	}
	return refuse(w, "its actions have no end");
}

/* ---- call sites ---- */

/* Writes a call site of the copy: [start, end) of its code goes on at `pad` there, or nowhere. */
static struct err *put_site(struct writer *w, uint32_t start, uint32_t end, const uint32_t *pad,
			    uint64_t action)
{
	if (start >= end) /* none of it is in the copy */
		return NULL;
	if (pad && *pad <= w->new_pads_base)
		return refuse(w, "a landing pad is the begin of the code");
	leb_put(&w->new_sites, start - w->piece->start);
	leb_put(&w->new_sites, end - start);
	leb_put(&w->new_sites, pad ? *pad - w->new_pads_base : 0);
	leb_put(&w->new_sites, action);
	return follow_actions(w, action);
}

/* Calls that have a way of their own are call sites of their own. */
static struct err *write_site(struct writer *w, struct site site)
{
	const struct copy *copy = w->piece->copy;
	uint32_t start = piece_place(w->piece, site.start), end = piece_place(w->piece, site.end);
	uint32_t pad = 0;
	struct err *e = NULL;
	if (!site.pad || start >= end)
		return put_site(w, start, end, NULL, site.action);
	if (!copy_pieces_find(w->pieces, w->count, site.pad, &pad))
		return err_new("exception table at 0x%" PRIx64 ": the landing pad at 0x%" PRIx64
			       " is not in the copy",
			       w->piece->entry->lsda, site.pad);
	size_t first = FIRST_NOT(i, copy->landing_count, copy->landings[i].call < site.start);
	for (size_t i = first; !e && i < copy->landing_count; i++) {
		const struct copy_landing *l = &copy->landings[i];
		if (l->call >= site.end)
			break;
		if (l->pad != site.pad)
			continue;
		uint32_t call = piece_place(w->piece, l->call);
		uint32_t behind = piece_place(w->piece, l->call + 1);
		e = put_site(w, start, call, &pad, site.action);
		if (!e)
			e = put_site(w, call, behind, &l->to, site.action);
		start = behind;
	}
	return e ? e : put_site(w, start, end, &pad, site.action);
}

/* Whether a call site of the piece has its landing pad in front of the piece, or at its begin: that needs another
   number than 0. */
static bool pads_before(struct writer *w)
{
	const struct copy *copy = w->piece->copy;
	struct cursor sites = w->sites;
	bool before = false;
	for (size_t i = 0; i < copy->landing_count; i++)
		before |= copy->landings[i].to <= w->piece->start;
	while (cursor_left(&w->sites) && !w->sites.bad) {
		struct site site = read_site(w);
		uint32_t pad;
		before |= site.pad && copy_pieces_find(w->pieces, w->count, site.pad, &pad) &&
			  pad <= w->piece->start;
	}
	w->sites = sites;
	return before;
}

static struct err *write_sites(struct writer *w)
{
	struct err *e = NULL;
	w->base_is_copy = pads_before(w);
	w->new_pads_base = w->base_is_copy ? 0 : w->piece->start;
	while (!e && cursor_left(&w->sites)) {
		struct site site = read_site(w);
		e = w->sites.bad ? refuse(w, "a call site is damaged") : write_site(w, site);
	}
	return e;
}

/* ---- the table of the piece ---- */

static unsigned type_size(uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case DW_EH_PE_udata2:
	case DW_EH_PE_sdata2:
		return 2;
	case DW_EH_PE_udata4:
	case DW_EH_PE_sdata4:
		return 4;
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
	case DW_EH_PE_signed:
		return 8;
	default:
		return 0;
	}
}

static struct err *check_types(struct writer *w)
{
	uint64_t size = type_size(w->types_encoding);
	if (!w->type_count)
		return NULL;
	if (!size || !frames_can_encode(w->frames->image, w->types_encoding))
		return err_new("exception table at 0x%" PRIx64
			       ": encoding 0x%x of types is not supported",
			       w->piece->entry->lsda, w->types_encoding);
	if (w->type_count > TYPES_MAX || w->types < w->actions_end ||
	    w->type_count * size > (uint64_t)(w->types - w->actions_end))
		return refuse(w, "it has too many types");
	return NULL;
}

/* The last type comes first. */
static struct err *write_types(const struct writer *w, uint64_t address, struct buf *out)
{
	unsigned size = type_size(w->types_encoding);
	struct err *e = NULL;
	for (uint64_t i = w->type_count; !e && i; i--) {
		struct cursor cursor = {w->types - i * size, w->types, false};
		uint64_t type = cfi_pointer(&cursor, w->types_encoding, &w->bases);
		if (type)
			e = relative_put(out, address, type);
		else /* any */
			buf_append(out, &(uint32_t){0}, 4);
	}
	return e;
}

static size_t leb_size(uint64_t value)
{
	uint8_t bytes[LEB_BYTES];
	return leb_write(bytes, value);
}

static void put_byte(struct buf *out, uint8_t byte)
{
	buf_append(out, &byte, 1);
}

static struct err *write_table(const struct writer *w, uint64_t address, struct buf *out)
{
	size_t actions = (size_t)(w->actions_end - w->actions);
	struct err *e = NULL;
	put_byte(out, w->base_is_copy ? DW_EH_PE_pcrel | DW_EH_PE_sdata4 : DW_EH_PE_omit);
	if (w->base_is_copy)
		e = relative_put(out, address, w->piece->copy->address + w->new_pads_base);
	if (e)
		return e;
	if (w->types) {
		put_byte(out, (w->types_encoding & DW_EH_PE_indirect) | DW_EH_PE_pcrel |
				      DW_EH_PE_sdata4);
		leb_put(out, 1 + leb_size(w->new_sites.size) + w->new_sites.size + actions +
				     w->type_count * 4);
	} else {
		put_byte(out, DW_EH_PE_omit);
	}
	put_byte(out, DW_EH_PE_uleb128);
	leb_put(out, w->new_sites.size);
	buf_append(out, w->new_sites.data, w->new_sites.size);
	buf_append(out, w->actions, actions);
	e = write_types(w, address, out);
	if (!e && w->types)
		buf_append(out, w->types, (size_t)(w->specifications_end - w->types));
	return e;
}

struct err *exceptions_write(const struct frames *frames, const struct copy_piece *pieces,
			     size_t count, size_t index, uint64_t address, struct buf *out)
{
	struct writer w = {
		.frames = frames, .pieces = pieces, .count = count, .piece = &pieces[index]};
	struct err *e = read_head(&w);
	if (!e)
		e = write_sites(&w);
	if (!e)
		e = check_types(&w);
	if (!e)
		e = write_table(&w, address, out);
	if (!e && (w.new_sites.failed || out->failed))
		e = err_new("out of memory");
	buf_free(&w.new_sites);
	return e;
}
