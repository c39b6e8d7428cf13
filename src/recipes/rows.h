/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Rows under construction: "from this address on, this recipe holds", with
 * equal recipes stored once. What readers of CFI and the analysis produce and
 * what build.c packs into a table.
 */
#include <stddef.h>
#include <stdint.h>
#include "unwind/recipe.h"

struct row {
	uint64_t address;
	uint32_t rule; /* index in rules */
};

struct rows {
	struct row *rows; /* rows_finish sorts them */
	size_t count, capacity;
	struct recipe *rules; /* rules[0] is RECIPE_NONE */
	size_t rule_count, rule_capacity;
	uint32_t *slots; /* hash of rules */
	size_t slot_count;
	int failed; /* out of memory once: results are to be thrown away */
};

void rows_init(struct rows *rows);
void rows_free(struct rows *rows);

/* The index of an equal rule, added where it is new. */
uint32_t rows_rule(struct rows *rows, const struct recipe *recipe);

/* The recipe for [start, end). Intervals may come in any order; of overlapping ones, the
   one that was added first wins. */
void rows_add(struct rows *rows, uint64_t start, uint64_t end, uint32_t rule);

/* Sorts, resolves overlaps, puts RECIPE_NONE rows into the gaps and after the end, and joins
   neighbours with the same rule. */
void rows_finish(struct rows *rows);

/* The rule that holds at `address` of finished rows. */
uint32_t rows_find(const struct rows *rows, uint64_t address);

/* The same for addresses that ascend from call to call: *row, 0 at first, remembers the place. */
uint32_t rows_follow(const struct rows *rows, size_t *row, uint64_t address);
