/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* An image of nothing but code, without sections: what a test puts into it is all there is. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "image/image.h"
#include "unit.h"

#define BARE_START 0x1000u

/* Its code is `code`, at BARE_START, and room after it up to `room` bytes. */
static inline struct image *bare_image(uint16_t machine, const void *code, size_t size, size_t room)
{
	Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = machine,
		.e_version = EV_CURRENT,
		.e_entry = BARE_START,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
	};
	Elf64_Phdr segment = {
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_offset = BARE_START,
		.p_vaddr = BARE_START,
		.p_paddr = BARE_START,
		.p_filesz = size,
		.p_memsz = room > size ? room : size,
		.p_align = 0x1000,
	};
	uint8_t *bytes = calloc(1, BARE_START + size);
	struct image *image;
	struct err *e;
	assert_non_null(bytes);
	memcpy(bytes, &header, sizeof header);
	memcpy(bytes + sizeof header, &segment, sizeof segment);
	if (size)
		memcpy(bytes + BARE_START, code, size);
	e = image_open_memory(bytes, BARE_START + size, "bare", &image);
	free(bytes);
	if (e)
		fail_msg("%s", err_text(e));
	return image;
}
