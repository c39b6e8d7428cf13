/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Sections of unwind information made by hand, byte by byte, and the recipe
 * that comes of them.
 */
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "isa/insn.h"
#include "recipes/cfi.h"
#include "recipes/cfi_section.h"
#include "recipes/rows.h"

struct bytes {
	uint8_t data[8192];
	size_t size;
	size_t entry; /* where the current entry's length stands */
};

static inline void put(struct bytes *b, const void *data, size_t size)
{
	assert_true(size <= sizeof b->data - b->size);
	memcpy(b->data + b->size, data, size);
	b->size += size;
}

static inline void put8(struct bytes *b, unsigned value)
{
	uint8_t byte = (uint8_t)value;
	put(b, &byte, 1);
}

static inline void put16(struct bytes *b, uint16_t value)
{
	put(b, &value, 2);
}

static inline void put32(struct bytes *b, uint32_t value)
{
	put(b, &value, 4);
}

static inline void put64(struct bytes *b, uint64_t value)
{
	put(b, &value, 8);
}

static inline void put_uleb(struct bytes *b, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		put8(b, (unsigned)(value & 0x7f) | 0x80);
	put8(b, (unsigned)value);
}

/* The length of an entry, filled in by entry_end. */
static inline size_t entry_begin(struct bytes *b)
{
	b->entry = b->size;
	put32(b, 0);
	return b->entry;
}

static inline void entry_end(struct bytes *b)
{
	uint32_t length = (uint32_t)(b->size - b->entry - 4);
	memcpy(b->data + b->entry, &length, 4);
}

/* A CIE of .eh_frame for x86-64 (CFA = rsp + 8, RA at CFA - 8) or aarch64 (CFA = sp), with
   absolute pointers, "zR" and more letters that need no data. */
static inline size_t put_cie(struct bytes *b, uint16_t machine, const char *letters)
{
	bool arm = machine == EM_AARCH64;
	size_t offset = entry_begin(b);
	put32(b, 0);
	put8(b, 1);
	put(b, "zR", 2);
	put(b, letters, strlen(letters) + 1);
	put_uleb(b, arm ? 4 : 1);
	put8(b, 0x78); /* -8 */
	put8(b, arm ? 30 : 16);
	put_uleb(b, 1);
	put8(b, 0x00); /* absolute, 8 bytes */
	put(b, arm ? "\x0c\x1f\x00" : "\x0c\x07\x08\x90\x01", arm ? 3 : 5);
	entry_end(b);
	return offset;
}

static inline size_t put_fde(struct bytes *b, size_t cie, uint64_t start, uint64_t size,
			     const void *program, size_t program_size)
{
	size_t offset = entry_begin(b);
	put32(b, (uint32_t)(b->size - cie));
	put64(b, start);
	put64(b, size);
	put_uleb(b, 0);
	put(b, program, program_size);
	entry_end(b);
	return offset;
}

/* What came of reading. */
struct outcome {
	struct rows rows;
	struct cfi_stats stats;
};

/* The bytes are copied to the heap, so that a reader that goes past them is caught. */
static inline void read_bytes(const struct bytes *b, uint16_t machine, bool is_eh,
			      struct outcome *out)
{
	uint8_t *copy = malloc(b->size ? b->size : 1);
	struct cfi_section section = {.bytes = copy,
				      .size = b->size,
				      .address = 0x10000,
				      .data_base = 0x20000,
				      .text_base = 0x30000,
				      .isa = isa_for_machine(machine),
				      .is_eh = is_eh};
	assert_non_null(copy);
	memcpy(copy, b->data, b->size);
	memset(&out->stats, 0, sizeof out->stats);
	rows_init(&out->rows);
	assert_true(cfi_read_section(&section, &out->rows, &out->stats));
	rows_finish(&out->rows);
	assert_false(out->rows.failed);
	free(copy);
}

static inline struct recipe recipe_at(const struct outcome *out, uint64_t address)
{
	return out->rows.rules[rows_find(&out->rows, address)];
}

/* The outcome of one program for [0x1000, 0x1100). */
static inline void run_program(uint16_t machine, const void *program, size_t size,
			       struct outcome *out)
{
	struct bytes b = {.size = 0};
	size_t cie = put_cie(&b, machine, "");
	put_fde(&b, cie, 0x1000, 0x100, program, size);
	read_bytes(&b, machine, true, out);
}
#define RUN(machine, program, out) run_program(machine, program, sizeof program - 1, out)

static inline void assert_recipe(struct recipe got, struct recipe wanted)
{
	wanted.source = RECIPE_FROM_CFI;
	assert_int_equal(got.cfa, wanted.cfa);
	assert_int_equal(got.cfa_reg, wanted.cfa_reg);
	assert_int_equal(got.cfa_offset, wanted.cfa_offset);
	assert_int_equal(got.cfa_add, wanted.cfa_add);
	assert_int_equal(got.cfa_vg, wanted.cfa_vg);
	assert_int_equal(got.ra, wanted.ra);
	assert_int_equal(got.ra_offset, wanted.ra_offset);
	assert_int_equal(got.fp, wanted.fp);
	assert_int_equal(got.fp_offset, wanted.fp_offset);
	assert_memory_equal(&got, &wanted, sizeof got);
}
