/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Code made at run time is walked by frame pointers. In the first and last instructions of a procedure
 * FP is its caller's still, or again: by FP alone the walk would go on at the caller's caller, and nobody
 * would notice. What the next instructions do tells: where they come to the one that saves FP, or to the
 * return, without a way to go elsewhere, there is no frame, and the return address is where the call
 * left it. In a header of its own, because the sampler in the kernel walks, too.
 */
#include <stdint.h>

enum made_frame {
	MADE_FRAME,    /* there is one, as far as can be seen */
	MADE_NO_FRAME, /* the return address is in the link register, or at SP */
	MADE_PUSHED,   /* the same, but x86-64 has pushed FP and not set it */
};

#define MADE_BYTES 32 /* of code to look at */

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
		if ((insn & 0xfffff01f) == 0xd503201f) /* a hint */
			continue;
		if (!insn || (insn >> 26 & 7) == 5) { /* goes elsewhere */
			if (!insn || other <= i)
				return MADE_FRAME;
			from = other;
		}
	}
	return MADE_FRAME;
}

static inline unsigned made_frame_x86_64(const uint8_t code[MADE_BYTES])
{
	if (code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && code[3] == 0xfa)
		return MADE_NO_FRAME;                              /* endbr64: where calls arrive */
	if (code[0] == 0x55 || code[0] == 0xc3 || code[0] == 0xc2) /* push rbp; ret */
		return MADE_NO_FRAME;
	if (code[0] == 0x48 &&
	    ((code[1] == 0x89 && code[2] == 0xe5) || (code[1] == 0x8b && code[2] == 0xec)))
		return MADE_PUSHED; /* mov rbp, rsp */
	return MADE_FRAME;
}
