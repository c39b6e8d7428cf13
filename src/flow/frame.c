/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/frame.h"

#include <string.h>

#include "isa/insn.h"
#include "unwind/recipe.h"

static const struct frame_value unknown = {FRAME_UNKNOWN, 0};

static bool same_value(struct frame_value a, struct frame_value b)
{
	return a.kind == b.kind && a.offset == b.offset;
}

static bool is_place(struct frame_value v)
{
	return v.kind == FRAME_CFA || v.kind == FRAME_ALIGNED;
}

static struct frame_value shifted(struct frame_value v, int64_t by)
{
	if (v.kind != FRAME_CFA && v.kind != FRAME_ALIGNED && v.kind != FRAME_CONST)
		return by ? unknown : v;
	int64_t sum = v.offset + by;
	if (by > INT32_MAX || by < INT32_MIN || sum > INT32_MAX || sum < INT32_MIN)
		return unknown;
	v.offset = (int32_t)sum;
	return v;
}

void frame_entry(const struct isa *isa, struct frame_state *s)
{
	memset(s, 0, sizeof *s);
	s->sp = (struct frame_value){FRAME_CFA, -(int32_t)isa->call_pushes};
	s->fp = (struct frame_value){FRAME_FP, 0};
	s->extra = (struct frame_value){FRAME_EXTRA, 0};
	if (isa->call_pushes) {
		s->slots[s->slot_count++] = (struct frame_slot){s->sp, {FRAME_RA, 0}};
	} else {
		s->link = (struct frame_value){FRAME_RA, 0};
	}
}

void frame_blank(struct frame_state *s)
{
	memset(s, 0, sizeof *s);
	s->sp = (struct frame_value){FRAME_CFA, 0};
	s->fp = (struct frame_value){FRAME_ALIGNED, 0};
	s->extra = (struct frame_value){FRAME_EXTRA, 0};
	s->link = (struct frame_value){FRAME_RA, 0};
	s->tracing = 1;
}

struct frame_value frame_register(const struct isa *isa, const struct frame_state *s, unsigned reg)
{
	if (reg == isa->sp)
		return s->sp;
	if (reg == isa->fp)
		return s->fp;
	if (reg == isa->extra)
		return s->extra;
	if (reg == isa->link)
		return s->link;
	for (unsigned i = 0; i < s->other_count; i++)
		if (s->other[i].reg == reg)
			return s->other[i].value;
	return unknown;
}

static bool set_other(struct frame_state *s, unsigned reg, struct frame_value v)
{
	unsigned i = 0;
	while (i < s->other_count && s->other[i].reg != reg)
		i++;
	if (v.kind == FRAME_UNKNOWN) {
		if (i == s->other_count)
			return false;
		s->other_count--;
		memmove(&s->other[i], &s->other[i + 1], (s->other_count - i) * sizeof s->other[0]);
		memset(&s->other[s->other_count], 0, sizeof s->other[0]);
		return true;
	}
	if (i == s->other_count) {
		if (i == FRAME_REGS) { /* full: constants are the least worth keeping */
			for (i = 0; i < FRAME_REGS && s->other[i].value.kind != FRAME_CONST; i++)
				;
			if (i == FRAME_REGS)
				return false;
		} else {
			s->other_count++;
		}
	}
	s->other[i].reg = reg;
	s->other[i].value = v;
	return true;
}

static bool set_value(struct frame_value *at, struct frame_value v)
{
	if (same_value(*at, v))
		return false;
	*at = v;
	return true;
}

static void drop_slot(struct frame_state *s, unsigned i)
{
	s->slot_count--;
	memmove(&s->slots[i], &s->slots[i + 1], (s->slot_count - i) * sizeof s->slots[0]);
	memset(&s->slots[s->slot_count], 0, sizeof s->slots[0]);
}

/* Words below SP (and its red zone) no longer belong to the frame. */
static void drop_below(struct frame_state *s, int red_zone)
{
	for (unsigned i = 0; i < s->slot_count;) {
		bool dead = s->slots[i].at.kind == s->sp.kind && is_place(s->sp) &&
			    s->slots[i].at.offset < s->sp.offset - red_zone;
		if (dead)
			drop_slot(s, i);
		else
			i++;
	}
}

