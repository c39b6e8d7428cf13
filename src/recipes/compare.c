/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two passes over the code. The first finds the runs on which CFI is provably
 * wrong: whether an instruction belongs to one is known only at the run's end.
 * The second gives every instruction its cause. Millions of instructions share
 * few states and rules, so the verdict on a state is kept with the rule that it
 * was given for.
 */
#include "recipes/compare.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "flow/frame.h"
#include "isa/insn.h"
#include "recipes/analysis.h"
#include "recipes/corrections.h"
#include "recipes/rows.h"

struct span {
	uint64_t start, end;
	enum compare_cause cause;
};

struct known { /* about a state, by its id */
	uint32_t rule;
	uint8_t verdict;  /* on the rule */
	bool has_verdict; /* for `rule` */
	bool has_recipe;  /* the state gives one */
	bool seen;
};

struct comparer {
	const struct analysis *analysis;
	const struct rows *cfi;
	struct compare *out;
	size_t row;
	struct span *wrong; /* where CFI is */
	size_t wrong_count, wrong_capacity, wrong_next;
	struct known *known;
	size_t known_count;
	size_t list, listed[COMPARE_CAUSES], run_capacity;
	enum compare_cause last; /* cause of the instruction before */
	uint64_t last_end;       /* where that ends */
	struct compare_run *run; /* the one under way; NULL where it is not listed */
	bool failed;
};

static void add_wrong(void *context, enum correction why, uint64_t start, uint64_t end)
{
	struct comparer *c = context;
	if (!ARRAY_ROOM(c->wrong, c->wrong_count, c->wrong_capacity)) {
		c->failed = true;
		return;
	}
	c->wrong[c->wrong_count++] = (struct span){
		start, end, why == CORRECTION_EPILOGUE ? COMPARE_EPILOGUE : COMPARE_LATE};
}

/* Why the CFI is provably wrong there; COMPARE_AGREE where it is not. */
static enum compare_cause wrong_at(struct comparer *c, uint64_t address)
{
	while (c->wrong_next < c->wrong_count && c->wrong[c->wrong_next].end <= address)
		c->wrong_next++;
	if (c->wrong_next == c->wrong_count || c->wrong[c->wrong_next].start > address)
		return COMPARE_AGREE;
	return c->wrong[c->wrong_next].cause;
}

/* ---- the verdict on an instruction ---- */

static struct known *known_state(struct comparer *c, const struct trace_point *p)
{
	struct known *known;
	if (p->fresh && c->known_count)
		memset(c->known, 0, c->known_count * sizeof *c->known);
	if (p->state_id >= c->known_count) {
		size_t wanted = ((size_t)p->state_id + 1) * 2;
		known = realloc(c->known, wanted * sizeof *known);
		if (!known) {
			c->failed = true;
			return NULL;
		}
		memset(known + c->known_count, 0, (wanted - c->known_count) * sizeof *known);
		c->known = known;
		c->known_count = wanted;
	}
	known = &c->known[p->state_id];
	if (!known->seen) {
		struct recipe recipe;
		frame_recipe(c->analysis->isa, p->state, &recipe);
		known->has_recipe = recipe.cfa != RECIPE_NONE;
		known->seen = true;
	}
	return known;
}

/* On every way here from the entry, the code put something else into FP. (Hand-written code that
   only its own kind calls does that without a word.) */
static bool overwrites_fp(const struct frame_state *state, const struct recipe *cfi)
{
	return cfi->fp == RECIPE_SAME && !state->guessed && state->fp.kind != FRAME_FP;
}

static enum compare_cause cause_of(struct comparer *c, const struct trace_point *p,
				   struct known *known, uint32_t rule)
{
	static const enum compare_cause causes[] = {
		[FRAME_AGREES] = COMPARE_AGREE,  [FRAME_NO_STATE] = COMPARE_NO_STATE,
		[FRAME_OTHER_CFA] = COMPARE_CFA, [FRAME_OTHER_RA] = COMPARE_RA,
		[FRAME_OTHER_FP] = COMPARE_FP,   [FRAME_NOT_SAYABLE] = COMPARE_EXPRESSION,
	};
	const struct recipe *cfi = &c->cfi->rules[rule];
	enum compare_cause cause, wrong;
	if (cfi->cfa == RECIPE_NONE)
		return COMPARE_CFI_ABSENT;
	if (!known->has_verdict || known->rule != rule) {
		known->verdict = (uint8_t)frame_confirms(c->analysis->isa, p->state, cfi);
		known->rule = rule;
		known->has_verdict = true;
	}
	cause = causes[known->verdict];
	if (cause == COMPARE_AGREE)
		return cause;
	wrong = wrong_at(c, p->address);
	if (wrong != COMPARE_AGREE)
		return wrong;
	if (cause == COMPARE_FP && overwrites_fp(p->state, cfi))
		return COMPARE_CLOBBER;
	return cause == COMPARE_CFA && cfi->cfa == RECIPE_ROOT ? COMPARE_ROOT : cause;
}

