/* SPDX-License-Identifier: Apache-2.0 */
#include "isa/tables.h"

#include <string.h>

void eval_init(struct eval *e, const struct isa *isa)
{
	memset(e, 0, sizeof *e);
	e->isa = isa;
	for (unsigned i = 0; i < EVAL_REGS - 1; i++)
		e->regs[i] = eval_fresh(e, UINT64_MAX);
	e->regs[EVAL_REGS - 1] = eval_constant(e, 0);
}

struct value eval_fresh(struct eval *e, uint64_t limit)
{
	return (struct value){.kind = VALUE_UNKNOWN, .id = ++e->next_id, .limit = limit};
}

struct value eval_constant(struct eval *e, uint64_t n)
{
	return (struct value){.kind = VALUE_CONST, .self = ++e->next_id, .constant = n};
}

struct value eval_index(struct eval *e, struct value v)
{
	uint64_t limit = UINT64_MAX;
	if (v.kind == VALUE_UNKNOWN || (v.kind == VALUE_SCALED && v.constant == 0) ||
	    (v.kind == VALUE_CONST && v.constant >= 4096))
		return v;
	if (v.kind == VALUE_ENTRY && v.shift == 0 && v.size < 4 && !v.is_signed)
		limit = (UINT64_C(1) << v.size * 8) - 1;
	return (struct value){
		.kind = VALUE_UNKNOWN, .id = v.self ? v.self : ++e->next_id, .limit = limit};
}

struct value eval_number(struct eval *e, struct value v)
{
	if (v.kind == VALUE_SCALED && v.self)
		return (struct value){.kind = VALUE_UNKNOWN, .id = v.self, .limit = UINT64_MAX};
	return eval_index(e, v);
}

struct value eval_plus(struct eval *e, struct value a, int64_t n)
{
	if (n == 0)
		return a;
	switch (a.kind) {
	case VALUE_CONST:
	case VALUE_SCALED:
		a.constant += (uint64_t)n;
		a.self = ++e->next_id;
		return a;
	case VALUE_SUM:
		a.base += (uint64_t)n;
		a.self = ++e->next_id;
		return a;
	case VALUE_ENTRY:
		return eval_plus(e, eval_index(e, a), n);
	case VALUE_UNKNOWN:
		a.add = (int64_t)((uint64_t)a.add + (uint64_t)n);
		a.limit = UINT64_MAX;
		return a;
	default:
		return eval_fresh(e, UINT64_MAX);
	}
}

/* Does a number that is added to an unknown one make an address of it, or another index? */
static bool may_be_address(uint64_t n)
{
	return n >= 4096 && n < UINT64_C(1) << 47;
}

struct value eval_sum(struct eval *e, struct value a, struct value b, unsigned width)
{
	if (a.kind != VALUE_CONST) {
		struct value t = a;
		a = b;
		b = t;
	}
	if (a.kind != VALUE_CONST)
		return eval_fresh(e, UINT64_MAX);
	switch (b.kind) {
	case VALUE_UNKNOWN:
		if (width < 64)
			return eval_plus(e, b, (int32_t)a.constant);
		if (!may_be_address(a.constant))
			return eval_plus(e, b, (int64_t)a.constant);
		b.kind = VALUE_SCALED;
		b.self = ++e->next_id;
		b.constant = a.constant;
		b.shift = 0;
		return b;
	case VALUE_ENTRY:
		if (!may_be_address(a.constant))
			return eval_plus(e, b, (int64_t)a.constant);
		b.kind = VALUE_SUM;
		b.self = ++e->next_id;
		b.base = a.constant;
		return b;
	default:
		return eval_plus(e, b, (int64_t)a.constant);
	}
}

