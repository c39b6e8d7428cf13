/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A recipe: how to get from a frame to its caller, for an interval of code.
 *
 * The CFA (canonical frame address) is the caller's SP at the call: on x86-64
 * the address just above the return address, on aarch64 SP at the entry of the
 * procedure. The caller's PC, FP and one extra callee-saved register (rbx on
 * x86-64, on which glibc's lazy binding hangs its frame) follow from it.
 *
 * 32 bytes, plain integers, no pointers: the same struct lies in the table
 * file, in the target's memory and in BPF maps. Equal recipes are stored once
 * per table, in BPF maps once for all.
 */
#include <stdint.h>

enum recipe_cfa {
	RECIPE_NONE,  /* nothing known about this code */
	RECIPE_REG,   /* CFA = register + cfa_offset (+ cfa_vg * vector granules) */
	RECIPE_DEREF, /* CFA = word at (register + cfa_offset), + cfa_add */
	RECIPE_ROOT,  /* outermost: nobody called this code */
	RECIPE_SIGNAL, /* the kernel pushed a signal frame at SP: registers are in it; cfa_add may be RECIPE_RETURNED */
	RECIPE_COMPLEX, /* described, but by an expression that no recipe can say */
	RECIPE_SPECIAL, /* what code does seldom: cfa_vg says how, see RECIPE_INDEX */
	/* The caller may be on another stack, wherever that lies: */
	RECIPE_AWAY,     /* CFA = register + cfa_offset; cfa_add is 1: see RECIPE_PUSHED_LINK */
	RECIPE_DEPTH,    /* Go's runtime calls C: see RECIPE_PAIR */
	RECIPE_PARKED,   /* it works for a goroutine, which waits */
	RECIPE_CALLBACK, /* C has called it, while a goroutine waited for that */
};

/* The code before a trampoline: it is one for frames that handlers return to, not for the code itself. */
#define RECIPE_RETURNED 1

/*
 * How Go's runtime keeps its stacks. Each thread has a g for the goroutine that it runs (m.curg), and
 * one for its own stack (m.g0); in Go's code a register holds the one whose stack it is on. A stack that is
 * left has its SP and PC in its g. cfa_reg is that register, cfa_offset where a g has its
 * thread (m), cfa_vg where that has its curg; g0 comes first in it. A pair in cfa_add is where a g has
 * its SP, and how far the CFA is beyond that.
 *    PARKED    the stack of m.curg. Where there is none it has been given up: nobody waits.
 *    CALLBACK  the stack of m.g0. Of nested ones each has the SP of the next outer one, extra_offset
 *              bytes beyond its own.
 *    DEPTH     the word at SP + cfa_offset is a g, and that at SP + the first of the pair how deep in its
 *              stack, which may have moved, the caller is; the CFA is the second one beyond that.
 */
#define RECIPE_PAIR(first, second) \
	((int32_t)((uint32_t)(second) << 16 | ((uint32_t)(first)&0xffff)))
#define RECIPE_FIRST(pair) ((uint16_t)((uint32_t)(pair)&0xffff))
#define RECIPE_SECOND(pair) ((uint16_t)((uint32_t)(pair) >> 16))
/* Go's signal handlers make a thread call a procedure between two instructions, whichever they are: so
   the caller is where a signal interrupted it. Where there is a link register they push what was in
   that, so far below the CFA. Register number extra_offset has the g. */
#define RECIPE_PUSHED_LINK 16
#define RECIPE_STACK_END 8 /* where a g has the end of its stack */
#define RECIPE_NESTED 16   /* callbacks in each other that are followed */

enum recipe_where {
	RECIPE_SAME,    /* FP, extra: unchanged since the entry. RA: in the link register */
	RECIPE_AT_CFA,  /* in the word at CFA + offset */
	RECIPE_AT_FP,   /* in the word at FP + offset (this frame's FP) */
	RECIPE_AT_SP,   /* in the word at SP + offset (this frame's SP) */
	RECIPE_IN_REG,  /* in register number `offset` */
	RECIPE_LOST,    /* overwritten: cannot be restored (only harmful where a caller needs it) */
	RECIPE_VIA_CFA, /* in an object: see RECIPE_VIA */
	RECIPE_AT_BASE, /* in the word at cfa_reg + offset */
	RECIPE_VIA_BASE, /* in the word whose address is in the word at cfa_reg + offset */
	RECIPE_IN_G,     /* in the word at offset of the g that RECIPE_PARKED came to */
};

/* The offset of RECIPE_VIA_CFA: the word at CFA + `slot` is the address of an object, in which the
   value is at `member`. Zero there means that it is not known yet. */
#define RECIPE_VIA(slot, member) ((int32_t)((uint32_t)(member) << 16 | ((uint32_t)(slot)&0xffff)))
#define RECIPE_VIA_SLOT(offset) ((int16_t)((uint32_t)(offset)&0xffff))
#define RECIPE_VIA_MEMBER(offset) ((uint16_t)((uint32_t)(offset) >> 16))

/*
 * RECIPE_SPECIAL: CFA = cfa_reg + cfa_offset (+ register << shift), or the word there, + cfa_add
 * or the word at cfa_reg + cfa_add. `cfa_vg` is made of these. Code that is on its way to another
 * frame (exceptions) leads there by a jump: RECIPE_RESUMES says that the PC found is where that
 * frame goes on, not where it has called. The walk stands on it as if it had called by one byte.
 * Registers other than SP and FP are good for exact frames alone here.
 */
#define RECIPE_INDEX(reg, shift) (0x80 | (shift) << 5 | (reg))
#define RECIPE_WORD 0x100      /* the CFA is the word at that place */
#define RECIPE_WORD_MORE 0x200 /* cfa_add is where another word is, to be added */
#define RECIPE_RESUMES 0x400
#define RECIPE_MIXED \
	0x800 /* the register is not added but mixed with the word (xor): setjmp's secret */
#define RECIPE_INDEX_REG(how) ((how)&0x1f)
#define RECIPE_INDEX_SHIFT(how) ((how) >> 5 & 3)

enum recipe_source { RECIPE_FROM_NOTHING, RECIPE_FROM_CFI, RECIPE_FROM_CODE, RECIPE_FROM_SHAPE };

struct recipe {
	uint8_t cfa;     /* enum recipe_cfa */
	uint8_t cfa_reg; /* DWARF number */
	uint8_t ra;      /* enum recipe_where, as the next two */
	uint8_t fp;
	uint8_t extra;
	uint8_t source; /* enum recipe_source */
	int16_t cfa_vg;
	int32_t cfa_offset;
	int32_t cfa_add;
	int32_t ra_offset;
	int32_t fp_offset;
	int32_t extra_offset;
	int32_t reserved; /* 0 */
};
_Static_assert(sizeof(struct recipe) == 32, "recipes are 32 bytes in files and maps");
