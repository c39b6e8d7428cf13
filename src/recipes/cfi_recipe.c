/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the rules of a row to a recipe. What a recipe cannot say becomes
 * RECIPE_COMPLEX where the caller's PC or SP hangs on it, and RECIPE_LOST for
 * FP and the extra register, which a walk may never need.
 */
#include "isa/insn.h"
#include "recipes/cfi_expression.h"
#include "recipes/cfi_program.h"

/* Where a register of the caller is saved. */
struct saved {
	uint8_t where; /* enum recipe_where */
	int32_t offset;
};

struct frame {
	struct evaluation evaluation;
	const struct cfi_common *common;
	const struct cfi_state *state;
	struct value cfa;
	struct value sp; /* the caller's SP: what recipes call the CFA. Nearly always the same */
	bool sp_is_cfa;
};

static struct cursor rule_block(const struct cfi_rule *rule)
{
	return (struct cursor){rule->block, rule->block + rule->block_size, false};
}

static bool fits(int64_t value)
{
	return value >= INT32_MIN && value <= INT32_MAX;
}

static bool saved_set(struct saved *saved, enum recipe_where where, int64_t offset)
{
	saved->where = (uint8_t)where;
	saved->offset = (int32_t)offset;
	return fits(offset);
}

/* "CFA + n" in terms of the register that the CFA hangs on, where it hangs on one. */
static struct value without_cfa(const struct frame *frame, struct value value)
{
	struct value sum = frame->cfa;
	if (value.base != VALUE_CFA || value.memory || sum.memory)
		return value;
	sum.add = (int64_t)((uint64_t)sum.add + (uint64_t)value.add);
	sum.vg = (int64_t)((uint64_t)sum.vg + (uint64_t)value.vg);
	return sum;
}

/* For a register that is saved in the word at the address `value`. */
static bool saved_in_memory(const struct frame *frame, struct value value, struct saved *saved)
{
	const struct isa *isa = frame->common->isa;
	const struct value *sp = &frame->sp;
	if (value.memory)
		return false;
	if (value.base == VALUE_CFA && !value.vg && frame->sp_is_cfa)
		return saved_set(saved, RECIPE_AT_CFA, value.add);
	value = without_cfa(frame, value);
	if (value.base != VALUE_REGISTER || value.indexed || sp->indexed)
		return false;
	if (!value.vg && value.reg == isa->fp)
		return saved_set(saved, RECIPE_AT_FP, value.add);
	if (!value.vg && value.reg == isa->sp)
		return saved_set(saved, RECIPE_AT_SP, value.add);
	if (sp->memory || sp->reg != value.reg || sp->vg != value.vg)
		return false;
	return saved_set(saved, RECIPE_AT_CFA, (int64_t)((uint64_t)value.add - (uint64_t)sp->add));
}

/* For a register whose value is `value` itself. */
static bool saved_value(const struct frame *frame, struct value value, struct saved *saved)
{
	struct value address = {.base = value.base, .reg = value.reg, .add = value.inner};
	if (value.add || value.vg || value.indexed)
		return false;
	if (value.memory)
		return saved_in_memory(frame, address, saved);
	return value.base == VALUE_REGISTER && saved_set(saved, RECIPE_IN_REG, value.reg);
}

/* Where the rule of `slot` puts the register; RULE_UNSPECIFIED means it is unchanged. */
static bool saved_by_rule(struct frame *frame, enum cfi_slot slot, struct saved *saved)
{
	const struct cfi_rule *rule = &frame->state->rules[slot];
	uint64_t own = frame->common->columns[slot];
	struct value value;
	switch (rule->kind) {
	case RULE_UNSPECIFIED:
	case RULE_SAME:
		return saved_set(saved, RECIPE_IN_REG, (int64_t)own);
	case RULE_OFFSET:
		if (frame->sp_is_cfa) /* nearly all there is */
			return saved_set(saved, RECIPE_AT_CFA, rule->value);
		value = (struct value){.base = VALUE_CFA, .add = rule->value};
		return saved_in_memory(frame, value, saved);
	case RULE_REGISTER:
		return saved_set(saved, RECIPE_IN_REG, rule->value);
	case RULE_EXPRESSION:
		return expression_evaluate(&frame->evaluation, rule_block(rule), true, &value) &&
		       saved_in_memory(frame, value, saved);
	case RULE_VAL_EXPRESSION:
		return expression_evaluate(&frame->evaluation, rule_block(rule), true, &value) &&
		       saved_value(frame, value, saved);
	default: /* RULE_UNDEFINED, RULE_VAL_OFFSET: no word holds it */
		return false;
	}
}

/* As saved_by_rule, with the register's own number said as "unchanged". */
static bool saved_slot(struct frame *frame, enum cfi_slot slot, uint8_t own, struct saved *saved)
{
	const struct isa *isa = frame->common->isa;
	if (!saved_by_rule(frame, slot, saved))
		return false;
	if (saved->where != RECIPE_IN_REG)
		return true;
	if (saved->offset < 0 || saved->offset >= isa->register_count)
		return false;
	if (own != INSN_NO_REG && saved->offset == own)
		*saved = (struct saved){.where = RECIPE_SAME};
	return true;
}

static struct saved saved_or_lost(struct frame *frame, enum cfi_slot slot, uint8_t own)
{
	struct saved saved;
	if (!saved_slot(frame, slot, own, &saved))
		saved = (struct saved){.where = RECIPE_LOST};
	return saved;
}

