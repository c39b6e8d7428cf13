/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sections of an image without section headers (removed, cut off, or a vDSO
 * copied from memory), as far as the loader's own tables give them away:
 *
 *     PT_GNU_EH_FRAME -> .eh_frame_hdr -> its eh_frame_ptr -> .eh_frame
 *     PT_DYNAMIC      -> .dynamic -> DT_SYMTAB, DT_STRTAB  -> .dynsym, .dynstr
 *
 * The number of dynamic symbols stands nowhere; the hash tables imply it.
 */
#include <stdlib.h>
#include <string.h>

#include "image/internal.h"

enum { NONE, HDR, FRAMES, DYNAMIC, SYMBOLS, STRINGS, SECTION_COUNT };

struct dynamic {
	uint64_t symbols, strings, strings_size, hash, gnu_hash;
};

/* The offset in the file of `address`, or false; *room: what the segment has from there. */
static bool address_offset(const struct image *image, uint64_t address, uint64_t *offset,
			   uint64_t *room)
{
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct image_segment *s = &image->segments[i];
		if (address < s->address || address - s->address >= s->file_size)
			continue;
		*offset = s->offset + (address - s->address);
		*room = s->file_size - (address - s->address);
		return true;
	}
	return false;
}

static void add(struct image *image, unsigned int index, const char *name, uint32_t type,
		uint64_t address, uint64_t size)
{
	uint64_t offset, room;
	if (!address_offset(image, address, &offset, &room))
		return;
	image->sections[index] = (struct image_section){
		.name = name,
		.address = address,
		.offset = offset,
		.size = size < room ? size : room,
		.flags = SHF_ALLOC,
		.type = type,
	};
}

static uint64_t load(const uint8_t *bytes, size_t size)
{
	uint64_t value = 0;
	memcpy(&value, bytes, size);
	return value;
}

/* The eh_frame_ptr of an .eh_frame_hdr at `address`: false where it has no plain encoding. */
static bool frames_address(const uint8_t *header, size_t size, uint64_t address, uint64_t *out)
{
	uint8_t encoding;
	if (size < 12 || header[0] != 1)
		return false;
	encoding = header[1];
	switch (encoding & 0x0f) {
	case 0x00: /* absptr */
	case 0x04: /* udata8 */
	case 0x0c: /* sdata8 */
		*out = load(header + 4, 8);
		break;
	case 0x03: /* udata4 */
		*out = load(header + 4, 4);
		break;
	case 0x0b: /* sdata4 */
		*out = (uint64_t)(int64_t)(int32_t)load(header + 4, 4);
		break;
	default:
		return false;
	}
	if ((encoding & 0x70) == 0x10) /* relative to itself */
		*out += address + 4;
	else if ((encoding & 0x70) == 0x30) /* relative to the header */
		*out += address;
	return true;
}

static void add_frames(struct image *image, const Elf64_Phdr *p)
{
	uint64_t address;
	uint8_t header[12];
	if (p->p_filesz < sizeof header ||
	    image_read(image, p->p_offset, header, sizeof header) != sizeof header)
		return;
	add(image, HDR, ".eh_frame_hdr", SHT_PROGBITS, p->p_vaddr, p->p_filesz);
	if (image->sections[HDR].size &&
	    frames_address(header, sizeof header, p->p_vaddr, &address))
		add(image, FRAMES, ".eh_frame", SHT_PROGBITS, address, UINT64_MAX);
}

