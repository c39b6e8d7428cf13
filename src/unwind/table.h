/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The unwind table of one module: for every address of its code, the recipe.
 *
 *    header | pages: u32[page_count + 1] | rows: u32[row_count] | rules: recipe[rule_count]
 *
 * Code is cut into pages of 1 KiB. pages[p] is the index of page p's first
 * row, pages[p + 1] the end of its rows. A row is one word: offset in the page
 * (10 bits) << 22 | index of the rule (22 bits); it holds up to the next row.
 * Every page has a row at offset 0, so a lookup touches one word of `pages`,
 * one or two cache lines of `rows`, and a rule (of which there are few).
 *
 * The bytes are the same in the cache file and in memory shared with a target.
 * BPF maps have the rows with other numbers of rules, which all tables share
 * there (collect/kernel/tables.c). Addresses are the module's own virtual addresses.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "unwind/recipe.h"

#define TABLE_MAGIC 0x3162745f706c7563ull /* "culp_tb1" */
#define TABLE_VERSION 1u
#define TABLE_PAGE_BITS 10
#define TABLE_PAGE (1u << TABLE_PAGE_BITS)
#define TABLE_RULE_BITS (32 - TABLE_PAGE_BITS)
#define TABLE_RULE_MASK ((1u << TABLE_RULE_BITS) - 1)

struct table_header {
	uint64_t magic;
	uint32_t version;
	uint16_t machine; /* ELF machine number */
	uint16_t mode;    /* how it was built: enum recipes_mode */
	uint64_t start;   /* address of page 0, a multiple of TABLE_PAGE */
	uint32_t page_count, row_count, rule_count, reserved;
	uint64_t checksum; /* of all bytes after the header */
	uint8_t key[40];   /* what the table was built from: see recipes/cache.h */
	uint64_t reserved2;
};
_Static_assert(sizeof(struct table_header) == 96, "the header of a table file is 96 bytes");

struct table {
	uint64_t start;
	uint32_t page_count, row_count, rule_count;
	const uint32_t *pages, *rows;
	const struct recipe *rules;
};

/* Makes `table` stand on `bytes`, which must stay. False where they are no whole, sane table:
   afterwards no lookup leaves the bytes, whatever they are. The checksum is not looked at. */
bool table_open(struct table *table, const void *bytes, size_t size);

/* The same without looking at the rows: for bytes of somebody who has, and who is trusted. */
bool table_adopt(struct table *table, const void *bytes, size_t size);

/* Checksum of the bytes after the header. */
uint64_t table_checksum(const void *bytes, size_t size);

/* The recipe for the instruction at `address`: never NULL, RECIPE_NONE outside the table. */
static inline const struct recipe *table_find(const struct table *table, uint64_t address)
{
	uint64_t page = (address - table->start) >> TABLE_PAGE_BITS;
	if (page >= table->page_count)
		return &table->rules[0];
	uint32_t key = (uint32_t)(address & (TABLE_PAGE - 1)) << TABLE_RULE_BITS | TABLE_RULE_MASK;
	const uint32_t *row = table->rows + table->pages[page];
	uint32_t count = table->pages[page + 1] - table->pages[page];
	while (count > 1) { /* the last row whose offset is not above */
		uint32_t half = count / 2;
		row = row[half] <= key ? row + half : row;
		count -= half;
	}
	return &table->rules[*row & TABLE_RULE_MASK];
}