static bool values_equal(const struct value *a, const struct value *b)
{
	return a->base == b->base && a->memory == b->memory && a->add == b->add && a->vg == b->vg &&
	       a->inner == b->inner && a->indexed == b->indexed &&
	       (!a->indexed || (a->index == b->index && a->index_shift == b->index_shift)) &&
	       (a->base != VALUE_REGISTER || a->reg == b->reg);
}

/* The caller's SP by its rule. False where it has none that can be said. */
static bool sp_value(struct frame *frame, struct value *sp)
{
	const struct cfi_rule *rule = &frame->state->rules[SLOT_SP];
	bool memory = rule->kind == RULE_OFFSET || rule->kind == RULE_EXPRESSION;
	*sp = (struct value){.base = VALUE_REGISTER};
	switch (rule->kind) {
	case RULE_SAME:
		sp->reg = frame->common->isa->sp;
		return true;
	case RULE_REGISTER:
		sp->reg = (uint8_t)rule->value;
		return rule->value >= 0 && rule->value < frame->common->isa->register_count;
	case RULE_OFFSET:
	case RULE_VAL_OFFSET:
		*sp = (struct value){.base = VALUE_CFA, .add = rule->value};
		break;
	default:
		if (!expression_evaluate(&frame->evaluation, rule_block(rule), true, sp))
			return false;
		break;
	}
	*sp = without_cfa(frame, *sp);
	if (memory && (sp->memory || sp->vg))
		return false;
	if (memory) {
		sp->memory = true;
		sp->inner = sp->add;
		sp->add = 0;
	}
	return true;
}

static bool sp_find(struct frame *frame)
{
	uint8_t kind = frame->state->rules[SLOT_SP].kind;
	frame->sp = frame->cfa;
	frame->sp_is_cfa = true;
	if (kind == RULE_UNSPECIFIED || kind == RULE_UNDEFINED)
		return true;
	if (!sp_value(frame, &frame->sp))
		return false;
	if (frame->sp.base == VALUE_CFA && !frame->sp.memory && !frame->sp.add && !frame->sp.vg)
		frame->sp = frame->cfa;
	frame->sp_is_cfa = values_equal(&frame->sp, &frame->cfa);
	return frame->sp.base == VALUE_REGISTER;
}

static bool cfa_find(struct frame *frame)
{
	const struct cfi_state *state = frame->state;
	if (state->cfa.kind == RULE_EXPRESSION)
		return expression_evaluate(&frame->evaluation, rule_block(&state->cfa), false,
					   &frame->cfa) &&
		       frame->cfa.base == VALUE_REGISTER;
	if (state->cfa.kind != RULE_REGISTER ||
	    state->cfa_reg >= frame->common->isa->register_count)
		return false;
	frame->cfa = (struct value){
		.base = VALUE_REGISTER, .reg = (uint8_t)state->cfa_reg, .add = state->cfa.value};
	return true;
}

static bool cfa_say(const struct value *cfa, struct recipe *recipe)
{
	if (!fits(cfa->add) || !fits(cfa->inner) || cfa->vg < INT16_MIN || cfa->vg > INT16_MAX)
		return false;
	if (cfa->memory && cfa->vg)
		return false;
	if (cfa->indexed && cfa->vg)
		return false;
	recipe->cfa = cfa->indexed ? RECIPE_SPECIAL : cfa->memory ? RECIPE_DEREF : RECIPE_REG;
	recipe->cfa_reg = cfa->reg;
	recipe->cfa_vg = (int16_t)cfa->vg;
	if (cfa->indexed)
		recipe->cfa_vg = (int16_t)(RECIPE_INDEX(cfa->index, cfa->index_shift) |
					   (cfa->memory ? RECIPE_WORD : 0));
	recipe->cfa_offset = (int32_t)(cfa->memory ? cfa->inner : cfa->add);
	recipe->cfa_add = (int32_t)(cfa->memory ? cfa->add : 0);
	return true;
}

static bool recipe_fill(struct frame *frame, struct recipe *recipe)
{
	const struct isa *isa = frame->common->isa;
	struct saved ra, fp, extra;
	if (!cfa_find(frame) || !sp_find(frame) || !cfa_say(&frame->sp, recipe) ||
	    !saved_slot(frame, SLOT_RA, isa->link, &ra))
		return false;
	fp = saved_or_lost(frame, SLOT_FP, isa->fp);
	extra = saved_or_lost(frame, SLOT_EXTRA, isa->extra);
	recipe->ra = ra.where;
	recipe->ra_offset = ra.offset;
	recipe->fp = fp.where;
	recipe->fp_offset = fp.offset;
	recipe->extra = extra.where;
	recipe->extra_offset = extra.offset;
	return true;
}

struct recipe cfi_recipe(const struct cfi_common *common, const struct cfi_state *state,
			 uint64_t pc, uint64_t *budget, bool *used_pc)
{
	struct recipe recipe = {.source = RECIPE_FROM_CFI};
	struct frame frame = {
		.evaluation = {.isa = common->isa, .pc = pc, .budget = budget},
		.common = common,
		.state = state,
	};
	if (state->rules[SLOT_RA].kind == RULE_UNDEFINED)
		recipe.cfa = RECIPE_ROOT;
	else if (!recipe_fill(&frame, &recipe))
		recipe = (struct recipe){.cfa = RECIPE_COMPLEX, .source = RECIPE_FROM_CFI};
	*used_pc = frame.evaluation.used_pc;
	return recipe;
}
