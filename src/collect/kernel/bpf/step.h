/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once
/* Steps of a walk: from a frame to its caller, by the rules of unwind/step.h, and the memory that a step
   reads. Functions that have the same name there do the same. take.h and memo.h use it. */
#include "collect/kernel/bpf/maps.h"
#include "unwind/made.h"

/* ---- memory ---- */

/* Reads a piece of the stack from `at` on: at most `size` bytes, and only to the end of the page, for
   there may be nothing beyond. Returns 0 if it can be read. */
INLINE int read_window(struct walk *w, uint64_t at, uint64_t size)
{
	uint64_t room = 4096 - (at & 4095);
	if (size > room)
		size = room;
	w->have = 0;
	KEEP(size); /* older verifiers do not see this bound */
	if (size > KERNEL_WINDOW || bpf_probe_read_user(w->bytes, (uint32_t)size, (void *)at))
		return 1;
	w->at = at;
	w->have = size;
	return 0;
}

/* Reads the word at `address` into walk->word. Returns 0 if it can be read. */
CHECKED int read_word(struct walk *w, uint64_t address)
{
	if (!w)
		return 1;
	uint64_t offset = address - w->at;
	if (address & 7)
		return bpf_probe_read_user(&w->word, 8, (void *)address) != 0;
	if (offset >= w->have) {
		/* Begins some words before: what else the frame has saved is there. */
		uint64_t at = address & ~(uint64_t)(LINE - 1);
		if (at & 4095)
			at -= LINE;
		if (w->window < KERNEL_WINDOW)
			w->window *= 2;
		if (read_window(w, at, w->window))
			return 1;
		offset = address - w->at;
	}
	MASK(offset, KERNEL_WINDOW - 8);
	w->word = *(uint64_t *)(w->bytes + offset);
	return 0;
}

/* Reads a piece of the stack that has the word at `address`. If it is worth it, the piece also has the
   next word, which is `distance` beyond: most of a large frame is of no interest. Far down a stack,
   whole pages are read. */
CHECKED int read_near(struct walk *w, uint64_t address, uint64_t distance)
{
	if (!w || address & 7)
		return 1;
	if (distance >= LARGE_FRAME)
		return read_window(w, address, LINE);
	if (w->window == KERNEL_WINDOW)
		return read_window(w, address & ~(uint64_t)(KERNEL_WINDOW - 1), KERNEL_WINDOW);
	w->window *= 2;
	return read_window(w, address, w->window);
}

/* ---- the step, as in unwind/step.h ---- */

/* Reads FP and the extra register if that was put off. They are seldom needed: most frames are found by
   SP alone. */
CHECKED int read_put_off(struct walk *w)
{
	if (!w)
		return 1;
	if (w->fp_at) {
		w->fp_lost = read_word(w, w->fp_at) != 0;
		w->fp = w->word;
		w->fp_at = 0;
	}
	if (w->extra_at) {
		w->extra_lost = read_word(w, w->extra_at) != 0;
		w->extra = w->word;
		w->extra_at = 0;
	}
	return 0;
}

/* The following functions leave what they have read in walk->word. They return 0 if it could be read. */

CHECKED int read_register(struct walk *w, uint32_t reg)
{
	if (!w)
		return 1;
	if (reg == CPU.sp) {
		w->word = w->sp;
		return 0;
	}
	if (reg == CPU.fp) {
		w->word = w->fp;
		return w->fp_lost;
	}
	if (reg == CPU.extra) {
		w->word = w->extra;
		return w->extra_lost;
	}
	if (!(w->exact || w->near) || reg >= KERNEL_REGISTERS)
		return 1;
	uint64_t index = reg;
	MASK(index, KERNEL_REGISTERS - 1);
	if (!w->in_signal) {
		if (reg == CPU.link) {
			w->word = w->link;
			return 0;
		}
		if (!w->all_registers && read_registers(w->registers))
			return 1;
		w->all_registers = 1;
		w->word = w->registers[index];
		return 0;
	}
	uint64_t offset = CPU.signal_registers[index];
	return !offset || read_word(w, w->signal_sp + offset);
}

/* Returns the address of a value; 0: it is in a register. */
INLINE uint64_t find_slot(const struct walk *w, uint64_t cfa, uint32_t where, int32_t offset)
{
	uint64_t base = where == RECIPE_AT_CFA ? cfa : where == RECIPE_AT_FP ? w->fp : w->sp;
	bool in_memory = where == RECIPE_AT_CFA || where == RECIPE_AT_FP || where == RECIPE_AT_SP;
	return in_memory ? base + (int64_t)offset : 0;
}

