/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the files of aarch64's interpreter share. `w` is an instruction. Functions that return a bool return false where
 * the trail ends.
 */
#include "trail/interpret.h"

#define ZERO 31u /* as an operand: the register that is zero, or SP */

#define FLAG_V 28u /* as in PSTATE */
#define FLAGS 0xf0000000u

static inline unsigned field(uint32_t w, unsigned low, unsigned count)
{
	return w >> low & ((1u << count) - 1);
}

static inline int64_t signed_field(uint32_t w, unsigned low, unsigned count)
{
	return (int64_t)((uint64_t)w << (64 - low - count)) >> (64 - count);
}

/* ---- registers ---- */

/* Those where 31 is zero. Where it is SP: trail_get, trail_set. */
static inline struct trail_value aarch64_get(const struct trail *t, unsigned n)
{
	return n == ZERO ? trail_known(0) : trail_get(t, n);
}

static inline void aarch64_set(struct trail *t, unsigned n, struct trail_value value)
{
	if (n != ZERO)
		trail_set(t, n, value);
}

/* ---- arithmetic: `wide` is for 64 bits, else 32 ---- */

static inline uint64_t narrow(uint64_t bits, bool wide)
{
	return wide ? bits : (uint32_t)bits;
}

/* AND, OR, XOR, AND with flags. */
static inline uint64_t aarch64_logical(unsigned operation, uint64_t a, uint64_t b)
{
	return operation == 1 ? a | b : operation == 2 ? a ^ b : a & b;
}

/* `kind`: to the left, to the right, the same with the sign, round. */
uint64_t aarch64_shift(uint64_t bits, unsigned kind, unsigned by, bool wide);
/* An operand of less than 64 bits. `option`: how many, and whether with a sign. */
struct trail_value aarch64_extend(struct trail_value value, unsigned option, unsigned by);
/* a + b + carry; with bit 30, a + ~b + carry; with bit 29, its flags are set. */
struct trail_value aarch64_add(struct trail *t, uint32_t w, struct trail_value a,
			       struct trail_value b, bool carry);

void aarch64_set_flags(struct trail *t, unsigned nzcv, bool known);
/* N and Z of a result. */
unsigned aarch64_flags_of(uint64_t result, bool wide);
/* Whether a condition holds. The flags are known. */
bool aarch64_holds(const struct trail *t, unsigned condition);

/* ---- groups of instructions ---- */

bool aarch64_with_immediate(struct trail *t, uint32_t w);
bool aarch64_with_registers(struct trail *t, uint32_t w);
bool aarch64_loads_and_stores(struct trail *t, uint32_t w);
/* Branches, and what is for the system. *next: where it leads. */
bool aarch64_branches(struct trail *t, uint32_t w, uint64_t *next);