/* ---- counting ---- */

static void begin_run(struct comparer *c, enum compare_cause cause, uint64_t address,
		      const struct frame_state *state, uint32_t rule)
{
	struct compare *out = c->out;
	c->run = NULL;
	if (cause == COMPARE_AGREE || c->listed[cause] == c->list)
		return;
	if (!ARRAY_ROOM(out->runs, out->run_count, c->run_capacity)) {
		c->failed = true;
		return;
	}
	c->listed[cause]++;
	c->run = &out->runs[out->run_count++];
	*c->run = (struct compare_run){
		.address = address, .cause = cause, .cfi = c->cfi->rules[rule]};
	if (state)
		frame_recipe(c->analysis->isa, state, &c->run->code);
}

static void count_instruction(struct comparer *c, enum compare_cause cause, uint64_t address,
			      unsigned length, const struct frame_state *state, uint32_t rule)
{
	c->out->instructions++;
	c->out->compared += cause != COMPARE_CFI_ABSENT;
	c->out->count[cause]++;
	if (cause != c->last || address != c->last_end)
		begin_run(c, cause, address, state, rule);
	if (c->run)
		c->run->instructions++;
	c->last = cause;
	c->last_end = address + length;
}

/* Code that was not reached: what is no padding but has CFI should have been. */
static void compare_gap(struct comparer *c, uint64_t start, uint64_t end)
{
	const struct isa *isa = c->analysis->isa;
	struct insn insn;
	size_t size;
	for (uint64_t at = start; at < end; at += insn.length) {
		const uint8_t *code = trace_bytes(c->analysis->trace, at, &size);
		uint32_t rule = rows_follow(c->cfi, &c->row, at);
		if (!code)
			return;
		isa->decode(code, size, at, &insn);
		if (!rule)
			continue;
		c->out->cfi_bytes += insn.length < end - at ? insn.length : end - at;
		if (insn.kind != INSN_NOP && insn.kind != INSN_TRAP && insn.kind != INSN_BAD)
			count_instruction(c, COMPARE_UNREACHED, at, insn.length, NULL, rule);
	}
}

static void compare_place(void *context, const struct trace_point *p)
{
	struct comparer *c = context;
	struct known *known;
	uint32_t rule;
	c->out->code_bytes += p->length;
	if (!p->state) {
		compare_gap(c, p->address, p->address + p->length);
		return;
	}
	known = known_state(c, p);
	if (!known)
		return;
	rule = rows_follow(c->cfi, &c->row, p->address);
	if (rule)
		c->out->cfi_bytes += p->length;
	if (known->has_recipe)
		c->out->analysis_bytes += p->length;
	count_instruction(c, cause_of(c, p, known, rule), p->address, p->length, p->state, rule);
}

struct err *compare_sources(const struct analysis *analysis, const struct rows *cfi, size_t list,
			    struct compare *out)
{
	struct comparer c = {.analysis = analysis, .cfi = cfi, .out = out, .list = list};
	memset(out, 0, sizeof *out);
	corrections_each(analysis, cfi, add_wrong, &c);
	trace_each(analysis->trace, true, compare_place, &c);
	free(c.wrong);
	free(c.known);
	if (!c.failed)
		return NULL;
	compare_free(out);
	return err_new("out of memory");
}

void compare_free(struct compare *compare)
{
	free(compare->runs);
	memset(compare, 0, sizeof *compare);
}

uint64_t compare_explained(const struct compare *compare)
{
	return compare->count[COMPARE_EPILOGUE] + compare->count[COMPARE_LATE] +
	       compare->count[COMPARE_CLOBBER] + compare->count[COMPARE_ROOT];
}

/* ---- words ---- */

const char *compare_cause_name(enum compare_cause cause)
{
	static const char *const names[COMPARE_CAUSES] = {
		[COMPARE_AGREE] = "agree",
		[COMPARE_EPILOGUE] = "cfi-epilogue",
		[COMPARE_LATE] = "cfi-late",
		[COMPARE_CLOBBER] = "cfi-clobber",
		[COMPARE_ROOT] = "root",
		[COMPARE_UNREACHED] = "unreached",
		[COMPARE_NO_STATE] = "no-state",
		[COMPARE_CFA] = "cfa",
		[COMPARE_RA] = "return-address",
		[COMPARE_FP] = "frame-pointer",
		[COMPARE_EXPRESSION] = "expression",
		[COMPARE_CFI_ABSENT] = "cfi-absent",
	};
	return (unsigned)cause < COMPARE_CAUSES ? names[cause] : "unknown";
}

#define NAME_SIZE 16

static const char *register_name(const struct isa *isa, unsigned reg, char name[NAME_SIZE])
{
	if (reg == isa->sp)
		return "sp";
	if (reg == isa->fp)
		return "fp";
	if (reg == isa->link)
		return "lr";
	snprintf(name, NAME_SIZE, "r%u", reg);
	return name;
}