/* The slot that holds a value of this kind: a CFA-relative one before an aligned one. */
static const struct frame_slot *find_slot(const struct frame_state *s, uint32_t kind)
{
	const struct frame_slot *found = NULL;
	for (unsigned i = 0; i < s->slot_count; i++) {
		if (s->slots[i].holds.kind != kind)
			continue;
		if (s->slots[i].at.kind == FRAME_CFA)
			return &s->slots[i];
		found = &s->slots[i];
	}
	return found;
}

/* SP moved by an unknown amount: what is stored from now on is known relative to where it is. */
static struct frame_value new_base(struct frame_state *s)
{
	if (s->tracing || s->fp.kind == FRAME_ALIGNED) /* the base that FP hangs on stays */
		return unknown;
	for (unsigned i = 0; i < s->slot_count;) {
		if (s->slots[i].at.kind == FRAME_ALIGNED)
			drop_slot(s, i);
		else
			i++;
	}
	return (struct frame_value){FRAME_ALIGNED, 0};
}

static bool set_register(const struct isa *isa, struct frame_state *s, unsigned reg,
			 struct frame_value v)
{
	if (reg == isa->sp) {
		if (v.kind == FRAME_UNKNOWN)
			v = new_base(s);
		bool moved = set_value(&s->sp, v);
		if (moved)
			drop_below(s, isa->red_zone);
		return moved;
	}
	if (reg == isa->fp) {
		/* Code that zeroes FP without having saved it has no caller to return to. */
		if (v.kind == FRAME_CONST && v.offset == 0 && s->fp.kind == FRAME_FP &&
		    !find_slot(s, FRAME_FP))
			s->root = 1;
		return set_value(&s->fp, v.kind == FRAME_CONST ? unknown : v);
	}
	if (reg == isa->extra)
		return set_value(&s->extra, v);
	if (reg == isa->link)
		return set_value(&s->link, v);
	return set_other(s, reg, v.kind == FRAME_CONST && v.offset == 0 ? unknown : v);
}

/* Is it where SP was at the entry? */
static bool is_entry_sp(const struct isa *isa, struct frame_value v)
{
	return v.kind == FRAME_CFA && (v.offset == 0 || v.offset == -(int32_t)isa->call_pushes);
}

static bool worth_storing(const struct isa *isa, const struct frame_state *s, struct frame_value v)
{
	switch (v.kind) {
	case FRAME_UNKNOWN:
	case FRAME_CONST:
		return false;
	case FRAME_ALIGNED:
		return s->tracing; /* there it is FP as it was */
	case FRAME_CFA: /* a saved SP leads back to the caller once SP itself is not known */
		return is_entry_sp(isa, v) || s->sp.kind != FRAME_CFA;
	default:
		return true;
	}
}

static bool store(const struct isa *isa, struct frame_state *s, struct frame_value at,
		  struct frame_value v)
{
	if (!is_place(at))
		return false;
	unsigned i = 0;
	while (i < s->slot_count && !same_value(s->slots[i].at, at))
		i++;
	if (!worth_storing(isa, s, v)) {
		if (i == s->slot_count)
			return false;
		drop_slot(s, i);
		return true;
	}
	if (i == s->slot_count) {
		if (i == FRAME_SLOTS)
			return false;
		s->slots[i].at = at;
		s->slot_count++;
	}
	return set_value(&s->slots[i].holds, v);
}

static struct frame_value load(const struct frame_state *s, struct frame_value at)
{
	for (unsigned i = 0; i < s->slot_count; i++)
		if (same_value(s->slots[i].at, at))
			return s->slots[i].holds;
	if (s->tracing && at.kind == FRAME_CFA)
		return (struct frame_value){FRAME_WORD, at.offset};
	if (s->tracing && at.kind == FRAME_ALIGNED)
		return (struct frame_value){FRAME_FP_WORD, at.offset};
	return unknown;
}

static struct frame_value sum(struct frame_value a, struct frame_value b, int sign)
{
	if (b.kind == FRAME_CONST)
		return shifted(a, (int64_t)b.offset * sign);
	if (a.kind == FRAME_CONST && sign > 0)
		return shifted(b, a.offset);
	return unknown;
}

