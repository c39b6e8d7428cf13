/* SPDX-License-Identifier: Apache-2.0 */
#include "recipes/corrections.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "flow/frame.h"
#include "isa/insn.h"
#include "recipes/analysis.h"
#include "recipes/rows.h"

struct corrector {
	const struct analysis *analysis;
	const struct rows *cfi;
	void (*each)(void *context, enum correction why, uint64_t start, uint64_t end);
	void *context;
	size_t row; /* of cfi, at or before the place */
	/* The instruction before, where its state is certain: both agree on it or refute the CFI. */
	const struct frame_state *certain;
	uint64_t before, next;
	/* A disagreement about which nothing is certain came right before; `met` is the rule of the CFI with
	   which the two have met since then. */
	const struct frame_state *doubted;
	const struct recipe *met;
	/* The disagreement under way: none where run_start is 0. What is certain in it comes first. */
	uint64_t run_start, certain_end;
	/* What was compared last: most instructions change neither. */
	const struct frame_state *last_state;
	const struct recipe *last_cfi;
	enum frame_verdict last_verdict;
};

static void decode(const struct corrector *c, uint64_t address, struct insn *insn)
{
	size_t size;
	const uint8_t *code = trace_bytes(c->analysis->trace, address, &size);
	if (code)
		c->analysis->isa->decode(code, size, address, insn);
	else
		*insn = (struct insn){.kind = INSN_BAD};
}

static bool is_call(const struct corrector *c, uint64_t address)
{
	struct insn insn;
	decode(c, address, &insn);
	return insn.kind == INSN_CALL || insn.kind == INSN_CALL_INDIRECT;
}

/* Does the procedure end here, with the stack as it was at the entry? */
static bool leaves_procedure(const struct corrector *c, const struct trace_point *p)
{
	struct insn insn;
	if (!frame_is_entry(c->analysis->isa, p->state))
		return false;
	decode(c, p->address, &insn);
	return insn.kind == INSN_RETURN || insn.kind == INSN_JUMP ||
	       insn.kind == INSN_JUMP_INDIRECT;
}

/* Does the state at `p` follow, by one instruction, from `from` at the one before it? */
static bool follows(const struct corrector *c, const struct frame_state *from,
		    const struct trace_point *p)
{
	const struct isa *isa = c->analysis->isa;
	struct frame_state state;
	struct recipe mine, here;
	struct insn insn;
	if (!from || p->address != c->next || p->start)
		return false;
	decode(c, c->before, &insn);
	if (insn.kind != INSN_OTHER && insn.kind != INSN_NOP && insn.kind != INSN_BRANCH)
		return false;
	state = *from;
	frame_apply(isa, &state, &insn);
	frame_recipe(isa, &state, &mine);
	frame_recipe(isa, p->state, &here);
	return !memcmp(&mine, &here, sizeof mine);
}

/* A register that the CFI relies on is known to hold something that is not what the CFI says: the
   one the CFA hangs on, or FP where it is said to be unchanged; or FP, which is the caller's again, is
   said to be in the frame that it points to (the epilogue of a realigned stack, by GCC). Or the return address is said to be
   in the stack, where nothing has stored it: it is still in the link register. (Not before a call,
   which would lose it: then somebody has written over it on purpose.) */
static bool refutes(const struct corrector *c, const struct trace_point *p,
		    const struct recipe *cfi, enum frame_verdict verdict)
{
	struct frame_value value;
	struct recipe mine;
	if (cfi->fp == RECIPE_SAME && p->state->fp.kind != FRAME_FP)
		return true;
	if (verdict == FRAME_OTHER_FP && cfi->fp == RECIPE_AT_FP && p->state->fp.kind == FRAME_FP)
		return true;
	if (verdict == FRAME_OTHER_RA && cfi->ra == RECIPE_AT_CFA) {
		frame_recipe(c->analysis->isa, p->state, &mine);
		return mine.ra == RECIPE_SAME && !is_call(c, p->address);
	}
	if (cfi->cfa != RECIPE_REG || cfi->cfa_vg)
		return false;
	value = frame_register(c->analysis->isa, p->state, cfi->cfa_reg);
	return value.kind == FRAME_FP ||
	       (value.kind == FRAME_CFA && value.offset + cfi->cfa_offset != 0);
}

static void end_run(struct corrector *c)
{
	if (c->run_start && c->certain_end > c->run_start)
		c->each(c->context, CORRECTION_LATE, c->run_start, c->certain_end);
	c->run_start = 0;
}

static void differ(struct corrector *c, const struct trace_point *p, const struct recipe *cfi,
		   enum frame_verdict verdict)
{
	bool certain = refutes(c, p, cfi, verdict) && follows(c, c->certain, p);
	uint64_t end = p->address + p->length;
	if (!c->run_start)
		c->run_start = c->certain_end = p->address;
	if (certain && c->certain_end == p->address)
		c->certain_end = end;
	c->certain = certain ? p->state : NULL;
	c->doubted = certain ? NULL : p->state;
	c->met = NULL;
	if (c->certain_end == end && leaves_procedure(c, p)) {
		c->each(c->context, CORRECTION_EPILOGUE, c->run_start, end);
		c->run_start = 0;
	}
}

static enum frame_verdict compare(struct corrector *c, const struct frame_state *state,
				  const struct recipe *cfi)
{
	if (state != c->last_state || cfi != c->last_cfi)
		c->last_verdict = frame_confirms(c->analysis->isa, state, cfi);
	c->last_state = state;
	c->last_cfi = cfi;
	return c->last_verdict;
}

/*
 * Do they agree by chance? One of the two was wrong at the instruction before, we do not know which. That
 * moved SP, which only the analysis followed, and now they say the same. CFI that is late gives this, and an
 * analysis that is wrong by as much: it proves nothing until the CFI says something else.
 */
static bool meet_by_chance(struct corrector *c, const struct trace_point *p,
			   const struct recipe *cfi)
{
	bool by_sp = cfi->cfa == RECIPE_REG && cfi->cfa_reg == c->analysis->isa->sp;
	if (by_sp && follows(c, c->doubted, p))
		c->met = cfi;
	else if (p->address != c->next || p->start || c->met != cfi)
		c->met = NULL;
	c->doubted = NULL;
	return c->met;
}

static void correct_place(void *context, const struct trace_point *p)
{
	struct corrector *c = context;
	const struct recipe *cfi = &c->cfi->rules[rows_follow(c->cfi, &c->row, p->address)];
	/* A guess that the CFI confirms is none any more; what follows from it is as certain. */
	bool known = cfi->cfa != RECIPE_NONE;
	enum frame_verdict verdict = known ? compare(c, p->state, cfi) : FRAME_AGREES;
	bool differs = verdict == FRAME_OTHER_CFA || verdict == FRAME_OTHER_RA ||
		       verdict == FRAME_OTHER_FP;
	if (p->address != c->next || !differs)
		end_run(c);
	if (differs)
		differ(c, p, cfi, verdict);
	else if (meet_by_chance(c, p, cfi))
		c->certain = NULL;
	else
		c->certain = known && verdict == FRAME_AGREES ? p->state : NULL;
	c->before = p->address;
	c->next = p->address + p->length;
}

void corrections_each(const struct analysis *analysis, const struct rows *cfi,
		      void (*each)(void *context, enum correction why, uint64_t start,
				   uint64_t end),
		      void *context)
{
	struct corrector c = {.analysis = analysis, .cfi = cfi, .each = each, .context = context};
	trace_each(analysis->trace, false, correct_place, &c);
	end_run(&c);
}
