/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The step itself, as inline functions over a reader, so that a caller whose
 * reader is a constant (the agent, which reads its own stack) gets it compiled
 * into one piece. Everybody else calls walk_step().
 */
#include "unwind/made.h"
#include "unwind/walk.h"

typedef bool (*step_read)(void *context, uint64_t address, uint64_t *out);

/* walk_begin() */
static inline __attribute__((always_inline)) void step_begin(struct walk *w,
							     const struct unwind_cpu *cpu,
							     const uint64_t *registers, uint64_t pc)
{
	*w = (struct walk){
		.cpu = cpu,
		.pc = pc & cpu->address_bits,
		.sp = registers[cpu->sp],
		.fp = registers[cpu->fp],
		.extra = registers[cpu->extra],
		.registers = registers,
		.exact = true,
	};
}

/* walk_find_module(), which is quick where the frame before was in the same one (`last`; never NULL). */
static inline __attribute__((always_inline)) const struct walk_module *step_find_module(
	const struct walk_space *space, const struct walk_module *last, uint64_t address)
{
	if (address - last->start < last->end - last->start)
		return last;
	return walk_find_module(space, address);
}

static inline __attribute__((always_inline)) bool step_register(const struct walk *w, unsigned reg,
								step_read read, void *context,
								uint64_t *out)
{
	if (reg == w->cpu->sp) {
		*out = w->sp;
		return true;
	}
	if (reg == w->cpu->fp && !w->fp_lost) {
		*out = w->fp;
		return true;
	}
	if (reg == w->cpu->extra && !w->extra_lost) {
		*out = w->extra;
		return true;
	}
	if (!(w->exact || w->near) || reg >= CPU_REGISTERS)
		return false;
	if (w->registers) {
		*out = w->registers[reg];
		return true;
	}
	unsigned offset = w->cpu->signal_registers[reg];
	return offset && read(context, w->signal_sp + offset, out);
}

/* A value that a recipe says where to find. *slot is its address, 0 where it is in a register. */
static inline __attribute__((always_inline)) bool step_value(const struct walk *w, uint64_t cfa,
							     unsigned where, int32_t offset,
							     step_read read, void *context,
							     uint64_t *out, uint64_t *slot)
{
	uint64_t base = cfa;
	*slot = 0;
	switch (where) {
	case RECIPE_AT_CFA:
		break;
	case RECIPE_AT_FP:
		if (w->fp_lost)
			return false;
		base = w->fp;
		break;
	case RECIPE_AT_SP:
		base = w->sp;
		break;
	case RECIPE_IN_REG:
		return step_register(w, (unsigned)offset, read, context, out);
	case RECIPE_VIA_CFA: /* no slot: the object may be gone before the frame is */
		return read(context, cfa + (uint64_t)(int64_t)RECIPE_VIA_SLOT(offset), &base) &&
		       read(context, base + RECIPE_VIA_MEMBER(offset), out);
	default:
		return false;
	}
	*slot = base + (uint64_t)(int64_t)offset;
	return read(context, *slot, out);
}

static inline __attribute__((always_inline)) enum walk_end step_signal(struct walk *w,
								       step_read read,
								       void *context)
{
	const struct unwind_cpu *cpu = w->cpu;
	uint64_t at = w->sp, pc, sp, fp, extra;
	if (!read(context, at + cpu->signal_pc, &pc) ||
	    !read(context, at + cpu->signal_registers[cpu->sp], &sp) ||
	    !read(context, at + cpu->signal_registers[cpu->fp], &fp) ||
	    !read(context, at + cpu->signal_registers[cpu->extra], &extra))
		return WALK_BAD_MEMORY;
	w->pc = pc;
	w->sp = sp;
	w->fp = fp;
	w->extra = extra;
	w->fp_lost = w->extra_lost = false;
	w->registers = NULL;
	w->signal_sp = at;
	w->near = false;
	w->exact = true;
	w->slot = at + cpu->signal_pc;
	return WALK_ON;
}

