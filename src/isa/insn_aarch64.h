/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the two halves of the aarch64 decoder share: fields of an instruction word, and notes of
 * what it does.
 *
 * Register field 31 means sp in some operands and the zero register in others. Each write goes
 * through write_x() (31 is the zero register: nothing is written) or write_sp() (31 is sp).
 */
#include "isa/effect.h"
#include "isa/insn.h"

enum { FP = 29, LR = 30, SP = 31, ZR = 31 };

static inline uint32_t bits(uint32_t word, unsigned high, unsigned low)
{
	return word >> low & (UINT32_MAX >> (31 - (high - low)));
}

static inline bool bit(uint32_t word, unsigned index)
{
	return word >> index & 1;
}

static inline int64_t signed_bits(uint32_t word, unsigned high, unsigned low)
{
	return (int32_t)(word << (31 - high)) >> (31 - high + low);
}

static inline uint8_t rd(uint32_t word)
{
	return word & 31;
}

static inline uint8_t rn(uint32_t word)
{
	return word >> 5 & 31;
}

static inline uint8_t rm(uint32_t word)
{
	return word >> 16 & 31;
}

static inline uint8_t rt2(uint32_t word)
{
	return word >> 10 & 31;
}

static inline void add_effect2(struct insn *out, uint8_t op, uint8_t dst, uint8_t src, uint8_t src2)
{
	add_effect(out, op, dst, src, 0);
	out->effects[out->effect_count - 1].src2 = src2;
}

static inline void write_x(struct insn *out, uint8_t reg)
{
	if (reg != ZR)
		out->writes |= 1u << reg;
}

static inline void write_sp(struct insn *out, uint8_t reg)
{
	out->writes |= 1u << reg;
}

static inline void set_const(struct insn *out, uint8_t reg, uint64_t value)
{
	if (reg != ZR)
		add_effect(out, EFFECT_CONST, reg, INSN_NO_REG, (int64_t)value);
}

static inline void bad(struct insn *out)
{
	out->kind = INSN_BAD;
}

/* Loads and stores: words whose bits 28:25 are x1x0 */
void aarch64_decode_memory(uint32_t word, struct insn *out);