static struct frame_value aligned(struct frame_value v, int64_t mask)
{
	if (v.kind == FRAME_CONST)
		return (struct frame_value){FRAME_CONST, (int32_t)(v.offset & mask)};
	return unknown;
}

static struct frame_value constant(int64_t n)
{
	if (n && !frame_keeps_constant(n))
		return unknown;
	return (struct frame_value){FRAME_CONST, (int32_t)n};
}

static struct frame_value inserted(struct frame_value old, unsigned shift, int64_t bits)
{
	if (old.kind != FRAME_CONST || shift >= 32)
		return unknown;
	int64_t n = (int64_t)(uint32_t)old.offset;
	n = (n & ~(0xffffLL << shift)) | ((bits & 0xffff) << shift);
	return constant(n);
}

static bool is_named(const struct isa *isa, unsigned reg)
{
	return reg == isa->sp || reg == isa->fp || reg == isa->extra || reg == isa->link;
}

/* A copy of SP, or what SP is about to become. Addresses above SP are those of local variables. */
static bool is_worth_copying(const struct isa *isa, const struct effect *e, struct frame_value v)
{
	return is_entry_sp(isa, v) || (e->src == isa->sp && e->imm <= 0);
}

static bool apply_effect(const struct isa *isa, struct frame_state *s, const struct effect *e)
{
	struct frame_value src = e->src == INSN_NO_REG ? unknown : frame_register(isa, s, e->src);
	switch (e->op) {
	case EFFECT_CONST:
		return set_register(isa, s, e->dst, constant(e->imm));
	case EFFECT_INSERT:
		return set_register(isa, s, e->dst,
				    inserted(frame_register(isa, s, e->dst), e->src2, e->imm));
	case EFFECT_MOVE:
		src = shifted(src, e->imm);
		if (is_place(src) && !is_named(isa, e->dst) && !is_worth_copying(isa, e, src))
			src = unknown;
		return set_register(isa, s, e->dst, src);
	case EFFECT_ADD:
		return set_register(isa, s, e->dst, sum(src, frame_register(isa, s, e->src2), 1));
	case EFFECT_SUB:
		return set_register(isa, s, e->dst, sum(src, frame_register(isa, s, e->src2), -1));
	case EFFECT_ALIGN:
		return set_register(isa, s, e->dst, aligned(src, e->imm));
	case EFFECT_LOAD:
		return set_register(isa, s, e->dst, load(s, shifted(src, e->imm)));
	case EFFECT_STORE:
		return store(isa, s, shifted(frame_register(isa, s, e->dst), e->imm), src);
	default:
		return false;
	}
}

static bool forget(const struct isa *isa, struct frame_state *s, uint32_t mask)
{
	bool changed = false;
	for (unsigned i = 0; i < s->other_count;) {
		if (mask >> s->other[i].reg & 1)
			changed |= set_other(s, s->other[i].reg, unknown);
		else
			i++;
	}
	const uint8_t named[] = {isa->sp, isa->fp, isa->extra, isa->link};
	for (unsigned i = 0; i < sizeof named; i++)
		if (named[i] != INSN_NO_REG && mask >> named[i] & 1)
			changed |= set_register(isa, s, named[i], unknown);
	return changed;
}

/* Registers that a call leaves alone although it may change them: the size of a frame whose pages a
   helper touches, and the return address where it is nowhere else: who relies on that knows the
   callee. */
static uint32_t kept_over_call(const struct isa *isa, const struct frame_state *s)
{
	uint32_t kept = 0;
	bool saved = find_slot(s, FRAME_RA) != NULL;
	for (unsigned i = 0; i < s->other_count; i++) {
		unsigned reg = s->other[i].reg, kind = s->other[i].value.kind;
		if ((kind == FRAME_CONST && reg == isa->probe_size) || (kind == FRAME_RA && !saved))
			kept |= 1u << reg;
	}
	return kept;
}

/* Who calls without having put the return address anywhere, or made a frame, has no caller. */
static bool note_root(const struct isa *isa, struct frame_state *s)
{
	bool lost = s->link.kind != FRAME_RA && !find_slot(s, FRAME_RA);
	for (unsigned i = 0; i < s->other_count; i++)
		lost = lost && s->other[i].value.kind != FRAME_RA;
	if (s->root || !lost || isa->call_pushes || s->guessed || s->tracing ||
	    s->fp.kind != FRAME_FP || s->sp.kind != FRAME_CFA || s->sp.offset)
		return false;
	s->root = 1;
	return true;
}

