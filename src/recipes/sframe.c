/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A header, an index with one entry per procedure (FDE), and rows (FREs):
 *
 *     header   magic, version, flags, ABI, fixed offsets, counts, where the parts begin
 *     FDEs     start (relative), size, offset of its first row, number of rows, kinds
 *     FREs     start within the procedure, what the CFA counts from, 1 to 3 offsets:
 *              of the CFA, of the return address (unless it is fixed), of FP
 *
 * The number of rows in the header bounds the work: entries may share rows, and
 * a made-up file could otherwise have each of its entries read them all.
 */
#include "recipes/sframe.h"
#include <elf.h>
#include "isa/insn.h"
#include "recipes/cfi_stats.h"
#include "recipes/cfi_section.h"

#define SFRAME_MAGIC 0xdee2
#define HEADER_SIZE 28
#define ABI_AARCH64_LITTLE 2
#define ABI_X86_64_LITTLE 3
#define FLAG_START_PCREL 0x4
#define ROW_SIZE_MIN 3    /* start, kinds, one offset */
#define V1_REPEAT_SIZE 16 /* of PLT entries, that version 1 does not state */
#define REPEATS_MAX (1u << 17)

struct sframe {
	const struct cfi_section *section;
	struct rows *rows;
	struct cursor index, frames;
	uint64_t index_offset; /* of the FDEs in the section */
	uint8_t version, flags;
	int8_t fixed_fp, fixed_ra;
	uint32_t entry_count;
	uint64_t rows_left, repeats_left;
};

struct procedure {
	uint64_t start;
	uint32_t size, row_offset, row_count;
	uint8_t start_width; /* bytes of a row's start */
	bool repeats;        /* rows say what holds in each block of `block` bytes */
	uint8_t block;
};

struct sframe_row {
	uint32_t start;
	uint32_t rule;
};

static uint32_t entry_size(const struct sframe *sframe)
{
	return sframe->version == 1 ? 17 : 20;
}

static bool header_read(struct sframe *sframe)
{
	const struct cfi_section *section = sframe->section;
	struct cursor cursor = {section->bytes, section->bytes + section->size, false};
	uint8_t abi, wanted, auxiliary;
	uint32_t row_size, index_offset, row_offset;
	struct cursor parts;
	if (cursor_u16(&cursor) != SFRAME_MAGIC)
		return false;
	sframe->version = cursor_u8(&cursor);
	sframe->flags = cursor_u8(&cursor);
	abi = cursor_u8(&cursor);
	sframe->fixed_fp = (int8_t)cursor_u8(&cursor);
	sframe->fixed_ra = (int8_t)cursor_u8(&cursor);
	auxiliary = cursor_u8(&cursor);
	sframe->entry_count = cursor_u32(&cursor);
	sframe->rows_left = cursor_u32(&cursor);
	row_size = cursor_u32(&cursor);
	index_offset = cursor_u32(&cursor);
	row_offset = cursor_u32(&cursor);
	wanted = section->isa->elf_machine == EM_AARCH64 ? ABI_AARCH64_LITTLE : ABI_X86_64_LITTLE;
	if (cursor.bad || abi != wanted || (sframe->version != 1 && sframe->version != 2))
		return false;
	cursor_skip(&cursor, auxiliary);
	parts = cursor;
	cursor_skip(&parts, index_offset);
	sframe->index_offset = HEADER_SIZE + (uint64_t)auxiliary + index_offset;
	sframe->index = cursor_block(&parts, (uint64_t)sframe->entry_count * entry_size(sframe));
	parts = cursor;
	cursor_skip(&parts, row_offset);
	sframe->frames = cursor_block(&parts, row_size);
	return !cursor.bad && !sframe->index.bad && !sframe->frames.bad &&
	       sframe->rows_left <= row_size / ROW_SIZE_MIN;
}

static bool procedure_read(struct sframe *sframe, uint32_t number, struct procedure *out)
{
	const struct cfi_section *section = sframe->section;
	struct cursor cursor = sframe->index;
	uint64_t field = (uint64_t)number * entry_size(sframe);
	uint64_t base = section->address;
	uint8_t kinds;
	cursor_skip(&cursor, field);
	if (sframe->flags & FLAG_START_PCREL)
		base += sframe->index_offset + field;
	out->start = base + (uint64_t)(int32_t)cursor_u32(&cursor);
	out->size = cursor_u32(&cursor);
	out->row_offset = cursor_u32(&cursor);
	out->row_count = cursor_u32(&cursor);
	kinds = cursor_u8(&cursor);
	out->block = sframe->version == 1 ? V1_REPEAT_SIZE : cursor_u8(&cursor);
	out->repeats = kinds & 0x10;
	if ((kinds & 0x0f) > 2)
		return false;
	out->start_width = (uint8_t)(1u << (kinds & 0x0f));
	return !cursor.bad && out->size && out->start + out->size > out->start &&
	       !(out->repeats && !out->block) &&
	       cfi_is_code(section->segments, section->segment_count, out->start,
			   out->start + out->size);
}

