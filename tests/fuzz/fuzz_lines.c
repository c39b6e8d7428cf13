/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Line tables. The input is cut into sections (elf_cut).
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "elf_parts.h"
#include "image/image.h"
#include "image/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {
	".debug_line",   ".debug_line_str", ".debug_info",
	".debug_abbrev", ".debug_str",      ".debug_aranges",
};
#define PARTS (sizeof names / sizeof names[0])

static void ask(struct lines *lines, uint64_t start, uint64_t end)
{
	struct line_row *rows;
	size_t count;
	struct err *e = lines_range(lines, start, end, &rows, &count);
	assert(!e);
	for (size_t i = 0; i < count; i++) {
		const char *file = lines_file(lines, rows[i].file);
		assert(rows[i].address < rows[i].end);
		assert(rows[i].address >= start && rows[i].end <= end);
		assert(i == 0 || rows[i - 1].end <= rows[i].address);
		assert(!rows[i].file == !file);
		assert(!file || strlen(file) < 4096);
	}
	free(rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_part parts[PARTS];
	struct image *image;
	struct lines *lines;
	struct err *e;
	if (!elf_cut(data, size, names, parts, PARTS))
		return 0;
	image = elf_open(parts, PARTS, "parts");
	e = lines_open(image, NULL, &lines);
	assert(!e);
	for (uint64_t address = 0; address < ELF_ROOM_START + ELF_ROOM; address += 211)
		ask(lines, address, address + 17);
	ask(lines, 0, UINT64_MAX);
	assert(!lines_damage(lines) || strlen(lines_damage(lines)) < 1000);
	lines_close(lines);
	image_close(image);
	return 0;
}