bool frame_apply(const struct isa *isa, struct frame_state *s, const struct insn *insn)
{
	bool changed = false;
	for (unsigned i = 0; i < insn->effect_count; i++)
		changed |= apply_effect(isa, s, &insn->effects[i]);
	if (insn->writes)
		changed |= forget(isa, s, insn->writes);
	if (insn->kind == INSN_CALL || insn->kind == INSN_CALL_INDIRECT) {
		changed |= forget(isa, s, isa->call_clobbers & ~kept_over_call(isa, s));
		changed |= note_root(isa, s);
		unsigned before = s->slot_count;
		drop_below(s, 0);
		changed |= s->slot_count != before;
	}
	return changed;
}

static bool meet_value(struct frame_value *a, struct frame_value b)
{
	if (same_value(*a, b) || a->kind == FRAME_UNKNOWN)
		return false;
	*a = unknown;
	return true;
}

static bool meet_slots(struct frame_state *s, const struct frame_state *t)
{
	bool changed = false;
	for (unsigned i = 0; i < s->slot_count;) {
		unsigned j = 0;
		while (j < t->slot_count && !(same_value(s->slots[i].at, t->slots[j].at) &&
					      same_value(s->slots[i].holds, t->slots[j].holds)))
			j++;
		if (j < t->slot_count) {
			i++;
			continue;
		}
		drop_slot(s, i);
		changed = true;
	}
	return changed;
}

/* Do both have the same address of the frame in another register? Then SP may differ: it is
   being moved in a loop. */
static bool common_copy(const struct frame_state *s, const struct frame_state *t)
{
	for (unsigned i = 0; i < s->other_count; i++)
		for (unsigned k = 0; k < t->other_count; k++)
			if (s->other[i].reg == t->other[k].reg &&
			    s->other[i].value.kind == FRAME_CFA &&
			    same_value(s->other[i].value, t->other[k].value))
				return true;
	return false;
}

bool frame_meet(struct frame_state *s, const struct frame_state *t, bool *conflict)
{
	bool changed = false;
	/* SP may differ where memory is taken from the stack on one way only, or in a loop, and
	   something else leads to the frame. */
	bool by_fp = s->fp.kind == FRAME_CFA && same_value(s->fp, t->fp);
	*conflict = is_place(s->sp) && is_place(t->sp) && !same_value(s->sp, t->sp) && !by_fp &&
		    !common_copy(s, t);
	if (*conflict)
		return false;
	changed |= meet_value(&s->sp, t->sp);
	changed |= meet_value(&s->fp, t->fp);
	changed |= meet_value(&s->link, t->link);
	changed |= meet_value(&s->extra, t->extra);
	for (unsigned i = 0; i < s->other_count;) {
		unsigned j = 0;
		while (j < t->other_count && t->other[j].reg != s->other[i].reg)
			j++;
		if (j < t->other_count && same_value(t->other[j].value, s->other[i].value))
			i++;
		else
			changed |= set_other(s, s->other[i].reg, unknown);
	}
	changed |= meet_slots(s, t);
	if (s->root && !t->root) {
		s->root = 0;
		changed = true;
	}
	return changed;
}

void frame_equal_sp(const struct isa *isa, struct frame_state *s, unsigned reg)
{
	struct frame_value v = frame_register(isa, s, reg);
	if (v.kind == FRAME_CFA)
		set_register(isa, s, isa->sp, v);
}

bool frame_has_return(const struct frame_state *s)
{
	if (s->link.kind == FRAME_RA || s->root || find_slot(s, FRAME_RA))
		return true;
	for (unsigned i = 0; i < s->other_count; i++)
		if (s->other[i].value.kind == FRAME_RA)
			return true;
	return false;
}

bool frame_is_entry(const struct isa *isa, const struct frame_state *s)
{
	if (s->sp.kind != FRAME_CFA || s->sp.offset != -(int32_t)isa->call_pushes ||
	    s->fp.kind != FRAME_FP)
		return false;
	if (!isa->call_pushes)
		return s->link.kind == FRAME_RA;
	for (unsigned i = 0; i < s->slot_count; i++)
		if (s->slots[i].holds.kind == FRAME_RA && same_value(s->slots[i].at, s->sp))
			return true;
	return false;
}