struct value eval_shift_left(struct eval *e, struct value a, unsigned shift)
{
	if (shift == 0)
		return a;
	if (a.kind == VALUE_CONST && shift < 64)
		return eval_constant(e, a.constant << shift);
	if (a.kind == VALUE_UNKNOWN && shift <= 3) {
		a.kind = VALUE_SCALED;
		a.self = ++e->next_id;
		a.constant = 0;
		a.shift = (uint8_t)shift;
		return a;
	}
	if (a.kind == VALUE_ENTRY && a.shift + shift <= 4) {
		a.shift = (uint8_t)(a.shift + shift);
		a.self = ++e->next_id;
		return a;
	}
	return eval_fresh(e, UINT64_MAX);
}

struct value eval_shift_right(struct eval *e, struct value a, unsigned shift, unsigned width)
{
	uint64_t limit = width >= 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
	if (shift == 0)
		return a;
	if (a.kind == VALUE_UNKNOWN && a.limit < limit)
		limit = a.limit;
	return eval_fresh(e, shift < 64 ? limit >> shift : 0);
}

struct value eval_and(struct eval *e, struct value a, uint64_t mask)
{
	if (mask == 0xff || mask == 0xffff || mask == 0xffffffff)
		return eval_extend(e, a, mask == 0xff ? 1 : mask == 0xffff ? 2 : 4, false);
	if (a.kind == VALUE_CONST)
		return eval_constant(e, a.constant & mask);
	if (a.kind == VALUE_UNKNOWN && a.limit < mask)
		mask = a.limit;
	return eval_fresh(e, mask >> 63 ? UINT64_MAX : mask);
}

struct value eval_extend(struct eval *e, struct value a, unsigned size, bool is_signed)
{
	uint64_t limit = (UINT64_C(1) << size * 8) - 1;
	switch (a.kind) {
	case VALUE_UNKNOWN:
		if (!is_signed && size < 4 && a.limit > limit)
			a.limit = limit;
		return a;
	case VALUE_CONST:
		a.constant &= limit;
		if (is_signed && a.constant > limit / 2)
			a.constant |= ~limit;
		return a;
	case VALUE_ENTRY:
		if (a.shift || size < a.size || (size > a.size && a.is_signed && !is_signed))
			break;
		if (size == a.size)
			a.is_signed = is_signed;
		return a;
	default:
		break;
	}
	return eval_fresh(e, UINT64_MAX);
}

static bool same_place(const struct value *a, const struct value *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == VALUE_SCALED)
		return a->id == b->id && a->add == b->add && a->shift == b->shift &&
		       a->constant == b->constant;
	return a->kind == VALUE_UNKNOWN ? a->id == b->id : a->constant == b->constant;
}

/* The word that `at` names: a number (that the id stands for), and how far from it. */
static bool is_word(struct value *at, int64_t *offset)
{
	if (at->kind != VALUE_UNKNOWN && at->kind != VALUE_CONST && at->kind != VALUE_SCALED)
		return false;
	*offset = at->kind == VALUE_UNKNOWN ? at->add : 0;
	return true;
}

static struct value *find_word(struct eval *e, const struct value *at, int64_t offset)
{
	unsigned kept = e->word_count < EVAL_WORDS ? e->word_count : EVAL_WORDS;
	for (unsigned i = 0; i < kept; i++)
		if (same_place(&e->words[i].base, at) && e->words[i].at == offset)
			return &e->words[i].holds;
	return NULL;
}

void eval_store(struct eval *e, struct value at, struct value v)
{
	int64_t offset;
	if (!is_word(&at, &offset))
		return;
	struct value *known = find_word(e, &at, offset);
	if (known) {
		*known = v;
		return;
	}
	unsigned i = e->word_count++ % EVAL_WORDS;
	e->words[i].base = at;
	e->words[i].at = offset;
	e->words[i].holds = v;
}

static struct value load_word(struct eval *e, struct value at, unsigned size, bool is_signed)
{
	uint64_t limit = size < 4 && !is_signed ? (UINT64_C(1) << size * 8) - 1 : UINT64_MAX;
	int64_t offset;
	if (!is_word(&at, &offset))
		return eval_fresh(e, limit);
	struct value *known = find_word(e, &at, offset);
	if (known)
		return size < 8 ? eval_extend(e, *known, size, is_signed) : *known;
	struct value v = eval_fresh(e, limit);
	eval_store(e, at, v);
	return v;
}

