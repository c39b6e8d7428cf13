/* SPDX-License-Identifier: Apache-2.0 */
#include "image/dwarf_file.h"

#include <elf.h>
#include <libelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "image/image.h"
#include "image/internal.h"

/* What is needed to find functions, inlining and lines; not locations, macros, indices. */
enum { INFO, ABBREV, LINE, LINE_STR, STR };
static const char *const needed[] = {
	".debug_info",        ".debug_abbrev", ".debug_line",   ".debug_line_str", ".debug_str",
	".debug_str_offsets", ".debug_addr",   ".debug_ranges", ".debug_rnglists",
};
#define NEEDED (sizeof(needed) / sizeof(needed[0]))
#define SECTIONS (NEEDED + 2) /* and number 0 and the names */
#define NAMES_ROOM 256

struct part {
	uint8_t *bytes;
	size_t size;
};

static struct dwarf_part view(const struct part *part)
{
	return (struct dwarf_part){part->bytes, part->size};
}

/* The space for a section: aligned, with a zero behind it, since libdw may hand out a string
   that lacks its own. */
static size_t room_for(size_t n)
{
	return (n + 8) & ~(size_t)7;
}

/* Lays out the file: ELF header, section headers, names, contents. */
static void write_headers(uint8_t *out, const struct part *parts, uint16_t machine)
{
	Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = machine,
		.e_version = EV_CURRENT,
		.e_shoff = sizeof(Elf64_Ehdr),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = SECTIONS,
		.e_shstrndx = SECTIONS - 1,
	};
	Elf64_Shdr sections[SECTIONS] = {0};
	size_t names_at = sizeof(header) + sizeof(sections), name = 1;
	size_t at = names_at + NAMES_ROOM;

	for (size_t i = 0; i < NEEDED; i++) {
		sections[i + 1] = (Elf64_Shdr){
			.sh_name = (Elf64_Word)name,
			.sh_type = parts[i].bytes ? SHT_PROGBITS : SHT_NULL,
			.sh_offset = at,
			.sh_size = parts[i].size,
			.sh_addralign = 1,
		};
		strcpy((char *)out + names_at + name, needed[i]);
		name += strlen(needed[i]) + 1;
		at += room_for(parts[i].size);
	}
	sections[SECTIONS - 1] = (Elf64_Shdr){
		.sh_name = (Elf64_Word)name,
		.sh_type = SHT_STRTAB,
		.sh_offset = names_at,
		.sh_size = NAMES_ROOM,
		.sh_addralign = 1,
	};
	strcpy((char *)out + names_at + name, ".shstrtab");
	memcpy(out, &header, sizeof(header));
	memcpy(out + sizeof(header), sections, sizeof(sections));
}

static uint8_t *assemble(struct part *parts, uint16_t machine, size_t *size)
{
	size_t at = sizeof(Elf64_Ehdr) + SECTIONS * sizeof(Elf64_Shdr) + NAMES_ROOM;
	uint8_t *out;

	*size = at;
	for (size_t i = 0; i < NEEDED; i++)
		*size += room_for(parts[i].size);
	out = calloc(1, *size);
	if (!out)
		return NULL;
	write_headers(out, parts, machine);
	for (size_t i = 0; i < NEEDED; i++) {
		if (parts[i].bytes) {
			memcpy(out + at, parts[i].bytes, parts[i].size);
			free(parts[i].bytes); /* at once: two copies of all would be gigabytes */
			parts[i].bytes = out + at;
		}
		at += room_for(parts[i].size);
	}
	return out;
}

/* The made-up ELF file with the debug sections of `image`, or NULL where it has no DWARF. */
static uint8_t *extract(struct image *image, size_t *size, struct dwarf_line_parts *lines)
{
	struct part parts[NEEDED] = {0};
	uint8_t *out = NULL;

	for (size_t i = 0; i < NEEDED; i++) {
		const struct image_section *s = image_section(image, needed[i]);

		if (s)
			parts[i].bytes = image_section_copy(image, s, &parts[i].size);
		if (i == INFO && !parts[i].bytes)
			break;
	}
	if (parts[INFO].bytes && dwarf_bounds_abbrevs(view(&parts[INFO]), view(&parts[ABBREV])))
		out = assemble(parts, image_machine(image), size);
	if (out)
		*lines = (struct dwarf_line_parts){view(&parts[LINE]), view(&parts[LINE_STR]),
						   view(&parts[STR])};
	else
		for (size_t i = 0; i < NEEDED; i++)
			free(parts[i].bytes);
	return out;
}

static Dwarf *begin(struct image *image, Elf **elf, uint8_t **bytes, struct dwarf_line_parts *lines)
{
	size_t size;

	elf_version(EV_CURRENT);
	*bytes = extract(image, &size, lines);
	*elf = *bytes ? elf_memory((char *)*bytes, size) : NULL;
	return *elf ? dwarf_begin_elf(*elf, DWARF_C_READ, NULL) : NULL;
}

/* The path in .gnu_debugaltlink, as seen from the image's own place. */
static bool shared_path(struct image *image, char *path, size_t room, const uint8_t **id,
			size_t *id_size)
{
	const struct image_section *section = image_section(image, ".gnu_debugaltlink");
	const uint8_t *bytes;
	char own[PATH_MAX];
	size_t size, length;
	char *slash;

	bytes = section ? image_section_bytes(image, section, &size) : NULL;
	if (!bytes)
		return false;
	length = strnlen((const char *)bytes, size);
	if (length == 0 || length == size)
		return false;
	*id = bytes + length + 1;
	*id_size = size - length - 1;
	if (bytes[0] == '/')
		return snprintf(path, room, "%s", (const char *)bytes) < (int)room;
	if (!realpath(image_path(image), own))
		return false;
	slash = strrchr(own, '/');
	*slash = 0;
	return snprintf(path, room, "%s/%s", own, (const char *)bytes) < (int)room;
}

static void open_shared(struct dwarf_file *file, struct image *image)
{
	char path[PATH_MAX];
	const uint8_t *wanted, *id;
	struct dwarf_line_parts unused;
	size_t wanted_size;
	struct image *other;
	struct err *e;

	if (!shared_path(image, path, sizeof(path), &wanted, &wanted_size))
		return;
	e = image_open_shared_debug(path, &other);
	if (e) {
		err_free(e);
		return;
	}
	if (image_build_id(other, &id) == wanted_size && memcmp(id, wanted, wanted_size) == 0)
		file->shared = begin(other, &file->shared_elf, &file->shared_bytes, &unused);
	image_close(other);
	if (file->shared)
		dwarf_setalt(file->dwarf, file->shared);
}

void dwarf_file_open(struct dwarf_file *file, struct image *image)
{
	memset(file, 0, sizeof(*file));
	file->dwarf = begin(image, &file->elf, &file->bytes, &file->lines);
	if (file->dwarf)
		open_shared(file, image);
}

void dwarf_file_close(struct dwarf_file *file)
{
	if (file->dwarf)
		dwarf_end(file->dwarf);
	if (file->elf)
		elf_end(file->elf);
	free(file->bytes);
	if (file->shared)
		dwarf_end(file->shared);
	if (file->shared_elf)
		elf_end(file->shared_elf);
	free(file->shared_bytes);
}
