/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once
/* From a frame to its caller, by the rules of unwind/step.h; and the memory that it reads. */
#include "collect/bpf/maps.h"

/* ---- memory ---- */

/* Reads the piece of the stack of `size` bytes that has the address; 0 where it can be read. */
INLINE int read_window(struct walk *w, uint64_t address, uint64_t size)
{
	uint64_t at = address & ~(size - 1);
	w->have = 0;
	if (bpf_probe_read_user(w->bytes, (uint32_t)size, (void *)at))
		return 1;
	w->at = at;
	w->have = size;
	return 0;
}

/* The word at `address` into walk->word; 0 where it can be read. */
CHECKED int read_word(struct walk *w, uint64_t address)
{
	if (!w)
		return 1;
	uint64_t offset = address - w->at;
	if (address & 7)
		return bpf_probe_read_user(&w->word, 8, (void *)address) != 0;
	if (offset >= w->have) {
		if (read_window(w, address, KERNEL_WINDOW))
			return 1;
		offset = address - w->at;
	}
	MASK(offset, KERNEL_WINDOW - 8);
	w->word = *(uint64_t *)(w->bytes + offset);
	return 0;
}

/* A piece that has the word, and the next one, which lies `distance` beyond, too, if that is worth
   it: a large frame is mostly of no interest. */
CHECKED int read_near(struct walk *w, uint64_t address, uint64_t distance)
{
	if (!w || address & 7)
		return 1;
	return distance < LARGE_FRAME ? read_window(w, address, KERNEL_WINDOW)
				      : read_window(w, address, 64);
}

/* ---- the step, as in unwind/step.h ---- */

/* Each leaves what it read in walk->word; 0: it could be read. */

CHECKED int read_register(struct walk *w, uint32_t reg)
{
	if (!w)
		return 1;
	if (reg == CPU.sp) {
		w->word = w->sp;
		return 0;
	}
	if (reg == CPU.fp && !w->fp_lost) {
		w->word = w->fp;
		return 0;
	}
	if (reg == CPU.extra && !w->extra_lost) {
		w->word = w->extra;
		return 0;
	}
	if (!(w->exact || w->near) || reg >= KERNEL_REGISTERS)
		return 1;
	uint64_t index = reg;
	MASK(index, KERNEL_REGISTERS - 1);
	if (!w->in_signal) {
		w->word = w->registers[index];
		return 0;
	}
	uint64_t offset = CPU.signal_registers[index];
	return !offset || read_word(w, w->signal_sp + offset);
}

/* Where it is, 0 for a register. */
INLINE uint64_t find_slot(const struct walk *w, uint64_t cfa, uint32_t where, int32_t offset)
{
	uint64_t base = where == AT_CFA ? cfa : where == AT_FP ? w->fp : w->sp;
	return where == IN_REG || where == VIA_CFA ? 0 : base + (int64_t)offset;
}

CHECKED int read_value(struct walk *w, uint64_t cfa, uint32_t where, int32_t offset)
{
	if (!w)
		return 1;
	if (where == IN_REG)
		return read_register(w, (uint32_t)offset);
	if (where == VIA_CFA) /* RECIPE_VIA in unwind/recipe.h */
		return read_word(w, cfa + (int64_t)(int16_t)(offset & 0xffff)) ||
		       read_word(w, w->word + ((uint32_t)offset >> 16));
	if (where != AT_CFA && where != AT_SP && (where != AT_FP || w->fp_lost))
		return 1;
	return read_word(w, find_slot(w, cfa, where, offset));
}

CHECKED int step_signal(struct walk *w)
{
	if (!w)
		return BAD_MEMORY;
	uint64_t at = w->sp, pc, sp, fp;
	if (read_word(w, at + CPU.signal_pc))
		return BAD_MEMORY;
	pc = w->word;
	if (read_word(w, at + CPU.signal_registers[CPU.sp & (KERNEL_REGISTERS - 1)]))
		return BAD_MEMORY;
	sp = w->word;
	if (read_word(w, at + CPU.signal_registers[CPU.fp & (KERNEL_REGISTERS - 1)]))
		return BAD_MEMORY;
	fp = w->word;
	if (read_word(w, at + CPU.signal_registers[CPU.extra & (KERNEL_REGISTERS - 1)]))
		return BAD_MEMORY;
	w->extra = w->word;
	w->pc = pc;
	w->sp = sp;
	w->fp = fp;
	w->fp_lost = w->extra_lost = 0;
	w->in_signal = 1;
	w->signal_sp = at;
	w->near = 0;
	w->exact = 1;
	w->slot = at + CPU.signal_pc;
	return ON;
}