struct value eval_load(struct eval *e, struct value at, unsigned size, bool is_signed)
{
	if (at.kind != VALUE_SCALED || 1u << at.shift != size || at.constant == 0)
		return load_word(e, at, size, is_signed);
	struct value entry = at, *known = find_word(e, &at, 0);
	if (known && known->kind == VALUE_ENTRY && known->size == size &&
	    known->is_signed == is_signed)
		return *known;
	entry.kind = VALUE_ENTRY;
	entry.self = ++e->next_id;
	entry.size = (uint8_t)size;
	entry.shift = 0;
	entry.is_signed = is_signed;
	eval_store(e, at, entry);
	return entry;
}

void eval_compare(struct eval *e, struct value left, uint64_t right, uint16_t otherwise)
{
	e->compared = true;
	e->left = eval_number(e, left);
	e->right = right;
	e->otherwise = otherwise;
}

enum eval_condition eval_negated(enum eval_condition condition)
{
	static const uint8_t negated[] = {
		[EVAL_ABOVE] = EVAL_BELOW_OR_EQUAL,  [EVAL_ABOVE_OR_EQUAL] = EVAL_BELOW,
		[EVAL_BELOW] = EVAL_ABOVE_OR_EQUAL,  [EVAL_BELOW_OR_EQUAL] = EVAL_ABOVE,
		[EVAL_GREATER] = EVAL_LESS_OR_EQUAL, [EVAL_GREATER_OR_EQUAL] = EVAL_LESS,
		[EVAL_LESS] = EVAL_GREATER_OR_EQUAL, [EVAL_LESS_OR_EQUAL] = EVAL_GREATER,
	};
	return negated[condition];
}

/* A bound followed by other branches may be looser than the table: those may have taken the upmost
   values away. */
static void doubt_bounds(struct eval *e)
{
	for (unsigned i = 0; i < EVAL_BOUNDS; i++)
		e->bounds[i].is_exact = false;
}

void eval_holds(struct eval *e, enum eval_condition condition)
{
	uint64_t max = e->right;
	doubt_bounds(e);
	if (!e->compared || e->left.kind != VALUE_UNKNOWN)
		return;
	if (e->otherwise >> condition & 1)
		return; /* it also holds where nothing was compared */
	if ((condition == EVAL_BELOW || condition == EVAL_LESS) && max > 0)
		max--;
	else if (condition != EVAL_BELOW_OR_EQUAL && condition != EVAL_LESS_OR_EQUAL)
		return;
	if (max > UINT32_MAX / 2)
		return;
	unsigned i = e->bound_count++ % EVAL_BOUNDS;
	e->bounds[i].id = e->left.id;
	e->bounds[i].add = e->left.add;
	e->bounds[i].max = max;
	e->bounds[i].is_exact = condition == EVAL_BELOW || condition == EVAL_BELOW_OR_EQUAL;
}

void eval_meet(struct eval *e)
{
	unsigned kept = e->word_count < EVAL_WORDS ? e->word_count : EVAL_WORDS;
	for (unsigned i = 0; i < EVAL_REGS - 1; i++)
		if (e->regs[i].kind == VALUE_CONST && !may_be_address(e->regs[i].constant))
			e->regs[i] = eval_fresh(e, UINT64_MAX);
	for (unsigned i = 0; i < kept; i++)
		if (e->words[i].holds.kind == VALUE_CONST &&
		    !may_be_address(e->words[i].holds.constant))
			e->words[i].holds = eval_fresh(e, UINT64_MAX);
}

/* The stack keeps what was put there; other memory may change in a call. */
static void apply_call(struct eval *e)
{
	unsigned kept = e->word_count < EVAL_WORDS ? e->word_count : EVAL_WORDS;
	for (unsigned i = 0; i < e->isa->register_count; i++)
		if (e->isa->call_clobbers >> i & 1)
			e->regs[i] = eval_fresh(e, UINT64_MAX);
	for (unsigned i = 0; i < kept; i++)
		if (!same_place(&e->words[i].base, &e->regs[e->isa->sp]) &&
		    !same_place(&e->words[i].base, &e->regs[e->isa->fp]))
			e->words[i].holds = eval_fresh(e, UINT64_MAX);
	e->compared = false;
}

