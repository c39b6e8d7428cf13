/* SPDX-License-Identifier: Apache-2.0 */
#include "copies/unwind_copy.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "base/leb.h"
#include "copies/exceptions.h"
#include "copies/frame_program.h"
#include "copies/frames.h"
#include "copies/pieces.h"
#include "copies/relative.h"

#define WORD 8

struct written_common {
	const uint8_t *cie; /* in the module */
	size_t offset;      /* in what is written */
	struct frames_common common;
};

struct search_row { /* of .eh_frame_hdr */
	uint64_t code, entry;
};

struct writer {
	const struct frames *frames;
	uint64_t address; /* of the bytes that are written */
	struct buf *out;
	struct copy_pieces pieces;
	struct written_common *commons;
	size_t common_count, common_room;
	struct search_row *rows;
	size_t row_count, row_room;
};

static void put_byte(struct buf *out, uint8_t byte)
{
	buf_append(out, &byte, 1);
}

static void put_u32(struct buf *out, uint32_t value)
{
	buf_append(out, &value, sizeof value);
}

static void align(struct buf *out)
{
	while (out->size % WORD && !out->failed)
		put_byte(out, 0); /* of instructions: DW_CFA_nop */
}

/* Begins an entry, whose length is not known yet. */
static size_t entry_begin(struct writer *w)
{
	size_t begin = w->out->size;
	put_u32(w->out, 0);
	return begin;
}

static void entry_end(struct writer *w, size_t begin)
{
	align(w->out);
	uint32_t length = (uint32_t)(w->out->size - begin - sizeof length);
	if (!w->out->failed)
		memcpy(w->out->data + begin, &length, sizeof length);
}

/* ---- CIEs ---- */

static void put_letters(const struct frames_common *common, struct buf *out)
{
	buf_puts(out, "z");
	if (common->personality)
		buf_puts(out, "P");
	if (common->has_lsda)
		buf_puts(out, "L");
	buf_puts(out, "R");
	if (common->is_signal)
		buf_puts(out, "S");
	if (common->key_b)
		buf_puts(out, "B");
	if (common->tagged)
		buf_puts(out, "G");
	put_byte(out, 0);
}

static struct err *put_augmentation(struct writer *w, const struct frames_common *common)
{
	const uint8_t relative = DW_EH_PE_pcrel | DW_EH_PE_sdata4;
	struct err *e = NULL;
	leb_put(w->out, (common->personality ? 5 : 0) + (common->has_lsda ? 1 : 0) + 1);
	if (common->personality) {
		put_byte(w->out, (common->personality_encoding & DW_EH_PE_indirect) | relative);
		e = relative_put(w->out, w->address, common->personality);
	}
	if (common->has_lsda)
		put_byte(w->out, relative);
	put_byte(w->out, relative);
	return e;
}

static struct err *write_common(struct writer *w, const struct frames_common *common)
{
	size_t begin = entry_begin(w);
	put_u32(w->out, 0);
	put_byte(w->out, 1); /* version */
	put_letters(common, w->out);
	leb_put(w->out, 1); /* code alignment: an instruction of a copy may have any length */
	leb_put_signed(w->out, common->data_align);
	put_byte(w->out, common->return_column);
	struct err *e = put_augmentation(w, common);
	if (!e)
		e = frame_program_write_common(w->frames, common, w->out);
	entry_end(w, begin);
	return e;
}

/* The CIE for the entry of a piece, which is written unless it is there. */
static struct err *find_common(struct writer *w, const struct frames_entry *entry,
			       const struct written_common **out)
{
	struct written_common new = {.cie = entry->cie.at, .offset = w->out->size};
	for (size_t i = w->common_count; i; i--) {
		*out = &w->commons[i - 1];
		if ((*out)->cie == entry->cie.at)
			return NULL;
	}
	struct err *e = frames_read_common(w->frames, entry, &new.common);
	if (!e)
		e = write_common(w, &new.common);
	if (!e && !ARRAY_ROOM(w->commons, w->common_count, w->common_room))
		e = err_new("out of memory");
	if (e)
		return e;
	*out = &w->commons[w->common_count];
	w->commons[w->common_count++] = new;
	return NULL;
}

/* ---- entries ---- */

static struct err *put_lsda(struct writer *w, const struct copy_piece *piece)
{
	put_byte(w->out, sizeof(uint32_t));
	if (piece->lsda)
		return relative_put(w->out, w->address, piece->lsda);
	put_u32(w->out, 0);
	return NULL;
}

