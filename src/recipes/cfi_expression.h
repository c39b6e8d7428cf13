/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * DWARF expressions of call-frame information, computed with names in place of
 * what only a running program knows. The result is a value of the form
 *
 *     base + add + vg * (vector granules)
 *
 * where the base is nothing (a constant), a register, the CFA, or the word in
 * memory at (register or CFA) + inner; to a register another one may be added, times 1, 2, 4 or 8
 * (assembly that finds its frame in an array on the stack). That covers everything that a recipe
 * can say, in whatever shape the expression was written.
 */
#include <stdbool.h>
#include <stdint.h>
#include "recipes/cfi_cursor.h"

struct isa;

enum value_base { VALUE_CONSTANT, VALUE_REGISTER, VALUE_CFA };

struct value {
	uint8_t base; /* enum value_base */
	uint8_t reg;
	bool memory;  /* the base is the word at (base + inner) */
	bool indexed; /* the base is a register, and `index` << index_shift is added to it */
	uint8_t index, index_shift;
	uint8_t shift; /* only on the way: the register times a power of two, to become an index */
	int64_t inner;
	int64_t add;
	int64_t vg;
};

struct evaluation {
	const struct isa *isa;
	uint64_t pc;      /* what the PC's register reads as */
	bool used_pc;     /* set when it was read: the result holds at `pc` alone */
	uint64_t *budget; /* operations that may still be spent */
};

/* Computes `block`; with `cfa_on_stack` the stack begins with the CFA. False where the
   expression is damaged, too long, or its value has another form. */
bool expression_evaluate(struct evaluation *evaluation, struct cursor block, bool cfa_on_stack,
			 struct value *out);