void frame_leave(struct frame_state *s)
{
	drop_below(s, 0);
}

struct frame_value frame_saved(const struct frame_state *s, uint32_t kind)
{
	const struct frame_slot *slot = find_slot(s, kind);
	return slot ? slot->at : unknown;
}

static bool recipe_cfa(const struct isa *isa, const struct frame_state *s, struct recipe *r)
{
	r->cfa = RECIPE_REG;
	if (s->sp.kind == FRAME_CFA &&
	    !(s->guessed && s->fp.kind == FRAME_CFA && find_slot(s, FRAME_FP))) {
		r->cfa_reg = isa->sp;
		r->cfa_offset = -s->sp.offset;
		return true;
	}
	if (s->fp.kind == FRAME_CFA) {
		r->cfa_reg = isa->fp;
		r->cfa_offset = -s->fp.offset;
		return true;
	}
	if (s->extra.kind == FRAME_CFA) {
		r->cfa_reg = isa->extra;
		r->cfa_offset = -s->extra.offset;
		return true;
	}
	const struct frame_slot *slot = find_slot(s, FRAME_CFA);
	if (slot && slot->at.kind == FRAME_ALIGNED) {
		struct frame_value base = s->fp.kind == FRAME_ALIGNED ? s->fp : s->sp;
		if (base.kind == FRAME_ALIGNED) {
			r->cfa = RECIPE_DEREF;
			r->cfa_reg = s->fp.kind == FRAME_ALIGNED ? isa->fp : isa->sp;
			r->cfa_offset = slot->at.offset - base.offset;
			r->cfa_add = -slot->holds.offset;
			return true;
		}
	}
	for (unsigned i = 0; i < s->other_count; i++) {
		if (s->other[i].value.kind == FRAME_CFA) {
			r->cfa_reg = (uint8_t)s->other[i].reg;
			r->cfa_offset = -s->other[i].value.offset;
			return true;
		}
	}
	return false;
}

/* Where the value of `kind` is, given that it is not in the register it had at the entry. */
static bool recipe_place(const struct frame_state *s, uint32_t kind, uint8_t *where,
			 int32_t *offset)
{
	const struct frame_slot *slot = find_slot(s, kind);
	if (slot && slot->at.kind == FRAME_CFA) {
		*where = RECIPE_AT_CFA;
		*offset = slot->at.offset;
		return true;
	}
	if (slot && s->fp.kind == FRAME_ALIGNED) {
		*where = RECIPE_AT_FP;
		*offset = slot->at.offset - s->fp.offset;
		return true;
	}
	if (slot && s->sp.kind == FRAME_ALIGNED) {
		*where = RECIPE_AT_SP;
		*offset = slot->at.offset - s->sp.offset;
		return true;
	}
	for (unsigned i = 0; i < s->other_count; i++) {
		if (s->other[i].value.kind == kind) {
			*where = RECIPE_IN_REG;
			*offset = (int32_t)s->other[i].reg;
			return true;
		}
	}
	*where = RECIPE_LOST;
	*offset = 0;
	return false;
}

/* Is it in a word that a signal handler may overwrite at any time? */
static bool is_below_sp(const struct frame_state *s, uint8_t where, int32_t offset)
{
	return where == RECIPE_AT_CFA && s->sp.kind == FRAME_CFA && offset < s->sp.offset;
}

void frame_recipe(const struct isa *isa, const struct frame_state *s, struct recipe *out)
{
	struct recipe r = {.source = RECIPE_FROM_CODE};
	memset(out, 0, sizeof *out);
	if (s->root) {
		out->cfa = RECIPE_ROOT;
		out->source = RECIPE_FROM_CODE;
		return;
	}
	if (!recipe_cfa(isa, s, &r))
		return;
	if (!recipe_place(s, FRAME_RA, &r.ra, &r.ra_offset)) {
		if (s->link.kind != FRAME_RA)
			return;
		r.ra = RECIPE_SAME;
	} else if (s->link.kind == FRAME_RA && is_below_sp(s, r.ra, r.ra_offset)) {
		r.ra = RECIPE_SAME;
		r.ra_offset = 0;
	} /* a copy in another register is better than the link register, which a call changes */
	if (s->fp.kind != FRAME_FP)
		recipe_place(s, FRAME_FP, &r.fp, &r.fp_offset);
	if (s->extra.kind != FRAME_EXTRA)
		recipe_place(s, FRAME_EXTRA, &r.extra, &r.extra_offset);
	*out = r;
}