/* "sp+16": nothing is added where the offset is 0. */
static void put_sum(char *out, size_t size, const char *base, int32_t offset)
{
	if (offset)
		snprintf(out, size, "%s%+d", base, offset);
	else
		snprintf(out, size, "%s", base);
}

static void put_place(const struct isa *isa, uint8_t where, int32_t offset, const char *same,
		      char out[40])
{
	char name[NAME_SIZE], sum[32];
	switch (where) {
	case RECIPE_SAME:
		snprintf(out, 40, "%s", same);
		return;
	case RECIPE_AT_CFA:
		put_sum(sum, sizeof sum, "CFA", offset);
		break;
	case RECIPE_AT_FP:
		put_sum(sum, sizeof sum, "fp", offset);
		break;
	case RECIPE_AT_SP:
		put_sum(sum, sizeof sum, "sp", offset);
		break;
	case RECIPE_IN_REG:
		snprintf(out, 40, "%s", register_name(isa, (unsigned)offset, name));
		return;
	case RECIPE_VIA_CFA:
		snprintf(out, 40, "[[CFA%+d]+%d]", RECIPE_VIA_SLOT(offset),
			 RECIPE_VIA_MEMBER(offset));
		return;
	case RECIPE_AT_BASE:
	case RECIPE_VIA_BASE:
		snprintf(out, 40, where == RECIPE_AT_BASE ? "[base%+d]" : "[[base%+d]]", offset);
		return;
	default:
		snprintf(out, 40, "lost");
		return;
	}
	snprintf(out, 40, "[%s]", sum);
}

static const char *special_words(const struct isa *isa, const struct recipe *r,
				 char out[COMPARE_WORDS_MAX])
{
	char name[NAME_SIZE], sum[48], index[24] = "", more[24] = "", ra[40], fp[40];
	unsigned how = (uint16_t)r->cfa_vg;
	put_sum(sum, sizeof sum, register_name(isa, r->cfa_reg, name), r->cfa_offset);
	if (how & RECIPE_INDEX(0, 0))
		snprintf(index, sizeof index, "+%s*%d",
			 register_name(isa, RECIPE_INDEX_REG(how), name),
			 1 << RECIPE_INDEX_SHIFT(how));
	if (how & RECIPE_WORD_MORE)
		snprintf(more, sizeof more, "+[base%+d]", r->cfa_add);
	else
		put_sum(more, sizeof more, "", r->cfa_add);
	put_place(isa, r->ra, r->ra_offset, "lr", ra);
	put_place(isa, r->fp, r->fp_offset, "same", fp);
	snprintf(out, COMPARE_WORDS_MAX, "CFA=%s%s%s%s%s ra=%s fp=%s%s",
		 how & RECIPE_WORD ? "[" : "", sum, index, how & RECIPE_WORD ? "]" : "", more, ra,
		 fp, how & RECIPE_RESUMES ? " resumes" : "");
	return out;
}

const char *compare_words(const struct isa *isa, const struct recipe *r,
			  char out[COMPARE_WORDS_MAX])
{
	static const char *const kinds[] = {[RECIPE_NONE] = "nothing",
					    [RECIPE_ROOT] = "outermost",
					    [RECIPE_SIGNAL] = "signal frame",
					    [RECIPE_COMPLEX] = "expression",
					    [RECIPE_AWAY] = "another stack",
					    [RECIPE_DEPTH] = "who called C",
					    [RECIPE_PARKED] = "the goroutine's stack",
					    [RECIPE_CALLBACK] = "the thread's stack"};
	char name[NAME_SIZE], cfa[32], outer[48], vector[24] = "", ra[40], fp[40];
	if (r->cfa == RECIPE_SPECIAL)
		return special_words(isa, r, out);
	if (r->cfa != RECIPE_REG && r->cfa != RECIPE_DEREF) {
		snprintf(out, COMPARE_WORDS_MAX, "%s",
			 r->cfa < sizeof kinds / sizeof *kinds ? kinds[r->cfa] : "unknown");
		return out;
	}
	put_sum(cfa, sizeof cfa, register_name(isa, r->cfa_reg, name), r->cfa_offset);
	snprintf(outer, sizeof outer, r->cfa == RECIPE_DEREF ? "[%s]" : "%s", cfa);
	put_sum(cfa, sizeof cfa, "", r->cfa == RECIPE_DEREF ? r->cfa_add : 0);
	if (r->cfa_vg)
		snprintf(vector, sizeof vector, "%+d*vg", r->cfa_vg);
	put_place(isa, r->ra, r->ra_offset, "lr", ra);
	put_place(isa, r->fp, r->fp_offset, "same", fp);
	snprintf(out, COMPARE_WORDS_MAX, "CFA=%s%s%s ra=%s fp=%s", outer, cfa, vector, ra, fp);
	return out;
}