static struct value reg_value(const struct eval *e, unsigned reg)
{
	return e->regs[reg < EVAL_REGS ? reg : EVAL_REGS - 1];
}

static void apply_effect(struct eval *e, const struct effect *f)
{
	struct value src = reg_value(e, f->src), *dst = &e->regs[f->dst];
	if (f->dst >= EVAL_REGS - 1)
		return;
	switch (f->op) {
	case EFFECT_CONST:
		*dst = eval_constant(e, (uint64_t)f->imm);
		break;
	case EFFECT_MOVE:
		*dst = eval_plus(e, src, f->imm);
		break;
	case EFFECT_ADD:
		*dst = eval_sum(e, src, reg_value(e, f->src2), 64);
		break;
	case EFFECT_LOAD:
		*dst = eval_load(e, eval_plus(e, src, f->imm), 8, false);
		break;
	case EFFECT_STORE:
		eval_store(e, eval_plus(e, *dst, f->imm),
			   f->src == INSN_NO_REG ? eval_fresh(e, UINT64_MAX) : src);
		break;
	case EFFECT_SIGN:
		break;
	case EFFECT_INSERT:
		if (dst->kind == VALUE_CONST && f->src2 < 64)
			*dst = eval_constant(e, (dst->constant & ~(UINT64_C(0xffff) << f->src2)) |
							(uint64_t)(f->imm & 0xffff) << f->src2);
		else
			*dst = eval_fresh(e, UINT64_MAX);
		break;
	default:
		*dst = eval_fresh(e, UINT64_MAX);
		break;
	}
}

void eval_apply(struct eval *e, const struct insn *insn)
{
	for (unsigned i = 0; i < insn->effect_count; i++)
		apply_effect(e, &insn->effects[i]);
	for (unsigned i = 0; i < e->isa->register_count; i++)
		if (insn->writes >> i & 1)
			e->regs[i] = eval_fresh(e, UINT64_MAX);
	if (insn->kind == INSN_CALL || insn->kind == INSN_CALL_INDIRECT ||
	    insn->kind == INSN_SYSCALL)
		apply_call(e);
}

/* A compare of the index itself, right before, tells exactly how many entries there are, even if other
   compares say that some are never used. One of some other sum with the same number, or one long
   before, tells how many there are at most. */
static void bound_entries(const struct eval *e, struct value v, struct jump_table *out)
{
	unsigned kept = e->bound_count < EVAL_BOUNDS ? e->bound_count : EVAL_BOUNDS;
	if (v.limit < 1 << 16)
		out->count = v.limit + 1;
	for (unsigned i = 0; i < kept; i++) {
		int64_t d, end;
		if (e->bounds[i].id != v.id ||
		    __builtin_sub_overflow(v.add, e->bounds[i].add, &d) || d > 0xffff ||
		    d < -0xffff)
			continue;
		end = (int64_t)e->bounds[i].max + d + 1;
		bool exact = d == 0 && e->bounds[i].is_exact;
		if (end <= 0 || (!exact && out->count && (uint64_t)end > out->count) ||
		    (!exact && out->exact))
			continue;
		out->exact = exact;
		out->count = (uint64_t)end;
	}
}

bool eval_table(const struct eval *e, struct value v, struct jump_table *out)
{
	memset(out, 0, sizeof *out);
	if (v.kind != VALUE_SUM && (v.kind != VALUE_ENTRY || v.size != 8))
		return false;
	out->table = v.constant;
	out->base = v.kind == VALUE_SUM ? v.base : 0;
	out->entry_size = v.size;
	out->shift = v.shift;
	out->is_signed = v.is_signed;
	bound_entries(e, v, out);
	return true;
}
