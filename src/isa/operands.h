/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What an instruction reads and writes, of all registers, and the memory that it touches: who waits for
 * whom. struct insn (isa/insn.h) knows only what a frame is made of; this is for explaining time.
 *
 * In a set of registers, bits 0 to 31 are the general ones (numbered as in isa/insn.h) and bits 32 to 63
 * the vector registers, of whatever width. The flags are one register, apart.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct insn;
struct isa;

enum operands_class {
	OPERANDS_PLAIN,
	OPERANDS_DIVIDE, /* divisions and square roots: units that work on one for long */
	OPERANDS_ATOMIC, /* reads and writes memory as one: locked, exclusive */
	OPERANDS_FENCE,  /* what comes before it must be seen first */
};

struct operands {
	uint64_t reads, writes; /* of registers; what only addresses need is not among the reads */
	uint64_t address;       /* registers that the address of its memory hangs on */
	bool reads_flags, writes_flags;
	bool load, store;
	bool fixed;        /* the address is a constant, or hangs on the PC alone */
	bool stack;        /* the address hangs on the stack pointer alone */
	bool plain_offset; /* the address is `base` + `offset` */
	bool base_moves;   /* the instruction adds `step` to its base */
	uint8_t base;      /* INSN_NO_REG: none */
	uint8_t size;      /* bytes that are loaded or stored; 0: not known */
	uint8_t class;     /* enum operands_class */
	int64_t offset, step;
	bool adds; /* dst = src + `added`, a constant: what a register of a loop is stepped with */
	uint8_t sum, addend; /* the registers dst and src of that */
	uint8_t stepper;     /* INSN_NO_REG, or a register that is added instead of a constant */
	int64_t added;
};

#define OPERANDS_VECTOR 32 /* the bit of vector register 0 */

/* Of an instruction, from its bytes and its text (isa/text.h). */
void operands_read(const struct isa *isa, const uint8_t *code, size_t size, const char *text,
		   struct operands *out);
