/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* ELF files in memory around the bytes of a fuzzer: correct headers, so that what they hold is
   reached. */
#include <assert.h>
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "image/image.h"

#define ELF_CODE 0x1000u
#define ELF_ROOM_START 0x100u /* of code that is only spoken of */
#define ELF_ROOM 0x2000u
#define ELF_PARTS_MAX 16

static inline Elf64_Ehdr elf_header(uint16_t machine)
{
	return (Elf64_Ehdr){
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = machine,
		.e_version = EV_CURRENT,
		.e_entry = ELF_CODE,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_shentsize = sizeof(Elf64_Shdr),
	};
}

/* A file with the code `code` at ELF_CODE, and a function symbol at each of `starts` (offsets in
   it). */
static inline struct image *elf_code(uint16_t machine, const void *code, size_t size,
				     const uint16_t *starts, size_t start_count)
{
	Elf64_Ehdr header = elf_header(machine);
	Elf64_Phdr segment = {
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_offset = ELF_CODE,
		.p_vaddr = ELF_CODE,
		.p_filesz = size,
		.p_memsz = size,
		.p_align = 0x1000,
	};
	static const char names[] = "\0.text\0.symtab\0.strtab";
	size_t symbols_at = ELF_CODE + ((size + 7) & ~(size_t)7);
	size_t symbols_size = (start_count + 1) * sizeof(Elf64_Sym);
	size_t names_at = symbols_at + symbols_size;
	size_t sections_at = (names_at + sizeof names + 7) & ~(size_t)7;
	Elf64_Shdr sections[4] = {
		{0},
		{.sh_name = 1,
		 .sh_type = SHT_PROGBITS,
		 .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		 .sh_addr = ELF_CODE,
		 .sh_offset = ELF_CODE,
		 .sh_size = size},
		{.sh_name = 7,
		 .sh_type = SHT_SYMTAB,
		 .sh_offset = symbols_at,
		 .sh_size = symbols_size,
		 .sh_link = 3,
		 .sh_info = 1,
		 .sh_entsize = sizeof(Elf64_Sym)},
		{.sh_name = 15,
		 .sh_type = SHT_STRTAB,
		 .sh_offset = names_at,
		 .sh_size = sizeof names},
	};
	size_t total = sections_at + sizeof sections;
	uint8_t *bytes = calloc(1, total);
	struct image *image = NULL;
	struct err *e;
	assert(bytes);
	header.e_phoff = sizeof header;
	header.e_phnum = 1;
	header.e_shoff = sections_at;
	header.e_shnum = 4;
	header.e_shstrndx = 3;
	memcpy(bytes, &header, sizeof header);
	memcpy(bytes + sizeof header, &segment, sizeof segment);
	memcpy(bytes + ELF_CODE, code, size);
	for (size_t i = 0; i < start_count; i++) {
		Elf64_Sym symbol = {
			.st_name = 1,
			.st_info = ELF64_ST_INFO(i % 2 ? STB_LOCAL : STB_GLOBAL, STT_FUNC),
			.st_shndx = 1,
			.st_value = ELF_CODE + starts[i],
		};
		memcpy(bytes + symbols_at + (i + 1) * sizeof symbol, &symbol, sizeof symbol);
	}
	memcpy(bytes + names_at, names, sizeof names);
	memcpy(bytes + sections_at, sections, sizeof sections);
	e = image_open_memory(bytes, total, "code", &image);
	assert(!e);
	free(bytes);
	return image;
}

struct elf_part {
	const char *name;
	const uint8_t *bytes;
	size_t size;
};

/* Cuts an input into sections: it begins with the length of each (three bytes, little endian) but
   the last, which takes the rest. False: it is too short. */
static inline bool elf_cut(const uint8_t *data, size_t size, const char *const *names,
			   struct elf_part *parts, size_t count)
{
	size_t at = 3 * (count - 1);
	if (size < at)
		return false;
	for (size_t i = 0; i < count; i++) {
		size_t length = size - at;
		if (i < count - 1) {
			size_t said = data[3 * i] | (size_t)data[3 * i + 1] << 8 |
				      (size_t)data[3 * i + 2] << 16;
			length = said < length ? said : length;
		}
		parts[i] = (struct elf_part){names[i], data + at, length};
		at += length;
	}
	return true;
}

/* The bytes of a file with these sections, none of them in memory, and room for code at
   ELF_ROOM_START; the caller frees them. */
static inline uint8_t *elf_file(const struct elf_part *parts, size_t count, size_t *size)
{
	Elf64_Ehdr header = elf_header(EM_X86_64);
	Elf64_Phdr segment = {.p_type = PT_LOAD,
			      .p_flags = PF_R | PF_X,
			      .p_vaddr = ELF_ROOM_START,
			      .p_memsz = ELF_ROOM};
	Elf64_Shdr sections[ELF_PARTS_MAX + 2] = {0};
	char names[512] = "";
	size_t name = 1, at = sizeof header + sizeof segment;
	uint8_t *bytes;
	assert(count <= ELF_PARTS_MAX);
	*size = at + sizeof names + sizeof sections;
	for (size_t i = 0; i < count; i++)
		*size += parts[i].size;
	bytes = calloc(1, *size);
	assert(bytes);
	for (size_t i = 0; i < count; i++) {
		sections[i + 1] = (Elf64_Shdr){
			.sh_name = (Elf64_Word)name,
			.sh_type = SHT_PROGBITS,
			.sh_offset = at,
			.sh_size = parts[i].size,
		};
		if (parts[i].size)
			memcpy(bytes + at, parts[i].bytes, parts[i].size);
		strcpy(names + name, parts[i].name);
		name += strlen(parts[i].name) + 1;
		at += parts[i].size;
	}
	sections[count + 1] = (Elf64_Shdr){
		.sh_type = SHT_STRTAB, .sh_offset = at, .sh_size = sizeof names};
	memcpy(bytes + at, names, sizeof names);
	at += sizeof names;
	header.e_phoff = sizeof header;
	header.e_phnum = 1;
	header.e_shoff = at;
	header.e_shnum = (Elf64_Half)(count + 2);
	header.e_shstrndx = (Elf64_Half)(count + 1);
	memcpy(bytes, &header, sizeof header);
	memcpy(bytes + sizeof header, &segment, sizeof segment);
	memcpy(bytes + at, sections, (count + 2) * sizeof sections[0]);
	return bytes;
}

static inline struct image *elf_open(const struct elf_part *parts, size_t count, const char *name)
{
	size_t size;
	uint8_t *bytes = elf_file(parts, count, &size);
	struct image *image = NULL;
	struct err *e = image_open_memory(bytes, size, name, &image);
	assert(!e);
	free(bytes);
	return image;
}
