/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug information. The input is cut into sections (elf_cut).
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "elf_parts.h"
#include "image/image.h"
#include "image/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {
	".debug_info",        ".debug_abbrev", ".debug_line",   ".debug_line_str", ".debug_str",
	".debug_str_offsets", ".debug_addr",   ".debug_ranges", ".debug_rnglists",
};
#define PARTS (sizeof names / sizeof names[0])

static void ask(struct source *source, uint64_t address)
{
	struct source_place places[16];
	size_t count = source_places(source, address, places, 16);
	assert(count <= 16);
	for (size_t i = 0; i < count; i++) {
		assert(!places[i].function || strlen(places[i].function) < 1u << 24);
		assert(!places[i].file || strlen(places[i].file) < 1u << 24);
		assert(places[i].line >= 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_part parts[PARTS];
	struct image *image;
	struct source *source;
	struct err *e;
	if (!elf_cut(data, size, names, parts, PARTS))
		return 0;
	image = elf_open(parts, PARTS, "parts");
	e = source_open(image, NULL, &source);
	if (e) {
		err_free(e);
	} else {
		for (uint64_t address = 0; address < ELF_ROOM_START + ELF_ROOM; address += 11)
			ask(source, address);
		ask(source, UINT64_MAX);
		source_close(source);
	}
	image_close(image);
	return 0;
}
