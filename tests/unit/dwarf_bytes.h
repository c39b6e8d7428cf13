/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* DWARF written byte by byte, and an image around it. */
#include <elf.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "image/dwarf_names.h"
#include "made_image.h"

#define CODE 0x1000u /* where the image has code, and how much */
#define CODE_SIZE 0x4000u

enum part {
	INFO,
	ABBREV,
	LINE,
	LINE_STR,
	STR,
	RANGES,
	RNGLISTS,
	ADDR,
	ARANGES,
	STR_OFFSETS,
	PARTS
};

struct dwarf_bytes {
	struct buf parts[PARTS];
};

static inline void put(struct buf *b, uint64_t value, size_t size)
{
	buf_append(b, &value, size);
}

static inline void put_uleb(struct buf *b, uint64_t value)
{
	do {
		put(b, (value & 0x7f) | (value > 0x7f ? 0x80 : 0), 1);
		value >>= 7;
	} while (value);
}

static inline void put_sleb(struct buf *b, int64_t value)
{
	bool more = true;
	while (more) {
		uint8_t byte = value & 0x7f;
		value >>= 7;
		more = !((value == 0 && !(byte & 0x40)) || (value == -1 && (byte & 0x40)));
		put(b, byte | (more ? 0x80 : 0), 1);
	}
}

static inline void put_text(struct buf *b, const char *text)
{
	buf_append(b, text, strlen(text) + 1);
}

/* A length that is filled in later; returns where it stands. */
static inline size_t put_length(struct buf *b)
{
	put(b, 0, 4);
	return b->size;
}

static inline void end_length(struct buf *b, size_t from)
{
	uint32_t length = (uint32_t)(b->size - from);
	memcpy(b->data + from - 4, &length, 4);
}

/* The image; the bytes are freed. */
static inline struct image *dwarf_image(struct dwarf_bytes *d)
{
	static const char *const names[] = {
		".debug_info",    ".debug_abbrev",      ".debug_line",     ".debug_line_str",
		".debug_str",     ".debug_ranges",      ".debug_rnglists", ".debug_addr",
		".debug_aranges", ".debug_str_offsets",
	};
	static const uint8_t code[CODE_SIZE];
	struct made_section sections[PARTS + 1] = {
		{.name = ".text", .address = CODE, .bytes = code, .size = CODE_SIZE, .code = true}};
	struct image *image;
	size_t count = 1;
	for (int i = 0; i < PARTS; i++)
		if (d->parts[i].size)
			sections[count++] = (struct made_section){.name = names[i],
								  .bytes = d->parts[i].data,
								  .size = d->parts[i].size};
	image = made_image(EM_X86_64, 0, sections, count);
	for (int i = 0; i < PARTS; i++)
		buf_free(&d->parts[i]);
	return image;
}