static struct err *write_entry(struct writer *w, const struct copy_piece *piece)
{
	uint64_t code = piece->copy->address + piece->start;
	const struct written_common *common;
	struct err *e = find_common(w, piece->entry, &common);
	if (e)
		return e;
	if (!ARRAY_ROOM(w->rows, w->row_count, w->row_room))
		return err_new("out of memory");
	size_t begin = entry_begin(w);
	w->rows[w->row_count++] = (struct search_row){code, w->address + begin};
	put_u32(w->out, (uint32_t)(w->out->size - common->offset));
	e = relative_put(w->out, w->address, code);
	put_u32(w->out, piece->end - piece->start);
	if (!e && common->common.has_lsda)
		e = put_lsda(w, piece);
	else
		put_byte(w->out, 0);
	if (!e)
		e = frame_program_write(w->frames, &common->common, piece, w->out);
	entry_end(w, begin);
	return e;
}

static struct err *name_copy(struct err *e, const struct copy *copy)
{
	return copy->name ? err_context(e, "%s", copy->name)
			  : err_context(e, "function at 0x%" PRIx64, copy->entry);
}

static struct err *write_entries(struct writer *w, struct unwind_copy *out)
{
	struct err *e = NULL;
	align(w->out);
	out->frames = w->out->size;
	for (size_t i = 0; !e && i < w->pieces.count; i++) {
		const struct copy_piece *piece = &w->pieces.items[i];
		if (piece->entry)
			e = name_copy(write_entry(w, piece), piece->copy);
	}
	put_u32(w->out, 0); /* the end */
	out->frames_size = w->out->size - out->frames;
	return e;
}

/* ---- exception tables ---- */

/* Those of the pieces from `first` on, which are of one copy. */
static struct err *write_exceptions(struct writer *w, size_t first)
{
	struct copy_piece *pieces = &w->pieces.items[first];
	size_t count = w->pieces.count - first;
	struct err *e = NULL;
	for (size_t i = 0; !e && i < count; i++) {
		struct frames_common common;
		if (!pieces[i].entry)
			continue;
		e = frames_read_common(w->frames, pieces[i].entry, &common);
		if (e || !common.has_lsda || !pieces[i].entry->lsda)
			continue;
		pieces[i].lsda = w->address + w->out->size;
		e = exceptions_write(w->frames, pieces, count, i, w->address, w->out);
	}
	return e;
}

static struct err *write_all_exceptions(struct writer *w, const struct copy *copies, size_t count,
					struct unwind_copy *out)
{
	struct err *e = NULL;
	for (size_t i = 0; !e && i < count; i++) {
		size_t first = w->pieces.count;
		e = copy_pieces_add(w->frames, &copies[i], &w->pieces);
		if (!e)
			e = write_exceptions(w, first);
		e = name_copy(e, &copies[i]);
	}
	out->exceptions_size = w->out->size;
	return e;
}

/* ---- the table for searches ---- */

/* Pointers of the table itself count from its begin. */
static struct err *write_search(struct writer *w, struct unwind_copy *out)
{
	align(w->out);
	out->search = w->out->size;
	uint64_t here = w->address + out->search;
	put_byte(w->out, 1); /* version */
	put_byte(w->out, DW_EH_PE_pcrel | DW_EH_PE_sdata4);
	put_byte(w->out, DW_EH_PE_udata4);
	put_byte(w->out, DW_EH_PE_datarel | DW_EH_PE_sdata4);
	struct err *e = relative_put(w->out, w->address, w->address + out->frames);
	put_u32(w->out, (uint32_t)w->row_count);
	for (size_t i = 0; i < w->row_count; i++) {
		put_u32(w->out, (uint32_t)(w->rows[i].code - here));
		put_u32(w->out, (uint32_t)(w->rows[i].entry - here));
	}
	out->search_size = w->out->size - out->search;
	return e;
}

struct err *unwind_copy_write(const struct frames *frames, const struct copy *copies, size_t count,
			      uint64_t address, struct unwind_copy *out)
{
	*out = (struct unwind_copy){0};
	struct writer w = {.frames = frames, .address = address, .out = &out->bytes};
	struct err *e = write_all_exceptions(&w, copies, count, out);
	if (!e)
		e = write_entries(&w, out);
	if (!e)
		e = write_search(&w, out);
	if (!e && out->bytes.failed)
		e = err_new("out of memory");
	copy_pieces_free(&w.pieces);
	free(w.commons);
	free(w.rows);
	if (e)
		unwind_copy_free(out);
	return e;
}

void unwind_copy_free(struct unwind_copy *unwind)
{
	buf_free(&unwind->bytes);
}
