/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of sections and segments: read when first asked for, then kept. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "image/inflate.h"
#include "image/internal.h"

static bool is_allowed(struct image *image, uint64_t size)
{
	if (size > image->most)
		atomic_store(&image->exceeded, true);
	return size <= image->most;
}

/* ELF's own compression: a header that says how and how large. */
static uint8_t *decompress_section(struct image *image, const uint8_t *raw, size_t raw_size,
				   size_t *size)
{
	Elf64_Chdr header;
	uint8_t *bytes = NULL;
	if (raw_size < sizeof header)
		return NULL;
	memcpy(&header, raw, sizeof header);
	raw += sizeof header;
	raw_size -= sizeof header;
	if (!is_allowed(image, header.ch_size))
		return NULL;
	if (header.ch_type == ELFCOMPRESS_ZLIB)
		bytes = inflate_zlib(raw, raw_size, header.ch_size);
	else if (header.ch_type == 2) /* ELFCOMPRESS_ZSTD, which older elf.h lack */
		bytes = inflate_zstd(raw, raw_size, header.ch_size);
	if (bytes)
		*size = header.ch_size;
	return bytes;
}

/* .zdebug_*: "ZLIB", the size in big-endian order, the stream. */
static uint8_t *decompress_old(struct image *image, const uint8_t *raw, size_t raw_size,
			       size_t *size)
{
	uint64_t out_size = 0;
	uint8_t *bytes;
	if (raw_size < 12 || memcmp(raw, "ZLIB", 4) != 0)
		return NULL;
	for (int i = 4; i < 12; i++)
		out_size = out_size << 8 | raw[i];
	bytes = is_allowed(image, out_size) ? inflate_zlib(raw + 12, raw_size - 12, out_size)
					    : NULL;
	if (bytes)
		*size = out_size;
	return bytes;
}

/* The caller holds the lock. */
static uint8_t *copy_locked(struct image *image, const struct image_section *s, size_t *size)
{
	uint8_t *raw, *bytes;
	size_t raw_size;
	bool old = strncmp(s->name, ".zdebug_", 8) == 0;
	*size = 0;
	if (s->type == SHT_NOBITS || s->type == SHT_NULL || s->size == 0)
		return NULL;
	raw = image_read_copy(image, s->offset, s->size, &raw_size);
	if (raw_size < s->size)
		image_note_damage(image, "section %s lies past the end of the file", s->name);
	if (!raw || (!old && !(s->flags & SHF_COMPRESSED))) {
		*size = raw_size;
		return raw;
	}
	if (s->flags & SHF_COMPRESSED)
		bytes = decompress_section(image, raw, raw_size, size);
	else
		bytes = decompress_old(image, raw, raw_size, size);
	free(raw);
	if (!bytes)
		image_note_damage(image, "section %s cannot be decompressed", s->name);
	return bytes;
}

uint8_t *image_section_copy(struct image *image, const struct image_section *section, size_t *size)
{
	uint8_t *bytes;
	pthread_mutex_lock(&image->lock);
	bytes = copy_locked(image, section, size);
	pthread_mutex_unlock(&image->lock);
	return bytes;
}

const uint8_t *image_section_bytes(struct image *image, const struct image_section *section,
				   size_t *size)
{
	struct contents *c = &image->section_contents[section - image->sections];
	if (!atomic_load_explicit(&c->ready, memory_order_acquire)) {
		pthread_mutex_lock(&image->lock);
		if (!atomic_load_explicit(&c->ready, memory_order_relaxed)) {
			c->owned = copy_locked(image, section, &c->size);
			c->bytes = c->owned;
			atomic_store_explicit(&c->ready, true, memory_order_release);
		}
		pthread_mutex_unlock(&image->lock);
	}
	*size = c->size;
	return c->bytes;
}

/* The last segment that starts at or before `address`; segments do not overlap. */
static struct image_segment *segment_at(struct image *image, uint64_t address)
{
	size_t after = FIRST_NOT(i, image->segment_count, image->segments[i].address <= address);
	return after ? &image->segments[after - 1] : NULL;
}

static void load_segment(struct image *image, const struct image_segment *s, struct contents *c)
{
	if (image->memory) {
		c->bytes = image->memory + s->offset;
		c->size = s->file_size;
	} else {
		c->owned = image_read_copy(image, s->offset, s->file_size, &c->size);
		c->bytes = c->owned;
	}
	if (c->size < s->file_size)
		image_note_damage(image, "the segment at %#llx cannot be read whole",
				  (unsigned long long)s->address);
}

const uint8_t *image_bytes_at(struct image *image, uint64_t address, size_t *size)
{
	struct image_segment *s = segment_at(image, address);
	struct contents *c;
	*size = 0;
	if (!s || address - s->address >= s->file_size)
		return NULL;
	c = &image->segment_contents[s - image->segments];
	if (!atomic_load_explicit(&c->ready, memory_order_acquire)) {
		pthread_mutex_lock(&image->lock);
		if (!atomic_load_explicit(&c->ready, memory_order_relaxed)) {
			load_segment(image, s, c);
			atomic_store_explicit(&c->ready, true, memory_order_release);
		}
		pthread_mutex_unlock(&image->lock);
	}
	if (address - s->address >= c->size)
		return NULL;
	*size = c->size - (address - s->address);
	return c->bytes + (address - s->address);
}