/* Reads what lies relative to the register that the CFA is based on. */
CHECKED int read_based(struct walk *w, uint32_t reg, uint32_t where, int32_t offset)
{
	if (!w || read_register(w, reg) || read_word(w, w->word + (int64_t)offset))
		return 1;
	return where == RECIPE_VIA_BASE && read_word(w, w->word);
}

CHECKED int read_value(struct walk *w, const struct recipe *r, uint64_t cfa, uint32_t where,
		       int32_t offset)
{
	if (!w || !r)
		return 1;
	if (where == RECIPE_AT_BASE || where == RECIPE_VIA_BASE)
		return read_based(w, r->cfa_reg, where, offset);
	if (where == RECIPE_IN_REG)
		return read_register(w, (uint32_t)offset);
	if (where == RECIPE_VIA_CFA)
		return read_word(w, cfa + (int64_t)RECIPE_VIA_SLOT(offset)) ||
		       read_word(w, w->word + RECIPE_VIA_MEMBER(offset));
	if (where != RECIPE_AT_CFA && where != RECIPE_AT_SP &&
	    (where != RECIPE_AT_FP || w->fp_lost))
		return 1;
	return read_word(w, find_slot(w, cfa, where, offset));
}

CHECKED int step_signal(struct walk *w)
{
	if (!w)
		return WALK_BAD_MEMORY;
	uint64_t at = w->sp, pc, sp, fp;
	if (read_word(w, at + CPU.signal_pc))
		return WALK_BAD_MEMORY;
	pc = w->word;
	if (read_word(w, at + CPU.signal_registers[CPU.sp & (KERNEL_REGISTERS - 1)]))
		return WALK_BAD_MEMORY;
	sp = w->word;
	if (read_word(w, at + CPU.signal_registers[CPU.fp & (KERNEL_REGISTERS - 1)]))
		return WALK_BAD_MEMORY;
	fp = w->word;
	if (read_word(w, at + CPU.signal_registers[CPU.extra & (KERNEL_REGISTERS - 1)]))
		return WALK_BAD_MEMORY;
	w->extra = w->word;
	w->pc = pc;
	w->sp = sp;
	w->fp = fp;
	w->fp_lost = w->extra_lost = 0;
	w->fp_at = w->extra_at = 0;
	w->in_signal = 1;
	w->signal_sp = at;
	w->near = w->still = 0;
	w->exact = 1;
	w->slot = at + CPU.signal_pc;
	w->g = 0;
	return WALK_ON;
}

/* As step_special() of unwind/step.h: the CFA goes into walk->word. */
CHECKED int find_special(struct walk *w, const struct recipe *r)
{
	if (!w || !r)
		return WALK_BAD_FRAME;
	uint32_t how = (uint16_t)r->cfa_vg;
	bool carried = r->cfa_reg == CPU.sp || r->cfa_reg == CPU.fp;
	if (!w->exact && (!carried || how & RECIPE_INDEX(0, 0)))
		return WALK_BAD_FRAME;
	if (read_register(w, r->cfa_reg))
		return WALK_BAD_FRAME;
	uint64_t base = w->word, cfa = base + (int64_t)r->cfa_offset, more = (int64_t)r->cfa_add;
	uint64_t mixed = 0;
	if (how & RECIPE_INDEX(0, 0)) {
		if (read_register(w, RECIPE_INDEX_REG(how)))
			return WALK_BAD_FRAME;
		uint64_t index = w->word << RECIPE_INDEX_SHIFT(how);
		if (how & RECIPE_MIXED)
			mixed = index;
		else
			cfa += index;
	}
	if (how & RECIPE_WORD) {
		if (read_word(w, cfa))
			return WALK_BAD_MEMORY;
		cfa = w->word;
	}
	if (how & RECIPE_WORD_MORE) {
		if (read_word(w, base + more))
			return WALK_BAD_MEMORY;
		more = w->word;
	}
	w->word = (cfa ^ mixed) + more;
	return WALK_ON;
}

