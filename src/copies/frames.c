/* SPDX-License-Identifier: Apache-2.0 */
#include "copies/frames.h"

#include <dwarf.h>
#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/err.h"
#include "image/image.h"
#include "recipes/cfi_stats.h"
#include "recipes/rows.h"

static bool take_entry(void *context, const struct cfi_entry *entry)
{
	struct frames *frames = context;
	if (!ARRAY_ROOM(frames->entries, frames->count, frames->room)) {
		frames->failed = true;
		return false;
	}
	frames->entries[frames->count++] = (struct frames_entry){
		.start = entry->start,
		.end = entry->end,
		.lsda = entry->lsda,
		.cie = entry->cie,
		.program = entry->program,
	};
	return true;
}

static int by_start(const void *a, const void *b)
{
	const struct frames_entry *left = a, *right = b;
	return left->start < right->start ? -1 : left->start > right->start;
}

static void read_entries(struct frames *frames)
{
	struct cfi_stats stats = {0};
	struct cfi_machine machine;
	struct rows unused;
	rows_init(&unused);
	cfi_machine_init(&machine, &unused, &stats);
	if (!cfi_each_entry(&frames->section, &machine, take_entry, frames))
		frames->failed = true;
	frames->damaged = stats.bad_entries > 0;
	cfi_machine_free(&machine);
	rows_free(&unused);
}

struct err *frames_open(struct image *image, struct frames *out)
{
	const struct image_section *found = image_section(image, ".eh_frame");
	*out = (struct frames){.image = image};
	if (!cfi_section_init(&out->section, image))
		return err_new("%s: its CPU is not one of ours", image_path(image));
	if (!found)
		return NULL;
	out->section.bytes = image_section_bytes(image, found, &out->section.size);
	out->section.address = found->address;
	out->section.is_eh = true;
	if (!out->section.bytes)
		return NULL;
	read_entries(out);
	if (out->failed) {
		frames_close(out);
		return err_new("%s: out of memory while reading unwind information",
			       image_path(image));
	}
	if (out->count)
		qsort(out->entries, out->count, sizeof *out->entries, by_start);
	return NULL;
}

void frames_close(struct frames *frames)
{
	free(frames->entries);
	frames->entries = NULL;
	frames->count = frames->room = 0;
}

const struct frames_entry *frames_find(const struct frames *frames, uint64_t address)
{
	size_t after = FIRST_NOT(i, frames->count, frames->entries[i].start <= address);
	const struct frames_entry *entry = after ? &frames->entries[after - 1] : NULL;
	return entry && address < entry->end ? entry : NULL;
}

bool frames_can_encode(const struct image *image, uint8_t encoding)
{
	switch (encoding & 0x70) {
	case DW_EH_PE_pcrel:
		return true;
	case DW_EH_PE_absptr:
		return image_type(image) == ET_EXEC;
	default:
		return false;
	}
}

/* ---- CIEs ---- */

static struct err *refuse_encoding(const char *what, uint8_t encoding)
{
	return err_new("unwind information: %s: encoding 0x%x is not supported", what, encoding);
}

static struct err *read_personality(const struct frames *frames, struct cursor *data,
				    struct frames_common *out)
{
	struct cfi_bases bases = {.bytes = frames->section.bytes,
				  .address = frames->section.address};
	uint8_t encoding = cursor_u8(data);
	if (encoding == CFI_POINTER_OMITTED)
		return NULL;
	if (!frames_can_encode(frames->image, encoding))
		return refuse_encoding("the personality", encoding);
	out->personality = cfi_pointer(data, encoding, &bases);
	if (out->personality)
		out->personality_encoding = encoding;
	return NULL;
}

/* An indirect pointer to the exception table would have been read as none. */
static struct err *read_lsda_encoding(const struct frames *frames, struct cursor *data,
				      struct frames_common *out)
{
	uint8_t encoding = cursor_u8(data);
	if (encoding == CFI_POINTER_OMITTED)
		return NULL;
	if (encoding & DW_EH_PE_indirect || !frames_can_encode(frames->image, encoding))
		return refuse_encoding("the exception table", encoding);
	out->has_lsda = true;
	return NULL;
}

static struct err *read_letter(const struct frames *frames, char letter, struct cursor *data,
			       struct frames_common *out)
{
	switch (letter) {
	case 'P':
		return read_personality(frames, data, out);
	case 'L':
		return read_lsda_encoding(frames, data, out);
	case 'R':
		out->pointer_encoding = cursor_u8(data);
		return NULL;
	case 'S':
		out->is_signal = true;
		return NULL;
	case 'B':
		out->key_b = true;
		return NULL;
	case 'G':
		out->tagged = true;
		return NULL;
	default:
		return err_new("unwind information: augmentation '%c' is not supported", letter);
	}
}

static struct err *read_augmentation(const struct frames *frames, const char *letters,
				     struct cursor *cursor, struct frames_common *out)
{
	struct err *e = NULL;
	if (!*letters)
		return NULL;
	if (*letters != 'z')
		return err_new("unwind information: augmentation \"%s\" is not supported", letters);
	struct cursor data = cursor_block(cursor, cursor_uleb(cursor));
	while (!e && *++letters)
		e = read_letter(frames, *letters, &data, out);
	if (!e && data.bad)
		e = err_new("unwind information: a damaged augmentation");
	return e;
}

/* A text with a 0 at its end; NULL if it has none. */
static const char *read_text(struct cursor *cursor)
{
	const char *text = (const char *)cursor->at;
	while (cursor_u8(cursor))
		;
	return cursor->bad ? NULL : text;
}

struct err *frames_read_common(const struct frames *frames, const struct frames_entry *entry,
			       struct frames_common *out)
{
	struct cursor cursor = entry->cie;
	uint8_t version = cursor_u8(&cursor);
	const char *letters = read_text(&cursor);
	*out = (struct frames_common){.personality_encoding = CFI_POINTER_OMITTED};
	if (!letters)
		return err_new("unwind information: a damaged CIE");
	if (version == 4)
		cursor_u16(&cursor); /* sizes of addresses and of segments: the usual ones */
	out->code_align = cursor_uleb(&cursor);
	out->data_align = cursor_sleb(&cursor);
	uint64_t column = version == 1 ? cursor_u8(&cursor) : cursor_uleb(&cursor);
	struct err *e = read_augmentation(frames, letters, &cursor, out);
	if (!e && (cursor.bad || column > UINT8_MAX))
		e = err_new("unwind information: a damaged CIE");
	out->return_column = (uint8_t)column;
	out->program = cursor;
	return e;
}
