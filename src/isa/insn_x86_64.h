/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the two layers of the x86-64 decoder share. */
#include "isa/effect.h"
#include "isa/insn.h"

enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, R11 = 11 };

/* Numbers in the encoding to numbers in DWARF. */
static const uint8_t dwarf_reg[16] = {
	RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, 8, 9, 10, 11, 12, 13, 14, 15,
};

/* The layer that knows everything: as decode() of struct isa, but `out` has address set and all else but length cleared. */
void x86_zydis_decode(const uint8_t *code, size_t size, struct insn *out);