/* The CFA goes into walk->word. */
CHECKED int find_cfa(struct walk *w, const struct recipe *r)
{
	if (!w || !r)
		return WALK_BAD_FRAME;
	if (r->cfa == RECIPE_SPECIAL)
		return find_special(w, r);
	if (read_register(w, r->cfa_reg))
		return WALK_BAD_FRAME;
	w->word += (int64_t)r->cfa_offset;
	if (r->cfa_vg)
		return WALK_COMPLEX;
	if (r->cfa == RECIPE_DEREF) {
		if (read_word(w, w->word))
			return WALK_BAD_MEMORY;
		w->word += (int64_t)r->cfa_add;
	}
	return WALK_ON;
}

/* As step_may_stay() of unwind/step.h. */
INLINE bool may_stay(const struct walk *w, const struct recipe *r, bool in_register)
{
	if (in_register)
		return w->exact || w->near ||
		       (r->ra_offset == CPU.extra && r->ra == RECIPE_IN_REG && !w->still);
	if (!w->exact || r->cfa != RECIPE_SPECIAL)
		return false;
	return r->ra == RECIPE_AT_BASE || (r->ra == RECIPE_AT_SP && r->ra_offset < 0 &&
					   -(int64_t)r->ra_offset <= CPU.red_zone);
}