static bool slot_holds(const struct frame_state *s, struct frame_value at, uint32_t kind)
{
	for (unsigned i = 0; i < s->slot_count; i++)
		if (same_value(s->slots[i].at, at))
			return s->slots[i].holds.kind == kind;
	return false;
}

/* Where the link register has the return address, a word below SP is nothing to rely on: it was
   popped, and the next signal writes over it. (Where calls push it, there is a red zone.) */
static bool is_popped(const struct isa *isa, const struct frame_state *s, const struct recipe *r)
{
	return isa->link != INSN_NO_REG && r->ra == RECIPE_AT_CFA && s->sp.kind == FRAME_CFA &&
	       r->ra_offset < s->sp.offset;
}

/* Does the state have a value of `kind` where the recipe says it is? */
static bool confirms_place(const struct isa *isa, const struct frame_state *s, uint32_t kind,
			   struct frame_value home, uint8_t where, int32_t offset)
{
	switch (where) {
	case RECIPE_SAME:
		return home.kind == kind;
	case RECIPE_AT_CFA:
		return slot_holds(s, (struct frame_value){FRAME_CFA, offset}, kind);
	case RECIPE_AT_FP:
		return slot_holds(s, shifted(s->fp, offset), kind);
	case RECIPE_AT_SP:
		return slot_holds(s, shifted(s->sp, offset), kind);
	case RECIPE_IN_REG:
		return frame_register(isa, s, (unsigned)offset).kind == kind;
	default:
		return false;
	}
}

static bool confirms_cfa(const struct isa *isa, const struct frame_state *s, const struct recipe *r)
{
	struct frame_value v = shifted(frame_register(isa, s, r->cfa_reg), r->cfa_offset);
	if (r->cfa == RECIPE_REG)
		return v.kind == FRAME_CFA && v.offset == 0;
	for (unsigned i = 0; i < s->slot_count; i++)
		if (same_value(s->slots[i].at, v))
			return s->slots[i].holds.kind == FRAME_CFA &&
			       s->slots[i].holds.offset + r->cfa_add == 0;
	return false;
}

enum frame_verdict frame_confirms(const struct isa *isa, const struct frame_state *s,
				  const struct recipe *r)
{
	struct recipe mine;
	frame_recipe(isa, s, &mine);
	if (r->cfa == RECIPE_ROOT || mine.cfa == RECIPE_ROOT)
		return r->cfa == mine.cfa        ? FRAME_AGREES
		       : mine.cfa == RECIPE_NONE ? FRAME_NO_STATE
						 : FRAME_OTHER_CFA;
	if (r->cfa == RECIPE_SIGNAL || r->cfa == RECIPE_COMPLEX || r->cfa == RECIPE_SPECIAL ||
	    r->cfa_vg)
		return FRAME_NOT_SAYABLE;
	if (mine.cfa == RECIPE_NONE)
		return FRAME_NO_STATE;
	if (!memcmp(&mine.cfa_reg, &r->cfa_reg,
		    offsetof(struct recipe, extra) - offsetof(struct recipe, cfa_reg)) &&
	    mine.cfa == r->cfa && mine.cfa_offset == r->cfa_offset && mine.cfa_add == r->cfa_add &&
	    mine.ra_offset == r->ra_offset && mine.fp_offset == r->fp_offset)
		return FRAME_AGREES;
	if (!confirms_cfa(isa, s, r))
		return FRAME_OTHER_CFA;
	if (is_popped(isa, s, r) || !confirms_place(isa, s, FRAME_RA, s->link, r->ra, r->ra_offset))
		return FRAME_OTHER_RA;
	if (r->fp == RECIPE_LOST)
		return mine.fp == RECIPE_LOST ? FRAME_AGREES : FRAME_OTHER_FP;
	if (!confirms_place(isa, s, FRAME_FP, s->fp, r->fp, r->fp_offset))
		return FRAME_OTHER_FP;
	return FRAME_AGREES;
}