/* The CFA into walk->word. */
CHECKED int find_cfa(struct walk *w, const struct recipe *r)
{
	if (!w || !r)
		return BAD_FRAME;
	if (read_register(w, r->cfa_reg))
		return BAD_FRAME;
	w->word += (int64_t)r->cfa_offset;
	if (r->cfa_vg)
		return COMPLEX;
	if (r->cfa == CFA_DEREF) {
		if (read_word(w, w->word))
			return BAD_MEMORY;
		w->word += (int64_t)r->cfa_add;
	}
	return ON;
}

CHECKED int step_frame(struct walk *w, const struct recipe *r)
{
	if (!w || !r)
		return BAD_FRAME;
	int end = find_cfa(w, r);
	if (end != ON)
		return end;
	uint64_t cfa = w->word, pc, fp = w->fp, extra = w->extra, slot = 0;
	bool in_register = r->ra == SAME || r->ra == IN_REG;
	if (cfa < w->sp || (cfa == w->sp && !((w->exact || w->near) && in_register)))
		return BAD_FRAME;
	if (r->ra == SAME) {
		if (!w->exact || read_register(w, CPU.link))
			return BAD_FRAME;
	} else {
		slot = find_slot(w, cfa, r->ra, r->ra_offset);
		if (read_value(w, cfa, r->ra, r->ra_offset))
			return in_register ? BAD_FRAME : BAD_MEMORY;
	}
	pc = w->word & CPU.address_bits;
	uint8_t fp_lost = w->fp_lost, extra_lost = w->extra_lost;
	if (r->fp != SAME) {
		fp_lost = read_value(w, cfa, r->fp, r->fp_offset) != 0;
		fp = w->word;
	}
	if (r->extra != SAME) {
		extra_lost = read_value(w, cfa, r->extra, r->extra_offset) != 0;
		extra = w->word;
	}
	if (!pc)
		return fp_lost || fp || r->ra == VIA_CFA ? BAD_FRAME : COMPLETE;
	w->pc = pc;
	w->sp = cfa;
	w->fp = fp;
	w->extra = extra;
	w->fp_lost = fp_lost;
	w->extra_lost = extra_lost;
	w->near = w->exact || (w->near && in_register);
	w->exact = 0;
	w->slot = slot;
	return ON;
}

INLINE int peek(struct walk *w, uint64_t address, uint64_t *out)
{
	uint64_t offset = address - w->at;
	if (offset >= w->have || address & 7) {
		if (read_word(w, address))
			return 1;
		*out = w->word;
		return 0;
	}
	MASK(offset, KERNEL_WINDOW - 8);
	*out = *(uint64_t *)(w->bytes + offset);
	return 0;
}

/* The same for most frames (KERNEL_SIMPLE), in one piece: the CFA is SP or FP and a number, and
   what is saved is near it. */
CHECKED int step_simple(struct walk *w, const struct recipe *r)
{
	if (!w || !r)
		return BAD_FRAME;
	bool by_fp = r->cfa_reg == CPU.fp;
	uint64_t cfa = (by_fp ? w->fp : w->sp) + (int64_t)r->cfa_offset;
	uint64_t slot = cfa + (int64_t)r->ra_offset, pc, fp = w->fp, extra = w->extra;
	uint8_t fp_lost = w->fp_lost, extra_lost = w->extra_lost;
	if ((by_fp && fp_lost) || cfa <= w->sp)
		return BAD_FRAME;
	if (peek(w, slot, &pc))
		return BAD_MEMORY;
	if (r->fp == AT_CFA)
		fp_lost = peek(w, cfa + (int64_t)r->fp_offset, &fp) != 0;
	if (r->extra == AT_CFA)
		extra_lost = peek(w, cfa + (int64_t)r->extra_offset, &extra) != 0;
	pc &= CPU.address_bits;
	if (!pc)
		return fp_lost || fp ? BAD_FRAME : COMPLETE;
	w->pc = pc;
	w->sp = cfa;
	w->fp = fp;
	w->extra = extra;
	w->fp_lost = fp_lost;
	w->extra_lost = extra_lost;
	w->near = w->exact;
	w->exact = 0;
	w->slot = slot;
	return ON;
}

/* By the frame record at FP, for code without recipes. */
CHECKED int step_pointer(struct walk *w)
{
	if (!w)
		return BAD_FRAME;
	uint64_t fp, ra;
	if (w->fp_lost || w->fp < w->sp || w->fp & 7 || read_word(w, w->fp))
		return BAD_FRAME;
	fp = w->word;
	if (read_word(w, w->fp + 8))
		return BAD_FRAME;
	ra = w->word & CPU.address_bits;
	if (!ra)
		return BAD_FRAME;
	w->slot = w->fp + 8;
	w->sp = w->slot + 8;
	w->pc = ra;
	w->fp = fp;
	w->fp_lost = fp < w->sp;
	w->extra_lost = 1;
	w->exact = w->near = w->in_signal = 0;
	return ON;
}
