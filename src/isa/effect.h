/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For the decoders of both CPUs. */
#include "isa/insn.h"

/* Adds an effect with one source. */
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