static inline __attribute__((always_inline)) enum walk_end step_cfa(const struct walk *w,
								    const struct recipe *r,
								    step_read read, void *context,
								    uint64_t *cfa)
{
	if (!step_register(w, r->cfa_reg, read, context, cfa))
		return WALK_BAD_FRAME;
	*cfa += (uint64_t)(int64_t)r->cfa_offset;
	if (__builtin_expect(r->cfa == RECIPE_REG && !r->cfa_vg, 1))
		return WALK_ON;
	if (r->cfa_vg)
		return WALK_COMPLEX;
	if (!read(context, *cfa, cfa))
		return WALK_BAD_MEMORY;
	*cfa += (uint64_t)(int64_t)r->cfa_add;
	return WALK_ON;
}

static inline __attribute__((always_inline)) enum walk_end step_frame(struct walk *w,
								      const struct recipe *r,
								      step_read read, void *context)
{
	uint64_t cfa, pc, fp = w->fp, extra = w->extra, slot = 0, other;
	enum walk_end end = step_cfa(w, r, read, context, &cfa);
	if (end != WALK_ON)
		return end;
	bool in_register = r->ra == RECIPE_SAME || r->ra == RECIPE_IN_REG;
	if (cfa < w->sp || (cfa == w->sp && !((w->exact || w->near) && in_register)))
		return WALK_BAD_FRAME;
	if (r->ra == RECIPE_SAME) {
		if (!w->exact || !step_register(w, w->cpu->link, read, context, &pc))
			return WALK_BAD_FRAME;
	} else if (!step_value(w, cfa, r->ra, r->ra_offset, read, context, &pc, &slot)) {
		return in_register ? WALK_BAD_FRAME : WALK_BAD_MEMORY;
	}
	bool fp_lost = r->fp == RECIPE_SAME ? w->fp_lost
					    : !step_value(w, cfa, r->fp, r->fp_offset, read,
							  context, &fp, &other);
	bool extra_lost = r->extra == RECIPE_SAME ? w->extra_lost
						  : !step_value(w, cfa, r->extra, r->extra_offset,
								read, context, &extra, &other);
	pc &= w->cpu->address_bits;
	/* A coroutine or thread that was started with no way back has zero in both; zero alone is as
	   likely the wrong word. */
	if (!pc)
		return fp_lost || fp || r->ra == RECIPE_VIA_CFA ? WALK_BAD_FRAME : WALK_COMPLETE;
	w->pc = pc;
	w->sp = cfa;
	w->fp = fp;
	w->extra = extra;
	w->fp_lost = fp_lost;
	w->extra_lost = extra_lost;
	w->near = w->exact || (w->near && in_register);
	w->exact = false;
	w->slot = slot;
	return WALK_ON;
}

/* From a frame whose recipe is known. */
static inline __attribute__((always_inline)) enum walk_end step_recipe(struct walk *w,
								       const struct recipe *r,
								       step_read read,
								       void *context)
{
	w->recipe = r;
	if (__builtin_expect(r->cfa == RECIPE_REG || r->cfa == RECIPE_DEREF, 1))
		return step_frame(w, r, read, context);
	switch (r->cfa) {
	case RECIPE_ROOT:
		return WALK_COMPLETE;
	case RECIPE_SIGNAL:
		return step_signal(w, read, context);
	case RECIPE_COMPLEX:
		return WALK_COMPLEX;
	default:
		return WALK_NO_RECIPE;
	}
}

static inline __attribute__((always_inline)) enum walk_end step_inline(
	struct walk *w, const struct walk_module *module, step_read read, void *context)
{
	return step_recipe(w, table_find(&module->table, w->pc - !w->exact - module->bias), read,
			   context);
}

/*
 * By the frame record at FP, for code without recipes: the caller's FP, and above it the return
 * address. False where FP leads nowhere.
 */
static inline __attribute__((always_inline)) bool step_pointer(struct walk *w, step_read read,
							       void *context)
{
	uint64_t fp, ra;
	if (w->fp_lost || w->fp < w->sp || w->fp % sizeof fp ||
	    w->fp > UINT64_MAX - 2 * sizeof fp || !read(context, w->fp, &fp) ||
	    !read(context, w->fp + sizeof fp, &ra))
		return false;
	ra &= w->cpu->address_bits;
	if (!ra)
		return false;
	uint64_t slot = w->fp + sizeof fp, sp = slot + sizeof ra;
	*w = (struct walk){.cpu = w->cpu,
			   .pc = ra,
			   .sp = sp,
			   .fp = fp,
			   .slot = slot,
			   .extra_lost = true,
			   .fp_lost = fp < sp};
	return true;
}