static int32_t read_offset(struct cursor *cursor, unsigned width)
{
	if (width == 1)
		return (int8_t)cursor_u8(cursor);
	if (width == 2)
		return (int16_t)cursor_u16(cursor);
	return (int32_t)cursor_u32(cursor);
}

static bool row_read(struct sframe *sframe, struct cursor *cursor, unsigned start_width,
		     struct sframe_row *out)
{
	const struct isa *isa = sframe->section->isa;
	struct recipe recipe = {.cfa = RECIPE_REG, .extra = RECIPE_LOST, .source = RECIPE_FROM_CFI};
	uint8_t kinds, count, width;
	unsigned used = 1;
	int32_t offsets[3] = {0};
	out->start = start_width == 1   ? cursor_u8(cursor)
		     : start_width == 2 ? cursor_u16(cursor)
					: cursor_u32(cursor);
	kinds = cursor_u8(cursor);
	count = kinds >> 1 & 0x0f;
	width = (uint8_t)(1u << (kinds >> 5 & 3));
	if (!count || count > 3 || width > 4)
		return false;
	for (unsigned i = 0; i < count; i++)
		offsets[i] = read_offset(cursor, width);
	recipe.cfa_reg = kinds & 1 ? isa->sp : isa->fp;
	recipe.cfa_offset = offsets[0];
	if (sframe->fixed_ra || used < count) {
		recipe.ra = RECIPE_AT_CFA;
		recipe.ra_offset = sframe->fixed_ra ? sframe->fixed_ra : offsets[used++];
	}
	if (sframe->fixed_fp || used < count) {
		recipe.fp = RECIPE_AT_CFA;
		recipe.fp_offset = sframe->fixed_fp ? sframe->fixed_fp : offsets[used];
	}
	if (recipe.ra == RECIPE_SAME && isa->link == INSN_NO_REG)
		return false;
	out->rule = rows_rule(sframe->rows, &recipe);
	return !cursor->bad;
}

/* Adds [from, to) of the procedure, cut to its size. */
static void add_range(struct sframe *sframe, const struct procedure *procedure, uint64_t from,
		      uint64_t to, uint32_t rule)
{
	if (to > procedure->size)
		to = procedure->size;
	if (from < to)
		rows_add(sframe->rows, procedure->start + from, procedure->start + to, rule);
}

static bool plain_add(struct sframe *sframe, const struct procedure *procedure,
		      struct cursor cursor)
{
	struct sframe_row row, next;
	if (!row_read(sframe, &cursor, procedure->start_width, &row))
		return false;
	for (uint32_t i = 1; i < procedure->row_count; i++) {
		if (!row_read(sframe, &cursor, procedure->start_width, &next) ||
		    next.start < row.start)
			return false;
		add_range(sframe, procedure, row.start, next.start, row.rule);
		row = next;
	}
	add_range(sframe, procedure, row.start, procedure->size, row.rule);
	return true;
}

/* The PLT: the same rows in each block. */
static bool repeats_add(struct sframe *sframe, const struct procedure *procedure,
			struct cursor cursor)
{
	struct sframe_row rows[16];
	uint32_t count = procedure->row_count;
	if (count > sizeof rows / sizeof rows[0])
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!row_read(sframe, &cursor, procedure->start_width, &rows[i]) ||
		    (i && rows[i].start < rows[i - 1].start))
			return false;
	for (uint64_t block = 0; block < procedure->size; block += procedure->block) {
		if (!sframe->repeats_left)
			return false;
		sframe->repeats_left--;
		for (uint32_t i = 0; i < count; i++) {
			uint64_t to = i + 1 < count ? rows[i + 1].start : procedure->block;
			if (to > procedure->block)
				to = procedure->block;
			add_range(sframe, procedure, block + rows[i].start, block + to,
				  rows[i].rule);
		}
	}
	return true;
}

static bool procedure_add(struct sframe *sframe, const struct procedure *procedure)
{
	struct cursor cursor = sframe->frames;
	if (!procedure->row_count || procedure->row_count > sframe->rows_left ||
	    !cursor_skip(&cursor, procedure->row_offset))
		return false;
	sframe->rows_left -= procedure->row_count;
	if (procedure->repeats)
		return repeats_add(sframe, procedure, cursor);
	return plain_add(sframe, procedure, cursor);
}

bool sframe_read_section(const struct cfi_section *section, struct rows *rows,
			 struct cfi_stats *stats)
{
	struct sframe sframe = {.section = section, .rows = rows, .repeats_left = REPEATS_MAX};
	struct procedure procedure;
	if (!header_read(&sframe)) {
		stats->bad_entries++;
		return true;
	}
	for (uint32_t i = 0; i < sframe.entry_count && !rows->failed; i++) {
		stats->entries++;
		if (!procedure_read(&sframe, i, &procedure) || !procedure_add(&sframe, &procedure))
			stats->bad_entries++;
	}
	return !rows->failed;
}
