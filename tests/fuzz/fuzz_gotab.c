/* SPDX-License-Identifier: Apache-2.0 */
/* Go's own table. The input is the table, and code beside it; the rest of the file is sound. */
#include <assert.h>
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "image/gotab.h"
#include "image/image.h"
#include "image/inlines.h"
#include "image/lines.h"
#include "image/symbols.h"
#include "recipes/rows.h"
#include "recipes/shapes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CODE 0x1000u
#define CODE_SIZE 0x1000u
#define TABLE 0x4000u
#define TABLE_MAX 0x10000u

static Elf64_Phdr segment(uint32_t flags, uint64_t address, size_t size)
{
	return (Elf64_Phdr){.p_type = PT_LOAD,
			    .p_flags = PF_R | flags,
			    .p_offset = address,
			    .p_vaddr = address,
			    .p_filesz = size,
			    .p_memsz = size};
}

/* Its first byte says for which CPU, the next ones are the table. Code is the table's bytes again. */
static struct image *open_image(const uint8_t *data, size_t size)
{
	const Elf64_Phdr segments[] = {segment(PF_X, CODE, CODE_SIZE), segment(PF_W, TABLE, size)};
	const Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = data[0] & 1 ? EM_AARCH64 : EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
	};
	uint8_t *bytes = calloc(1, TABLE + size);
	struct image *image = NULL;
	assert(bytes);
	memcpy(bytes, &header, sizeof header);
	memcpy(bytes + sizeof header, segments, sizeof segments);
	memcpy(bytes + CODE, data + 1, size - 1 < CODE_SIZE ? size - 1 : CODE_SIZE);
	memcpy(bytes + TABLE, data + 1, size - 1);
	err_free(image_open_memory(bytes, TABLE + size, "go", &image));
	free(bytes);
	return image;
}

static void ask_lines(struct image *image)
{
	struct lines *lines;
	struct inlines *inlines;
	struct line_row *rows;
	size_t count;
	assert(!lines_open(image, NULL, &lines));
	assert(!inlines_open(image, NULL, lines, &inlines));
	assert(!lines_range(lines, CODE, CODE + CODE_SIZE, &rows, &count));
	for (size_t i = 0; i < count; i++) {
		assert(rows[i].address < rows[i].end && rows[i].end <= CODE + CODE_SIZE);
		assert(!rows[i].file || lines_file(lines, rows[i].file));
	}
	free(rows);
	for (uint64_t at = CODE; at < CODE + CODE_SIZE; at += 61) {
		struct inline_procedure p;
		bool found;
		assert(!inlines_find(inlines, at, &p, &found));
		for (size_t i = 1; found && i < p.scope_count; i++)
			assert(p.scopes[i].parent < i);
		inline_procedure_free(&p);
	}
	inlines_close(inlines);
	lines_close(lines);
}

static void ask_table(struct image *image)
{
	struct gotab *t = gotab_open(image);
	struct gotab_function f;
	for (size_t i = 0; t && i < gotab_count(t); i++) {
		if (!gotab_function(t, i, &f))
			continue;
		assert(f.start <= f.end && strlen(f.name) < 65536);
		for (int what = GOTAB_SP; what <= GOTAB_INLINE; what++) {
			struct gotab_values v = {
				.table = t, .index = i, .what = (enum gotab_what)what};
			while (gotab_next(&v))
				assert(v.start < v.end && v.end <= f.end);
		}
	}
	gotab_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbols *symbols;
	struct rows rows;
	if (size < 2 || size > TABLE_MAX)
		return 0;
	struct image *image = open_image(data, size);
	if (!image)
		return 0;
	ask_table(image);
	ask_lines(image);
	assert(!symbols_read(image, NULL, &symbols));
	symbols_free(symbols);
	rows_init(&rows);
	shapes_add(image, &rows);
	rows_finish(&rows);
	rows_free(&rows);
	image_close(image);
	return 0;
}
