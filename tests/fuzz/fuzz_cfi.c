/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind sections of all kinds. The first byte of the input says which: bit 0
 * the CPU, the next two .eh_frame, .debug_frame, .sframe or an exception table.
 */
#include <assert.h>
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include "image/image.h"
#include "isa/insn.h"
#include "recipes/cfi.h"
#include "recipes/cfi_section.h"
#include "recipes/landings.h"
#include "recipes/sframe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct image_segment code = {.address = 0x1000, .size = 0x100000, .executable = true};

static void check_rows(struct rows *rows)
{
	rows_finish(rows);
	for (size_t i = 0; i < rows->count; i++) {
		assert(rows->rows[i].rule < rows->rule_count);
		assert(!i || rows->rows[i - 1].address < rows->rows[i].address);
		assert(!i || rows->rows[i - 1].rule != rows->rows[i].rule);
	}
	assert(!rows->count || rows->rows[rows->count - 1].rule == 0);
}

static void read_landings(const uint8_t *data, size_t size)
{
	struct landings landings = {.segments = &code, .segment_count = 1, .sites_left = 1000};
	struct cfi_entry entry = {.start = 0x1000, .end = 0x9000, .lsda = 0x20000};
	landings_read_table(&landings, &entry, data, size);
	landings_sort(&landings);
	for (size_t i = 0; i < landings.count; i++)
		assert(landings.items[i].start < landings.items[i].end);
	free(landings.items);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cfi_section section = {
		.address = 0x20000, .text_base = 0x1000, .data_base = 0x30000, .budget = 20000};
	struct cfi_stats stats = {0};
	struct rows rows;
	uint8_t kind;
	if (!size)
		return 0;
	kind = data[0] >> 1 & 3;
	section.isa = isa_for_machine(data[0] & 1 ? EM_AARCH64 : EM_X86_64);
	section.bytes = data + 1;
	section.size = size - 1;
	section.is_eh = kind == 0;
	if (data[0] & 0x80) {
		section.segments = &code;
		section.segment_count = 1;
	}
	if (kind == 3) {
		read_landings(section.bytes, section.size);
		return 0;
	}
	rows_init(&rows);
	if (kind == 2)
		sframe_read_section(&section, &rows, &stats);
	else
		cfi_read_section(&section, &rows, &stats);
	check_rows(&rows);
	rows_free(&rows);
	return 0;
}