static struct dynamic read_dynamic(struct image *image, uint64_t address, uint64_t size)
{
	struct dynamic found = {0};
	size_t room;
	const uint8_t *bytes = image_bytes_at(image, address, &room);
	if (room > size)
		room = size;
	for (size_t at = 0; bytes && room - at >= sizeof(Elf64_Dyn); at += sizeof(Elf64_Dyn)) {
		Elf64_Dyn d;
		memcpy(&d, bytes + at, sizeof d);
		if (d.d_tag == DT_NULL)
			break;
		else if (d.d_tag == DT_SYMTAB)
			found.symbols = d.d_un.d_ptr;
		else if (d.d_tag == DT_STRTAB)
			found.strings = d.d_un.d_ptr;
		else if (d.d_tag == DT_STRSZ)
			found.strings_size = d.d_un.d_val;
		else if (d.d_tag == DT_HASH)
			found.hash = d.d_un.d_ptr;
		else if (d.d_tag == DT_GNU_HASH)
			found.gnu_hash = d.d_un.d_ptr;
	}
	return found;
}

/* Symbols counted by DT_GNU_HASH: the last one of the chain of the highest bucket. */
static uint64_t count_by_gnu_hash(struct image *image, uint64_t address)
{
	size_t size;
	const uint8_t *table = image_bytes_at(image, address, &size);
	uint64_t buckets, first, highest = 0, at;
	if (!table || size < 16)
		return 0;
	buckets = load(table, 4);
	first = load(table + 4, 4);
	at = 16 + 8 * load(table + 8, 4);
	if (at + 4 * buckets > size)
		return 0;
	for (uint64_t i = 0; i < buckets; i++) {
		uint64_t symbol = load(table + at + 4 * i, 4);
		highest = symbol > highest ? symbol : highest;
	}
	if (highest < first || highest == 0)
		return first;
	at += 4 * buckets + 4 * (highest - first);
	for (; at + 4 <= size; at += 4, highest++)
		if (load(table + at, 4) & 1)
			return highest + 1;
	return 0;
}

static uint64_t count_symbols(struct image *image, const struct dynamic *d)
{
	size_t size;
	const uint8_t *table = d->hash ? image_bytes_at(image, d->hash, &size) : NULL;
	if (table && size >= 8)
		return load(table + 4, 4);
	return d->gnu_hash ? count_by_gnu_hash(image, d->gnu_hash) : 0;
}

static void add_dynamic(struct image *image, const Elf64_Phdr *p)
{
	struct dynamic d;
	uint64_t count;
	add(image, DYNAMIC, ".dynamic", SHT_DYNAMIC, p->p_vaddr, p->p_filesz);
	image->sections[DYNAMIC].entry_size = sizeof(Elf64_Dyn);
	image->sections[DYNAMIC].link = STRINGS;
	d = read_dynamic(image, p->p_vaddr, p->p_filesz);
	count = count_symbols(image, &d);
	if (count == 0 || d.symbols == 0 || d.strings == 0)
		return;
	add(image, STRINGS, ".dynstr", SHT_STRTAB, d.strings, d.strings_size);
	add(image, SYMBOLS, ".dynsym", SHT_DYNSYM, d.symbols, count * sizeof(Elf64_Sym));
	image->sections[SYMBOLS].entry_size = sizeof(Elf64_Sym);
	image->sections[SYMBOLS].link = STRINGS;
}

bool image_synthesize_sections(struct image *image)
{
	bool seen_frames = false, seen_dynamic = false;
	free(image->sections);
	free(image->section_contents);
	image->sections = calloc(SECTION_COUNT, sizeof *image->sections);
	image->section_contents = calloc(SECTION_COUNT, sizeof *image->section_contents);
	if (!image->sections || !image->section_contents)
		return false;
	image->section_count = SECTION_COUNT;
	for (size_t i = 0; i < SECTION_COUNT; i++)
		image->sections[i].name = "";
	for (size_t i = 0; i < image->program_header_count; i++) {
		const Elf64_Phdr *p = &image->program_headers[i];
		/* The first of each counts: a million of them must not cost a million walks. */
		if (p->p_type == PT_GNU_EH_FRAME && !seen_frames) {
			seen_frames = true;
			add_frames(image, p);
		} else if (p->p_type == PT_DYNAMIC && !seen_dynamic) {
			seen_dynamic = true;
			add_dynamic(image, p);
		}
	}
	return true;
}
