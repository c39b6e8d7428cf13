/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the two layers of the x86-64 decoder share. */
#include "isa/insn.h"

enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, R11 = 11 };

/* Numbers in the encoding to numbers in DWARF. */
static const uint8_t dwarf_reg[16] = {
	RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, 8, 9, 10, 11, 12, 13, 14, 15,
};

static inline void add_effect(struct insn *out, uint8_t op, uint8_t dst, uint8_t src, int64_t imm)
{
	out->effects[out->effect_count++] = (struct effect){
		.op = op,
		.dst = dst,
		.src = src,
		.src2 = INSN_NO_REG,
		.imm = imm,
	};
}

/* The layer that knows everything: as decode() of struct isa, but `out` has address set and all else but length cleared. */
void x86_zydis_decode(const uint8_t *code, size_t size, struct insn *out);
