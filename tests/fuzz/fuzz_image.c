/* SPDX-License-Identifier: Apache-2.0 */
/* A whole ELF file: everything that is read from one without following its code. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "flow/survey.h"
#include "image/debug.h"
#include "image/image.h"
#include "image/relocs.h"
#include "image/symbols.h"
#include "isa/insn.h"
#include "recipes/cfi.h"
#include "recipes/rows.h"
#include "recipes/shapes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every byte that is handed out must be there: the sanitizer looks at the two ends. */
static void touch(const uint8_t *bytes, size_t size)
{
	volatile uint8_t first, last;
	assert(bytes || !size);
	if (!size)
		return;
	first = bytes[0];
	last = bytes[size - 1];
	(void)first;
	(void)last;
}

static void read_contents(struct image *image)
{
	const struct image_segment *segments;
	const struct image_section *sections;
	size_t count = image_segments(image, &segments), size;
	const uint8_t *bytes;
	char hex[2 * BUILD_ID_MAX + 1];
	for (size_t i = 0; i < count; i++) {
		assert(segments[i].address + segments[i].size >= segments[i].address);
		bytes = image_bytes_at(image, segments[i].address, &size);
		touch(bytes, size);
		bytes = image_bytes_at(image, segments[i].address + segments[i].size / 2, &size);
		touch(bytes, size);
	}
	count = image_sections(image, &sections);
	for (size_t i = 0; i < count; i++) {
		bytes = image_section_bytes(image, &sections[i], &size);
		touch(bytes, size);
		image_section(image, sections[i].name);
	}
	assert(image_build_id(image, &bytes) <= BUILD_ID_MAX);
	image_build_id_hex(image, hex);
	assert(strlen(hex) <= 2 * BUILD_ID_MAX);
	assert(!image_damage(image) || !strchr(image_damage(image), '\n'));
	image_entry(image);
	image_type(image);
}

static void check_symbols(struct symbols *symbols)
{
	const struct symbol *all;
	size_t count = symbols_all(symbols, &all);
	for (size_t i = 0; i < count; i++) {
		assert(!i || all[i - 1].address < all[i].address);
		assert(strlen(all[i].name) < 1u << 20);
		assert(symbols_find(symbols, all[i].address));
	}
	symbols_find(symbols, 0);
	symbols_find(symbols, UINT64_MAX);
}

/* Near every third one, and between them. */
static void read_near(struct image *image, const struct symbols *symbols)
{
	enum { SOME = 64 };
	uint64_t addresses[SOME] = {0};
	const struct symbol *all;
	size_t count = symbols_all(symbols, &all), used = 0;
	struct symbols *few;
	for (size_t i = 0; i < count && used < SOME; i += 3)
		addresses[used++] = all[i].address + i % 2;
	if (!symbols_read_near(image, image, addresses, used, &few)) {
		check_symbols(few);
		symbols_free(few);
	}
}

static void read_names(struct image *image)
{
	struct symbols *symbols;
	struct reloc *relocs;
	size_t count;
	if (!symbols_read_dynamic(image, &symbols)) {
		check_symbols(symbols);
		symbols_free(symbols);
	}
	if (!relocs_read(image, &relocs, &count)) {
		for (size_t i = 0; i < count; i++)
			assert(!relocs[i].symbol || strlen(relocs[i].symbol) < 1u << 20);
		free(relocs);
	}
}

static void read_unwinding(struct image *image)
{
	struct cfi_stats stats = {0};
	struct cfi_landing *landings;
	struct cfi_range *ranges;
	struct rows rows;
	size_t count;
	if (!cfi_ranges(image, image, &ranges, &count)) {
		for (size_t i = 0; i < count; i++)
			assert(ranges[i].start < ranges[i].end);
		free(ranges);
	}
	if (!cfi_landings(image, &landings, &count)) {
		for (size_t i = 0; i < count; i++)
			assert(!i || landings[i - 1].start <= landings[i].start);
		free(landings);
	}
	rows_init(&rows);
	shapes_add(image, &rows);
	err_free(cfi_read(image, image, &rows, &stats));
	rows_finish(&rows);
	rows_free(&rows);
}

static void take_survey(struct image *image)
{
	const struct isa *isa = isa_for_machine(image_machine(image));
	struct symbols *symbols;
	struct survey survey;
	if (symbols_read(image, image, &symbols))
		return;
	check_symbols(symbols);
	read_near(image, symbols);
	if (!survey_take(image, isa, symbols, &survey)) {
		for (size_t i = 1; i < survey.entry_count; i++)
			assert(survey.entries[i - 1] < survey.entries[i]);
		for (size_t i = 1; i < survey.hint_count; i++)
			assert(survey.hints[i - 1] < survey.hints[i]);
		survey_free(&survey);
	}
	symbols_free(symbols);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image *image, *debug;
	struct err *e;
	setenv("CULPRIT_DEBUG_ROOT", "/nonexistent", 1);
	e = image_open_memory(data, size, "/nonexistent/image", &image);
	if (e) {
		assert(err_text(e)[0] && !strchr(err_text(e), '\n'));
		err_free(e);
		return 0;
	}
	read_contents(image);
	read_names(image);
	read_unwinding(image);
	take_survey(image);
	e = debug_find(image, false, &debug);
	assert(!e && !debug);
	image_close(image);
	return 0;
}
