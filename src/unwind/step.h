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
	if (reg == w->cpu->fp) {
		*out = w->fp;
		return !w->fp_lost; /* what the frame before has there is not this one's */
	}
	if (reg == w->cpu->extra) {
		*out = w->extra;
		return !w->extra_lost;
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
static inline __attribute__((always_inline)) bool step_value(const struct walk *w,
							     const struct recipe *r, uint64_t cfa,
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
	case RECIPE_AT_BASE:
		return step_register(w, r->cfa_reg, read, context, &base) &&
		       read(context, base + (uint64_t)(int64_t)offset, out);
	case RECIPE_VIA_BASE:
		return step_register(w, r->cfa_reg, read, context, &base) &&
		       read(context, base + (uint64_t)(int64_t)offset, &base) &&
		       read(context, base, out);
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
	w->near = w->still = false;
	w->exact = true;
	w->slot = at + cpu->signal_pc;
	w->g = 0;
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

/* May the caller's SP be this frame's? Invariant 2 of walk.h. */
static inline __attribute__((always_inline)) bool step_may_stay(const struct walk *w,
								const struct recipe *r,
								bool in_register)
{
	if (in_register)
		return w->exact || w->near ||
		       (r->ra_offset == w->cpu->extra && r->ra == RECIPE_IN_REG && !w->still);
	if (!w->exact || r->cfa != RECIPE_SPECIAL)
		return false;
	return r->ra == RECIPE_AT_BASE || (r->ra == RECIPE_AT_SP && r->ra_offset < 0 &&
					   -(int64_t)r->ra_offset <= w->cpu->red_zone);
}

/* To the caller, whose SP is known. */
static inline __attribute__((always_inline)) enum walk_end step_to(struct walk *w,
								   const struct recipe *r,
								   uint64_t cfa, step_read read,
								   void *context)
{
	uint64_t pc, fp = w->fp, extra = w->extra, slot = 0, other;
	bool in_register = r->ra == RECIPE_SAME || r->ra == RECIPE_IN_REG, stays = cfa == w->sp;
	if (cfa < w->sp || (stays && !step_may_stay(w, r, in_register)))
		return WALK_BAD_FRAME;
	if (r->ra == RECIPE_SAME) {
		if (!w->exact || !step_register(w, w->cpu->link, read, context, &pc))
			return WALK_BAD_FRAME;
	} else if (!step_value(w, r, cfa, r->ra, r->ra_offset, read, context, &pc, &slot)) {
		return in_register ? WALK_BAD_FRAME : WALK_BAD_MEMORY;
	}
	bool fp_lost = r->fp == RECIPE_SAME ? w->fp_lost
					    : !step_value(w, r, cfa, r->fp, r->fp_offset, read,
							  context, &fp, &other);
	bool extra_lost = r->extra == RECIPE_SAME
				  ? w->extra_lost
				  : !step_value(w, r, cfa, r->extra, r->extra_offset, read, context,
						&extra, &other);
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
	w->still = stays;
	w->slot = slot;
	return WALK_ON;
}

static inline __attribute__((always_inline)) enum walk_end step_frame(struct walk *w,
								      const struct recipe *r,
								      step_read read, void *context)
{
	uint64_t cfa;
	enum walk_end end = step_cfa(w, r, read, context, &cfa);
	return end == WALK_ON ? step_to(w, r, cfa, read, context) : end;
}

/* RECIPE_SPECIAL: seldom, and so not a part of every walker. */
static __attribute__((noinline, unused)) enum walk_end step_special(struct walk *w,
								    const struct recipe *r,
								    step_read read, void *context)
{
	uint64_t base, index = 0, cfa, more = (uint64_t)(int64_t)r->cfa_add;
	unsigned how = (uint16_t)r->cfa_vg;
	bool carried = r->cfa_reg == w->cpu->sp || r->cfa_reg == w->cpu->fp;
	if (!w->exact && (!carried || how & RECIPE_INDEX(0, 0)))
		return WALK_BAD_FRAME; /* a callee may have other things there, also the next one */
	if (!step_register(w, r->cfa_reg, read, context, &base) ||
	    (how & RECIPE_INDEX(0, 0) &&
	     !step_register(w, RECIPE_INDEX_REG(how), read, context, &index)))
		return WALK_BAD_FRAME;
	index <<= RECIPE_INDEX_SHIFT(how);
	cfa = base + (uint64_t)(int64_t)r->cfa_offset + (how & RECIPE_MIXED ? 0 : index);
	if ((how & RECIPE_WORD && !read(context, cfa, &cfa)) ||
	    (how & RECIPE_WORD_MORE && !read(context, base + more, &more)))
		return WALK_BAD_MEMORY;
	cfa = (how & RECIPE_MIXED ? cfa ^ index : cfa) + more;
	enum walk_end end = step_to(w, r, cfa, read, context);
	if (end == WALK_ON && how & RECIPE_RESUMES) {
		w->pc++;
		w->slot = 0; /* its word is not the PC that we stand on */
	}
	return end == WALK_COMPLETE ? WALK_BAD_FRAME : end; /* such code has a caller */
}

/* Go's g: where the code before this was C, the one that had called it; else it is in a register, which
   all Go code between the exact frame and this one leaves alone. */
static inline bool step_g(const struct walk *w, unsigned reg, step_read read, void *context,
			  uint64_t *out)
{
	*out = w->g;
	if (*out)
		return true;
	if (w->registers) {
		*out = w->registers[reg % CPU_REGISTERS];
		return true;
	}
	unsigned offset = w->cpu->signal_registers[reg % CPU_REGISTERS];
	return offset && read(context, w->signal_sp + offset, out);
}

/* The g whose stack comes next, and its SP there. What the register holds is a g if its thread says so. */
static inline enum walk_end step_other_g(const struct walk *w, const struct recipe *r,
					 step_read read, void *context, uint64_t *g, uint64_t *sp)
{
	uint64_t here, m, system, current;
	if (!step_g(w, r->cfa_reg, read, context, &here) || here % 8)
		return WALK_BAD_FRAME;
	if (!read(context, here + (uint64_t)(int64_t)r->cfa_offset, &m) ||
	    !read(context, m, &system) ||
	    !read(context, m + (uint64_t)(int64_t)r->cfa_vg, &current))
		return WALK_BAD_MEMORY;
	if (here != system && here != current)
		return WALK_BAD_FRAME;
	bool parked = r->cfa == RECIPE_PARKED, given_up = r->ra == RECIPE_IN_G && w->extra_lost;
	if (parked && (!current || given_up))
		return r->ra == RECIPE_IN_G ? WALK_COMPLETE : WALK_BAD_FRAME;
	*g = parked ? current : system;
	if (!read(context, *g + RECIPE_FIRST(r->cfa_add), sp))
		return WALK_BAD_MEMORY;
	for (int i = 0; !parked && *sp < w->left; i++)
		if (i == RECIPE_NESTED ||
		    !read(context, *sp + (uint64_t)(int64_t)r->extra_offset, sp))
			return WALK_BAD_MEMORY;
	return *sp ? WALK_ON : WALK_BAD_FRAME;
}

static inline enum walk_end step_away_cfa(struct walk *w, const struct recipe *r, step_read read,
					  void *context, uint64_t *g, uint64_t *cfa)
{
	uint64_t depth;
	if (r->cfa == RECIPE_AWAY) {
		if (!step_register(w, r->cfa_reg, read, context, cfa))
			return WALK_BAD_FRAME;
		*cfa += (uint64_t)(int64_t)r->cfa_offset;
		return WALK_ON;
	}
	if (r->cfa == RECIPE_DEPTH) {
		if (!read(context, w->sp + (uint64_t)(int64_t)r->cfa_offset, g) ||
		    !read(context, w->sp + RECIPE_FIRST(r->cfa_add), &depth) ||
		    !read(context, *g + RECIPE_STACK_END, cfa))
			return WALK_BAD_MEMORY;
		*cfa -= depth;
		w->g = *g;
		w->left = w->sp;
	} else {
		enum walk_end end = step_other_g(w, r, read, context, g, cfa);
		if (end != WALK_ON)
			return end;
	}
	*cfa += RECIPE_SECOND(r->cfa_add);
	return WALK_ON;
}

/* To a caller that may be on another stack. */
static inline enum walk_end step_away(struct walk *w, const struct recipe *r, step_read read,
				      void *context)
{
	uint64_t g = 0, cfa, pc, fp = w->fp, slot;
	enum walk_end end = step_away_cfa(w, r, read, context, &g, &cfa);
	if (end != WALK_ON)
		return end;
	bool in_g = r->ra == RECIPE_IN_G;
	if (in_g ? !read(context, g + (uint64_t)(int64_t)r->ra_offset, &pc)
		 : !step_value(w, r, cfa, r->ra, r->ra_offset, read, context, &pc, &slot))
		return WALK_BAD_MEMORY;
	pc &= w->cpu->address_bits;
	if (!pc || cfa % 8)
		return WALK_BAD_FRAME;
	if (r->fp != RECIPE_SAME)
		w->fp_lost = !step_value(w, r, cfa, r->fp, r->fp_offset, read, context, &fp, &slot);
	/* A procedure that needs a larger stack has its own return address nowhere else. */
	if (r->extra == RECIPE_IN_G)
		w->extra_lost = !read(context, g + (uint64_t)(int64_t)r->extra_offset, &w->extra);
	else if (r->extra == RECIPE_LOST)
		w->extra_lost = true;
	w->pc = pc;
	w->sp = cfa;
	w->fp = fp;
	w->near = in_g;
	w->still = false;
	w->exact = r->cfa == RECIPE_AWAY && r->cfa_add;
	w->slot = 0;
	if (w->exact) { /* of its registers only these are known */
		if (!step_g(w, (unsigned)r->extra_offset, read, context, &w->g))
			w->g = 0;
		w->registers = NULL;
		w->signal_sp = 0;
		if (w->cpu->link != CPU_NO_REGISTER)
			w->signal_sp = cfa - RECIPE_PUSHED_LINK -
				       w->cpu->signal_registers[w->cpu->link];
	}
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
		return w->exact && r->cfa_add == RECIPE_RETURNED ? WALK_NO_RECIPE
								 : step_signal(w, read, context);
	case RECIPE_COMPLEX:
		return WALK_COMPLEX;
	case RECIPE_SPECIAL:
		return step_special(w, r, read, context);
	case RECIPE_AWAY:
	case RECIPE_DEPTH:
	case RECIPE_PARKED:
	case RECIPE_CALLBACK:
		return step_away(w, r, read, context);
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

struct step_known {
	uint64_t address;
	const struct recipe *recipe;
	uint64_t key; /* for whoever fills it in: what else is known about the place */
};

struct step_cache {
	struct step_known slots[1 << STEP_CACHE_BITS];
};

/* What is known about the code at `address`, or NULL where it is of no module. */
static inline __attribute__((always_inline)) const struct step_known *step_lookup(
	const struct walk_space *space, struct step_cache *cache, uint64_t address)
{
	struct step_known *slot =
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
	const struct step_known *found = step_lookup(space, cache, w->pc - !w->exact);
	return found ? step_recipe(w, found->recipe, read, context) : WALK_NO_MODULE;
}