/* From a first frame in such code that has none of its own (unwind/made.h), to where it was called.
   False where it is not so after all. */
static inline __attribute__((always_inline)) bool step_unmade(struct walk *w, enum made_frame made,
							      step_read read, void *context)
{
	uint64_t ra, word, at = w->sp, link = w->cpu->link;
	if (!w->exact || made == MADE_FRAME)
		return false;
	if (link != CPU_NO_REGISTER) {
		if (!step_register(w, (unsigned)link, read, context, &ra))
			return false;
		at = 0;
	} else {
		if (made == MADE_PUSHED && (!read(context, at, &word) || word != w->fp))
			return false;
		at += made == MADE_PUSHED ? sizeof word : 0;
		if (!read(context, at, &ra))
			return false;
		w->sp = at + sizeof ra;
	}
	ra &= w->cpu->address_bits;
	if (!ra)
		return false;
	*w = (struct walk){.cpu = w->cpu,
			   .pc = ra,
			   .sp = w->sp,
			   .fp = w->fp,
			   .slot = at,
			   .extra_lost = true,
			   .fp_lost = w->fp_lost};
	return true;
}

/* After step_pointer into code that has a recipe. `top`: the callee is known to have its record at the
   upper end of its frame (on x86-64 everybody has). Else what it has above that is not known, but where
   the caller has its own record below its CFA is. False where SP cannot be told and the recipe needs it. */
static inline bool step_pointer_compiled(struct walk *w, const struct recipe *r, bool top)
{
	if (w->cpu->link == CPU_NO_REGISTER || top || r->cfa == RECIPE_ROOT)
		return true;
	if (r->cfa == RECIPE_SIGNAL || w->fp_lost || w->fp < w->sp)
		return false;
	if (r->cfa_reg != w->cpu->sp) {
		w->sp = w->fp;
		return true;
	}
	if (r->cfa != RECIPE_REG || r->fp != RECIPE_AT_CFA || r->ra != RECIPE_AT_CFA ||
	    r->ra_offset != r->fp_offset + 8)
		return false;
	uint64_t sp = w->fp - (uint64_t)((int64_t)r->fp_offset + r->cfa_offset);
	if (sp < w->sp)
		return false;
	w->sp = sp;
	return true;
}

/*
 * The recipes of places seen before. Stacks repeat themselves: a walker that keeps one of these
 * (zeroed at first, one per thread, zeroed again when a module goes away) rarely looks up anything.
 */
#define STEP_CACHE_BITS 9

struct step_place {
	uint64_t address;
	const struct recipe *recipe;
	uint64_t key; /* for whoever fills it in: what else is known about the place */
};

struct step_cache {
	struct step_place slots[1 << STEP_CACHE_BITS];
};

/* What is known about the code at `address`, or NULL where it is of no module. */
static inline __attribute__((always_inline)) const struct step_place *step_lookup(
	const struct walk_space *space, struct step_cache *cache, uint64_t address)
{
	struct step_place *slot =
		&cache->slots[(address * 0x9e3779b97f4a7c15u) >> (64 - STEP_CACHE_BITS)];
	if (__builtin_expect(slot->address != address, 0)) {
		const struct walk_module *module = walk_find_module(space, address);
		if (!module)
			return NULL;
		slot->recipe = table_find(&module->table, address - module->bias);
		slot->address = address;
	}
	return slot;
}

static inline __attribute__((always_inline)) enum walk_end step_cached(
	struct walk *w, const struct walk_space *space, struct step_cache *cache, step_read read,
	void *context)
{
	const struct step_place *found = step_lookup(space, cache, w->pc - !w->exact);
	return found ? step_recipe(w, found->recipe, read, context) : WALK_NO_MODULE;
}
