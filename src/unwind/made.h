/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Code made at run time is walked by frame pointers. In the first and last instructions of a procedure
 * FP is its caller's still, or again: by FP alone the walk would go on at the caller's caller, and nobody
 * would notice. What the next instructions do tells: where they come to the one that saves FP, or to the
 * return, without a way to go elsewhere, there is no frame, and the return address is where the call
 * left it. In a header of its own, because the sampler in the kernel walks, too.
 */
#include <stdbool.h>
#include <stdint.h>

enum made_frame {
	MADE_FRAME,    /* there is one, as far as can be seen */
	MADE_NO_FRAME, /* the return address is in the link register, or at SP */
	MADE_PUSHED,   /* the same, but x86-64 has pushed FP and not set it */
	MADE_ON,       /* this instruction does not tell */
};

#define MADE_BYTES 32 /* of code to look at: a power of two */
#define MADE_INSNS 6  /* at most, on x86-64 */

/* How far a conditional branch goes, in instructions; 0: it is none. Backwards is far. */
static inline uint32_t made_branch_aarch64(uint32_t insn)
{
	if ((insn & 0xff000010) == 0x54000000 || (insn & 0x7e000000) == 0x34000000)
		return insn >> 5 & 0x7ffff;                                /* b.cond, cbz */
	return (insn & 0x7e000000) == 0x36000000 ? insn >> 5 & 0x3fff : 0; /* tbz */
}

static inline unsigned made_frame_aarch64(const uint32_t code[MADE_BYTES / 4])
{
	uint32_t from = 0, other = 0; /* other: where the last branch may have gone */
	for (uint32_t i = 0; i < MADE_BYTES / 4; i++) {
		uint32_t insn = code[i], first = insn & 31, second = insn >> 10 & 31;
		uint32_t branch = made_branch_aarch64(insn);
		if (i < from)
			continue;
		/* ret; add x29, sp, #; stp x29, x30, [sp …, which that follows */
		if (insn == 0xd65f03c0 || (insn & 0xff8003ff) == 0x910003fd ||
		    (insn & 0xfe407fff) == 0xa8007bfd)
			return MADE_NO_FRAME;
		if ((insn & 0xfe400000) == 0xa8400000 && (first >= 29 || second >= 29))
			return MADE_FRAME; /* ldp */
		if (((insn & 0xffc00000) == 0xf9400000 || (insn & 0xffe00000) == 0xf8400000) &&
		    first >= 29)
			return MADE_FRAME; /* ldr */
		if (branch) {              /* what holds here holds on both ways */
			other = branch < MADE_BYTES / 4 ? i + branch : other;
			continue;
		}
		if ((insn & 0xffc00000) == 0xd5000000) /* hints, barriers, system registers */
			continue;
		if (!insn || (insn >> 26 & 7) == 5) { /* goes elsewhere */
			if (!insn || other <= i)
				return MADE_FRAME;
			from = other;
		}
	}
	return MADE_FRAME;
}

#define MADE_AT(code, at) ((code)[(at) & (MADE_BYTES - 1)])
#define MADE_LONGEST 12 /* bytes of an instruction that is known here */

/* How many bytes an operand has that may be in memory. */
static inline uint32_t made_operand_x86_64(const uint8_t *code, uint32_t at)
{
	uint32_t mod = MADE_AT(code, at) >> 6, base = MADE_AT(code, at) & 7, index = 0;
	if (mod == 3)
		return 1;
	if (base == 4) {
		base = MADE_AT(code, at + 1) & 7;
		index = 1;
	}
	if (mod == 2 || (!mod && base == 5))
		return 1 + index + 4;
	return 1 + index + mod;
}

/* How many bytes of operands follow an opcode that leaves SP and FP alone; 0: it may not. */
static inline uint32_t made_harmless_x86_64(const uint8_t *code, uint32_t at, uint8_t rex)
{
	uint8_t op = MADE_AT(code, at), next = MADE_AT(code, at + 1);
	uint32_t reg = next >> 3 & 7, rm = next & 7;
	bool own = (reg == 4 || reg == 5) && !(rex & 4);                    /* SP, FP */
	bool own_rm = (rm == 4 || rm == 5) && !(rex & 1) && next >= 3 << 6; /* the same */
	uint32_t operand = made_operand_x86_64(code, at + 1);
	if (op >= 0x70 && op < 0x80) /* jcc */
		return 1;
	if (op >= 0xb8 && op < 0xc0 && (rex & 1 || (op != 0xbc && op != 0xbd))) /* mov, a number */
		return rex & 8 ? 8 : 4;
	if (op == 0x0f)
		return next == 0x1f                  ? 1 + made_operand_x86_64(code, at + 2)
		       : next >= 0x80 && next < 0x90 ? 5
						     : 0;                    /* nop, jcc */
	if (op == 0x38 || op == 0x39 || op == 0x3a || op == 0x3b ||          /* cmp */
	    op == 0x84 || op == 0x85 ||                                      /* test */
	    (op == 0x89 && !own_rm) || ((op == 0x8b || op == 0x8d) && !own)) /* mov, lea */
		return operand;
	if ((op == 0x80 || op == 0x83) && reg == 7) /* cmp with a number */
		return operand + 1;
	if (op == 0x81 && reg == 7)
		return operand + 4;
	return (op == 0xf6 || op == 0xf7) && !reg ? operand + (op == 0xf6 ? 1 : 4) : 0; /* test */
}

/* What the instruction at *at says; where it is MADE_ON, *at is the next one then. */
static inline unsigned made_insn_x86_64(const uint8_t code[MADE_BYTES], uint32_t *at)
{
	uint32_t i = *at, length;
	uint8_t rex = 0;
	if (i > MADE_BYTES - MADE_LONGEST)
		return MADE_FRAME;
	if (MADE_AT(code, i) == 0x66)
		i++;
	if ((MADE_AT(code, i) & 0xf0) == 0x40)
		rex = MADE_AT(code, i++);
	uint8_t op = MADE_AT(code, i);
	if (!rex && (op == 0x55 || op == 0xc3 || op == 0xc2)) /* push rbp; ret */
		return MADE_NO_FRAME;
	length = op == 0x90 ? 0 : made_harmless_x86_64(code, i, rex);
	if (op != 0x90 && !length)
		return MADE_FRAME;
	*at = i + 1 + length;
	return MADE_ON;
}

/* What the first one says that needs no others. */
static inline unsigned made_first_x86_64(const uint8_t code[MADE_BYTES])
{
	if (code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && code[3] == 0xfa)
		return MADE_NO_FRAME; /* endbr64: where calls arrive */
	if (code[0] == 0x48 &&
	    ((code[1] == 0x89 && code[2] == 0xe5) || (code[1] == 0x8b && code[2] == 0xec)))
		return MADE_PUSHED; /* mov rbp, rsp */
	return MADE_ON;
}

static inline unsigned made_frame_x86_64(const uint8_t code[MADE_BYTES])
{
	unsigned made = made_first_x86_64(code);
	uint32_t at = 0;
	for (int i = 0; i < MADE_INSNS && made == MADE_ON; i++)
		made = made_insn_x86_64(code, &at);
	return made == MADE_ON ? MADE_FRAME : made;
}
