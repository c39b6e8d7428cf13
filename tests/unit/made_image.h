/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* An image made of the sections that a test lists, each with its contents at its own address. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "image/image.h"
#include "unit.h"

struct made_section {
	const char *name;
	uint64_t address; /* 0: not loaded */
	const void *bytes;
	size_t size;
	uint32_t type; /* 0: SHT_PROGBITS */
	uint32_t link; /* 1: the first section of the list */
	bool code;
};

#define MADE_MAX 12

struct made_file {
	Elf64_Ehdr header;
	Elf64_Phdr segments[MADE_MAX];
	Elf64_Shdr sections[MADE_MAX + 2]; /* none, the listed ones, their names */
	char names[256];
};

static inline size_t made_name(struct made_file *f, size_t *used, const char *name)
{
	size_t at = *used;
	assert_true(at + strlen(name) < sizeof f->names);
	strcpy(f->names + at, name);
	*used = at + strlen(name) + 1;
	return at;
}

static inline void made_add(struct made_file *f, const struct made_section *s, size_t index,
			    size_t name, size_t offset)
{
	Elf64_Xword flags = (s->address ? SHF_ALLOC : 0) | (s->code ? SHF_EXECINSTR : 0);
	f->sections[index] = (Elf64_Shdr){
		.sh_name = (Elf64_Word)name,
		.sh_type = s->type ? s->type : SHT_PROGBITS,
		.sh_flags = flags,
		.sh_addr = s->address,
		.sh_offset = offset,
		.sh_size = s->size,
		.sh_link = s->link,
		.sh_entsize = s->type == SHT_SYMTAB || s->type == SHT_DYNSYM ? sizeof(Elf64_Sym)
			      : s->type == SHT_RELA                          ? sizeof(Elf64_Rela)
									     : 0,
	};
	if (s->address)
		f->segments[f->header.e_phnum++] = (Elf64_Phdr){
			.p_type = PT_LOAD,
			.p_flags = PF_R | (s->code ? PF_X : 0),
			.p_offset = offset,
			.p_vaddr = s->address,
			.p_filesz = s->size,
			.p_memsz = s->size,
			.p_align = 1,
		};
}

/* `entry` may be 0: none. */
static inline struct image *made_image(uint16_t machine, uint64_t entry,
				       const struct made_section *sections, size_t count)
{
	struct made_file f = {.header = {
				      .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
						  ELFDATA2LSB, EV_CURRENT},
				      .e_type = ET_DYN,
				      .e_machine = machine,
				      .e_version = EV_CURRENT,
				      .e_entry = entry,
				      .e_phoff = offsetof(struct made_file, segments),
				      .e_shoff = offsetof(struct made_file, sections),
				      .e_ehsize = sizeof(Elf64_Ehdr),
				      .e_phentsize = sizeof(Elf64_Phdr),
				      .e_shentsize = sizeof(Elf64_Shdr),
				      .e_shnum = (Elf64_Half)(count + 2),
				      .e_shstrndx = (Elf64_Half)(count + 1),
			      }};
	size_t used = 1, size = sizeof f;
	struct image *image;
	struct err *e;
	assert_true(count <= MADE_MAX);
	for (size_t i = 0; i < count; i++) {
		made_add(&f, &sections[i], i + 1, made_name(&f, &used, sections[i].name), size);
		size += sections[i].size;
	}
	f.sections[count + 1] = (Elf64_Shdr){
		.sh_name = (Elf64_Word)made_name(&f, &used, ".shstrtab"),
		.sh_type = SHT_STRTAB,
		.sh_offset = offsetof(struct made_file, names),
		.sh_size = sizeof f.names,
	};
	uint8_t *bytes = malloc(size);
	assert_non_null(bytes);
	memcpy(bytes, &f, sizeof f);
	for (size_t i = 0, at = sizeof f; i < count; at += sections[i++].size)
		if (sections[i].size)
			memcpy(bytes + at, sections[i].bytes, sections[i].size);
	e = image_open_memory(bytes, size, "made", &image);
	free(bytes);
	if (e)
		fail_msg("%s", err_text(e));
	assert_null(image_damage(image));
	return image;
}