CHECKED int step_frame(struct walk *w, const struct recipe *r)
{
	if (!w || !r)
		return WALK_BAD_FRAME;
	read_put_off(w);
	int end = find_cfa(w, r);
	if (end != WALK_ON)
		return end;
	uint64_t cfa = w->word, pc, fp = w->fp, extra = w->extra, slot = 0;
	bool in_register = r->ra == RECIPE_SAME || r->ra == RECIPE_IN_REG, stays = cfa == w->sp;
	if (cfa < w->sp || (stays && !may_stay(w, r, in_register)))
		return WALK_BAD_FRAME;
	if (r->ra == RECIPE_SAME) {
		if (!w->exact || read_register(w, CPU.link))
			return WALK_BAD_FRAME;
	} else {
		slot = find_slot(w, cfa, r->ra, r->ra_offset);
		if (read_value(w, r, cfa, r->ra, r->ra_offset))
			return in_register ? WALK_BAD_FRAME : WALK_BAD_MEMORY;
	}
	pc = w->word & CPU.address_bits;
	uint8_t fp_lost = w->fp_lost, extra_lost = w->extra_lost;
	if (r->fp != RECIPE_SAME) {
		fp_lost = read_value(w, r, cfa, r->fp, r->fp_offset) != 0;
		fp = w->word;
	}
	if (r->extra != RECIPE_SAME) {
		extra_lost = read_value(w, r, cfa, r->extra, r->extra_offset) != 0;
		extra = w->word;
	}
	if (!pc)
		return fp_lost || fp || r->ra == RECIPE_VIA_CFA || r->cfa == RECIPE_SPECIAL
			       ? WALK_BAD_FRAME
			       : WALK_COMPLETE;
	w->pc = pc;
	w->sp = cfa;
	w->fp = fp;
	w->extra = extra;
	w->fp_lost = fp_lost;
	w->extra_lost = extra_lost;
	w->near = w->exact || (w->near && in_register);
	w->exact = 0;
	w->still = stays;
	w->slot = slot;
	if (r->cfa == RECIPE_SPECIAL && r->cfa_vg & RECIPE_RESUMES) {
		w->pc++;
		w->slot = 0;
	}
	return WALK_ON;
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

/* The same as step_frame for most frames (KERNEL_SIMPLE), in one piece: the CFA is SP or FP plus a
   number, and what is saved is near it. */
CHECKED int step_simple(struct walk *w, const struct recipe *r)
{
	if (!w || !r)
		return WALK_BAD_FRAME;
	bool by_fp = r->cfa_reg == CPU.fp;
	if (by_fp && w->fp_at) {
		w->fp_lost = peek(w, w->fp_at, &w->fp) != 0;
		w->fp_at = 0;
	}
	uint64_t cfa = (by_fp ? w->fp : w->sp) + (int64_t)r->cfa_offset;
	uint64_t slot = cfa + (int64_t)r->ra_offset, pc;
	if ((by_fp && w->fp_lost) || cfa <= w->sp)
		return WALK_BAD_FRAME;
	if (peek(w, slot, &pc))
		return WALK_BAD_MEMORY;
	pc &= CPU.address_bits;
	if (r->fp == RECIPE_AT_CFA)
		w->fp_at = cfa + (int64_t)r->fp_offset;
	if (r->extra == RECIPE_AT_CFA)
		w->extra_at = cfa + (int64_t)r->extra_offset;
	if (!pc) {
		read_put_off(w);
		return w->fp_lost || w->fp ? WALK_BAD_FRAME : WALK_COMPLETE;
	}
	w->pc = pc;
	w->sp = cfa;
	w->near = w->exact;
	w->exact = w->still = 0;
	w->slot = slot;
	return WALK_ON;
}

/* Go's g goes into walk->word. If the walk comes from C code, it is the g that had called C. Otherwise
   it is in a register, which all Go code between the exact frame and this one leaves alone. */
CHECKED int read_g(struct walk *w, uint32_t reg)
{
	if (!w)
		return 1;
	uint64_t index = reg;
	MASK(index, KERNEL_REGISTERS - 1);
	if (w->g) {
		w->word = w->g;
		return 0;
	}
	if (!w->in_signal) {
		if (!w->all_registers && read_registers(w->registers))
			return 1;
		w->all_registers = 1;
		w->word = w->registers[index];
		return 0;
	}
	uint64_t offset = CPU.signal_registers[index];
	return !offset || read_word(w, w->signal_sp + offset);
}

/* Finds the g whose stack comes next. The g goes into walk->cfa, its SP into walk->word. The register
   holds a g only if the thread (m) of that g agrees. If it does not, the stack is copied: then there are
   more ways to find g (find_go in far.h). */
CHECKED int find_other_g(struct walk *w, const struct recipe *r)
{
	if (!w || !r || read_g(w, r->cfa_reg))
		return WALK_BAD_FRAME;
	uint64_t here = w->word, m, system, current;
	if (here & 7)
		return WALK_BAD_MEMORY;
	if (read_word(w, here + (int64_t)r->cfa_offset))
		return WALK_BAD_MEMORY;
	m = w->word;
	if (read_word(w, m))
		return WALK_BAD_MEMORY;
	system = w->word;
	if (read_word(w, m + (int64_t)r->cfa_vg))
		return WALK_BAD_MEMORY;
	current = w->word;
	if (here != system && here != current)
		return WALK_BAD_MEMORY;
	bool parked = r->cfa == RECIPE_PARKED, given_up = r->ra == RECIPE_IN_G && w->extra_lost;
	if (parked && (!current || given_up))
		return r->ra == RECIPE_IN_G ? WALK_COMPLETE : WALK_BAD_FRAME;
	w->cfa = parked ? current : system;
	if (read_word(w, w->cfa + RECIPE_FIRST(r->cfa_add)))
		return WALK_BAD_MEMORY;
	for (int i = 0; !parked && w->word < w->left; i++)
		if (i == RECIPE_NESTED || read_word(w, w->word + (int64_t)r->extra_offset))
			return WALK_BAD_MEMORY;
	return w->word ? WALK_ON : WALK_BAD_FRAME;
}

/* The CFA goes into walk->word, the g, if there is one, into walk->cfa. */
CHECKED int find_away(struct walk *w, const struct recipe *r)
{
	if (!w || !r)
		return WALK_BAD_FRAME;
	if (r->cfa == RECIPE_AWAY) {
		if (read_register(w, r->cfa_reg))
			return WALK_BAD_FRAME;
		w->word += (int64_t)r->cfa_offset;
		return WALK_ON;
	}
	if (r->cfa == RECIPE_DEPTH) {
		uint64_t g, depth;
		if (read_word(w, w->sp + (int64_t)r->cfa_offset))
			return WALK_BAD_MEMORY;
		g = w->word;
		if (read_word(w, w->sp + RECIPE_FIRST(r->cfa_add)))
			return WALK_BAD_MEMORY;
		depth = w->word;
		if (read_word(w, g + RECIPE_STACK_END))
			return WALK_BAD_MEMORY;
		w->word -= depth;
		w->g = g;
		w->left = w->sp;
	} else {
		int end = find_other_g(w, r);
		if (end != WALK_ON)
			return end;
	}
	w->word += RECIPE_SECOND(r->cfa_add);
	return WALK_ON;
}

/* Steps to a caller that may be on another stack. */
CHECKED int step_away(struct walk *w, const struct recipe *r)
{
	if (!w || !r)
		return WALK_BAD_FRAME;
	read_put_off(w);
	int end = find_away(w, r);
	if (end != WALK_ON)
		return end;
	uint64_t g = w->cfa, cfa = w->word, pc;
	bool in_g = r->ra == RECIPE_IN_G;
	if (in_g ? read_word(w, g + (int64_t)r->ra_offset)
		 : read_value(w, r, cfa, r->ra, r->ra_offset))
		return WALK_BAD_MEMORY;
	pc = w->word & CPU.address_bits;
	if (!pc || cfa & 7)
		return WALK_BAD_FRAME;
	if (r->fp != RECIPE_SAME) {
		w->fp_lost = read_value(w, r, cfa, r->fp, r->fp_offset) != 0;
		w->fp = w->word;
	}
	if (r->extra == RECIPE_IN_G) {
		w->extra_lost = read_word(w, g + (int64_t)r->extra_offset) != 0;
		w->extra = w->word;
	} else if (r->extra == RECIPE_LOST) {
		w->extra_lost = 1;
	}
	w->pc = pc;
	w->sp = cfa;
	w->near = in_g;
	w->still = 0;
	w->exact = r->cfa == RECIPE_AWAY && r->cfa_add;
	w->slot = 0;
	if (w->exact) { /* only these of its registers are known */
		w->g = read_g(w, (uint32_t)r->extra_offset) ? 0 : w->word;
		w->in_signal = 1;
		w->signal_sp = 0;
		if (CPU.link != 0xff)
			w->signal_sp = cfa - RECIPE_PUSHED_LINK -
				       CPU.signal_registers[CPU.link & (KERNEL_REGISTERS - 1)];
	}
	return WALK_ON;
}

/* Looks at one instruction. The state of the loop is in the map's memory. On the stack, the verifier
   would follow each round. */
static long look_at_one(uint32_t i, struct walk **context)
{
	struct walk *w = *context;
	uint32_t at = w->made_at;
	(void)i;
	w->made = made_insn_x86_64(w->code, &at);
	w->made_at = at;
	return w->made != MADE_ON;
}

/* Returns what is known of the frame of the code at the PC (enum made_frame): unwind/made.h. */
INLINE int look_at_code(struct walk *w)
{
	uint64_t size = 4096 - (w->pc & 4095);
	if (size > MADE_BYTES)
		size = MADE_BYTES;
	KEEP(size);
	__builtin_memset(w->code, 0, sizeof w->code);
	if (size > MADE_BYTES || bpf_probe_read_user(w->code, (uint32_t)size, (void *)w->pc))
		return MADE_FRAME;
	if (CPU.link != 0xff)
		return (int)made_frame_aarch64((const uint32_t *)w->code);
	w->made = made_first_x86_64(w->code);
	w->made_at = 0;
	if (w->made == MADE_ON)
		bpf_loop(MADE_INSNS, look_at_one, &w, 0);
	return w->made == MADE_ON ? MADE_FRAME : (int)w->made;
}

/* Steps to the caller of a first frame in code made at run time, if that code has not made its frame
   yet, or has removed it. Returns 1 if this is not the case. */
CHECKED int step_unmade(struct walk *w)
{
	if (!w || !w->exact)
		return 1;
	uint64_t at = w->sp, sp = w->sp;
	int made = look_at_code(w);
	if (made == MADE_FRAME)
		return 1;
	if (CPU.link != 0xff) {
		if (read_register(w, CPU.link))
			return 1;
		at = 0;
	} else {
		if (made == MADE_PUSHED) {
			if (read_word(w, at) || w->word != w->fp)
				return 1;
			at += 8;
		}
		if (read_word(w, at))
			return 1;
		sp = at + 8;
	}
	uint64_t ra = w->word & CPU.address_bits;
	if (!ra)
		return 1;
	w->pc = ra;
	w->sp = sp;
	w->slot = at;
	w->extra_lost = 1;
	w->exact = w->near = w->still = w->in_signal = 0;
	return 0;
}

/* Steps by the frame record at FP, for code without recipes. */
CHECKED int step_pointer(struct walk *w)
{
	if (!w)
		return WALK_BAD_FRAME;
	uint64_t fp, ra;
	read_put_off(w);
	if (w->fp_lost || w->fp < w->sp || w->fp & 7 || read_word(w, w->fp))
		return WALK_BAD_FRAME;
	fp = w->word;
	if (read_word(w, w->fp + 8))
		return WALK_BAD_FRAME;
	ra = w->word & CPU.address_bits;
	if (!ra)
		return WALK_BAD_FRAME;
	w->slot = w->fp + 8;
	w->sp = w->slot + 8;
	w->pc = ra;
	w->fp = fp;
	w->fp_lost = fp < w->sp;
	w->extra_lost = 1;
	w->exact = w->near = w->still = w->in_signal = 0;
	return WALK_ON;
}
