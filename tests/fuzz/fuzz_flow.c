/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machine code, analysed. The first byte says the CPU (bit 0) and how many
 * offsets of procedures follow (the next three bits), two bytes each; the rest
 * is the code.
 */
#include <assert.h>
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "elf_parts.h"
#include "flow/frame.h"
#include "image/image.h"
#include "image/symbols.h"
#include "isa/insn.h"
#include "recipes/analysis.h"
#include "recipes/build.h"
#include "recipes/cfi.h"
#include "recipes/emit.h"
#include "recipes/rows.h"
#include "unwind/cpu.h"
#include "unwind/table.h"

#define CODE_MAX (16u << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_recipe(const struct recipe *r)
{
	assert(r->cfa <= RECIPE_COMPLEX && r->ra <= RECIPE_LOST && r->fp <= RECIPE_LOST &&
	       r->extra <= RECIPE_LOST && r->source <= RECIPE_FROM_SHAPE && !r->reserved);
	assert(r->cfa != RECIPE_REG || r->cfa_reg < CPU_REGISTERS);
}

struct order {
	const struct analysis *analysis;
	uint64_t end;
};

static void check_place(void *context, const struct trace_point *p)
{
	struct order *o = context;
	struct recipe recipe;
	assert(p->address >= o->end && p->length > 0);
	o->end = p->address + p->length;
	if (!p->state)
		return;
	assert(p->length <= 15);
	assert(p->state->slot_count <= FRAME_SLOTS && p->state->other_count <= FRAME_REGS);
	assert(trace_at(o->analysis->trace, p->address) == p->state);
	frame_recipe(o->analysis->isa, p->state, &recipe);
	check_recipe(&recipe);
}

static void check_starts(const struct analysis *a, size_t size)
{
	const uint64_t *starts;
	size_t count = trace_starts(a->trace, &starts);
	for (size_t i = 0; i < count; i++) {
		assert(starts[i] >= ELF_CODE && starts[i] < ELF_CODE + size);
		assert(!i || starts[i - 1] < starts[i]);
	}
}

/* A table says at every address what the rows say. */
static void check_table(const struct rows *rows, uint16_t machine, size_t size)
{
	static const uint8_t key[40];
	struct table table;
	void *bytes;
	size_t table_size;
	struct err *e = recipes_pack(rows, machine, RECIPES_ANALYSIS, key, &bytes, &table_size);
	bool opened;
	assert(!e);
	opened = table_open(&table, bytes, table_size);
	assert(opened);
	for (uint64_t at = ELF_CODE - 8; at < ELF_CODE + size + 8; at++) {
		const struct recipe *found = table_find(&table, at);
		assert(!memcmp(found, &rows->rules[rows_find(rows, at)], sizeof *found));
	}
	free(bytes);
}

/* What is written for debuggers can be read, and only says what the rows say. */
static void check_emitted(struct image *image, const struct analysis *a,
			  const struct symbols *symbols, const struct rows *rows)
{
	struct emit_input input = {.image = image, .rows = rows, .symbols = symbols};
	struct emit_stats stats;
	struct cfi_stats cfi_stats = {0};
	struct image *debug;
	struct buf file = {0};
	struct rows again;
	struct err *e;
	input.start_count = trace_starts(a->trace, &input.starts);
	e = emit_debug_file(&input, &file, &stats);
	assert(!e);
	e = image_open_memory(file.data, file.size, "emitted", &debug);
	assert(!e);
	buf_free(&file);
	rows_init(&again);
	e = cfi_read(image, debug, &again, &cfi_stats);
	assert(!e);
	rows_finish(&again);
	assert(!cfi_stats.bad_entries);
	rows_free(&again);
	image_close(debug);
}

static void analyse(struct image *image, size_t size)
{
	struct symbols *symbols;
	struct analysis analysis;
	struct order order = {.analysis = &analysis};
	struct rows rows;
	struct err *e = symbols_read(image, NULL, &symbols);
	assert(!e);
	e = analysis_run(image, symbols, &analysis);
	assert(!e);
	trace_each(analysis.trace, false, check_place, &order);
	order.end = 0;
	trace_each(analysis.trace, true, check_place, &order);
	check_starts(&analysis, size);
	rows_init(&rows);
	analysis_rows(&analysis, &rows);
	rows_finish(&rows);
	check_table(&rows, image_machine(image), size);
	check_emitted(image, &analysis, symbols, &rows);
	rows_free(&rows);
	analysis_free(&analysis);
	symbols_free(symbols);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint16_t starts[8];
	struct image *image;
	size_t count, head;
	if (!size || size > CODE_MAX)
		return 0;
	count = data[0] >> 1 & 7;
	head = 1 + 2 * count;
	if (head >= size)
		return 0;
	for (size_t i = 0; i < count; i++)
		starts[i] = (uint16_t)((data[1 + 2 * i] | data[2 + 2 * i] << 8) % (size - head));
	image = elf_code(data[0] & 1 ? EM_AARCH64 : EM_X86_64, data + head, size - head, starts,
			 count);
	analyse(image, size - head);
	image_close(image);
	return 0;
}
