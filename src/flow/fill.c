/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that nothing was seen to reach: targets of jump tables, procedures that
 * are only called through pointers, what follows a call that may not return.
 *
 * The frame of such code is inferred from what it does next. It is followed
 * with a blank state, in which SP, FP and the stack words are symbols, until
 *
 *   - it returns: then SP there is the CFA, the words that were loaded into FP
 *     and the link register are the places where they were saved, and all of
 *     that is known relative to SP here; or
 *   - it arrives at code whose state is known: then the state here is that one,
 *     shifted by what SP moved in between; or
 *   - neither: then it is a procedure if it looks like one, else it continues
 *     the nearest code before it that jumps through a table or calls.
 */
#include <string.h>

#include "flow/region.h"
#include "isa/insn.h"
#include "unwind/recipe.h"

#define PROBE_INSNS 600
#define PROBE_WAYS 24
#define BACK_INSNS 131072

enum probe_end { PROBE_NOTHING, PROBE_RETURNS, PROBE_JOINS };

struct probe {
	enum probe_end end;
	struct frame_state state; /* where it ended */
	uint32_t joined;          /* state of the code it arrived at */
	bool uses_frame;          /* reads or writes a frame that it did not set up */
	bool uses_fp;             /* by the frame pointer */
	bool inside; /* works with registers that are the caller's at an entry: no procedure begins here */
};

struct way {
	uint64_t at;
	struct frame_state state;
	uint32_t set; /* registers that were set on the way */
};

/* Does the instruction rely on a frame pointer that was set up before? Saving it is not that. */
static bool relies_on_fp(const struct isa *isa, const struct frame_state *s, const struct effect *e)
{
	unsigned base = e->op == EFFECT_STORE ? e->dst : e->src;
	return e->op != EFFECT_CONST && base != INSN_NO_REG &&
	       frame_register(isa, s, base).kind == FRAME_ALIGNED;
}

static void note_uses(const struct isa *isa, const struct frame_state *s, const struct insn *insn,
		      struct probe *out)
{
	for (unsigned i = 0; i < insn->effect_count; i++) {
		const struct effect *e = &insn->effects[i];
		out->uses_fp |= relies_on_fp(isa, s, e);
		if (e->op != EFFECT_LOAD && e->op != EFFECT_STORE)
			continue;
		struct frame_value v = frame_register(isa, s,
						      e->op == EFFECT_LOAD ? e->src : e->dst);
		int32_t least = e->op == EFFECT_STORE ? 0 : isa->call_pushes;
		out->uses_frame |= v.kind == FRAME_CFA && v.offset + e->imm >= least;
	}
	out->uses_frame |= out->uses_fp;
}

/* Does it use a register as an address or a number that it should have found nothing in? To save or
   copy it is not that. */
static bool uses_kept(const struct isa *isa, struct way *w, const struct insn *insn)
{
	uint32_t used = insn->base < 32 ? 1u << insn->base : 0;
	for (unsigned i = 0; i < insn->effect_count; i++) {
		const struct effect *e = &insn->effects[i];
		if ((e->op == EFFECT_ADD || e->op == EFFECT_SUB) && e->src < 32 && e->src2 < 32)
			used |= 1u << e->src | 1u << e->src2;
		if (e->op == EFFECT_MOVE && e->src == e->dst && e->imm && e->src < 32)
			used |= 1u << e->src;
	}
	bool found = used & isa->kept & ~w->set;
	for (unsigned i = 0; i < insn->effect_count; i++)
		if (insn->effects[i].op != EFFECT_STORE && insn->effects[i].dst < 32)
			w->set |= 1u << insn->effects[i].dst;
	w->set |= insn->writes;
	return found;
}

static bool seen(const uint64_t *list, size_t count, uint64_t at)
{
	for (size_t i = 0; i < count; i++)
		if (list[i] == at)
			return true;
	return false;
}

/* A jump to a procedure, with the stack given back. Where it is not known what the target is, only
   giving back tells. */
static bool is_tail_call(const struct region *r, const struct insn *jump,
			 const struct frame_state *s)
{
	uint64_t to = jump->target;
	bool outside = to < r->base ||
		       to >= r->limit; /* another section: stubs of imported procedures */
	bool start = region_has(r, to) && to % r->isa->insn_min == 0 &&
		     (*region_slot(r, to, r->isa->insn_min) & SLOT_START);
	if (s->sp.kind != FRAME_CFA || (region_has(r, to) && !start))
		return false;
	return s->sp.offset > 0 || (s->sp.offset == 0 && (outside || start));
}

/* Follows one way; queues the other side of branches. Returns true when it came to an end that
   tells something. */
static bool probe_way(const struct region *r, struct way *ways, size_t *way_count, uint64_t *heads,
		      size_t *head_count, unsigned *budget, struct probe *out)
{
	struct way w = ways[--*way_count];
	unsigned unit = r->isa->insn_min;
	struct insn insn;
	while (*budget && w.at >= r->base && w.at < r->limit) {
		uint32_t slot = region_has(r, w.at) ? *region_slot(r, w.at, unit) : 0;
		if ((slot & SLOT_STATE) && !r->states[slot & SLOT_STATE].guessed &&
		    !(slot & SLOT_START)) {
			out->end = PROBE_JOINS;
			out->joined = slot & SLOT_STATE;
			out->state = w.state;
			return true;
		}
		if (slot & SLOT_START)
			return false;
		--*budget;
		r->isa->decode(r->bytes + (int64_t)(w.at - r->start), r->limit - w.at, w.at, &insn);
		note_uses(r->isa, &w.state, &insn, out);
		out->inside |= uses_kept(r->isa, &w, &insn);
		switch (insn.kind) {
		case INSN_RETURN:
			out->end = PROBE_RETURNS;
			out->state = w.state;
			return true;
		case INSN_JUMP_INDIRECT:
			if (!insn.target || w.state.sp.kind != FRAME_CFA || w.state.sp.offset < 0)
				return false;
			out->end = PROBE_RETURNS; /* a tail call through a word of memory */
			out->state = w.state;
			return true;
		case INSN_BAD:
		case INSN_TRAP:
			return false;
		case INSN_BRANCH:
			if (*way_count < PROBE_WAYS && *head_count < PROBE_WAYS &&
			    !seen(heads, *head_count, insn.target)) {
				heads[(*head_count)++] = insn.target;
				ways[(*way_count)++] = (struct way){insn.target, w.state, w.set};
			}
			break;
		default:
			break;
		}
		frame_apply(r->isa, &w.state, &insn);
		if (insn.kind == INSN_JUMP) {
			if (is_tail_call(r, &insn, &w.state)) {
				out->end = PROBE_RETURNS;
				out->state = w.state;
				return true;
			}
			if (seen(heads, *head_count, insn.target) || *head_count == PROBE_WAYS)
				return false;
			heads[(*head_count)++] = insn.target;
			w.at = insn.target;
		} else {
			w.at += insn.length;
		}
	}
	return false;
}

static void probe(const struct region *r, uint64_t at, struct probe *out)
{
	struct way ways[PROBE_WAYS + 1];
	uint64_t heads[PROBE_WAYS];
	size_t way_count = 1, head_count = 1;
	unsigned budget = PROBE_INSNS;
	memset(out, 0, sizeof *out);
	ways[0].at = at;
	ways[0].set = 0;
	frame_blank(&ways[0].state);
	heads[0] = at;
	while (way_count && budget)
		if (probe_way(r, ways, &way_count, heads, &head_count, &budget, out))
			return;
}

static void add_slot(struct frame_state *s, int32_t at, uint32_t holds)
{
	if (s->slot_count < FRAME_SLOTS)
		s->slots[s->slot_count++] = (struct frame_slot){{FRAME_CFA, at}, {holds, 0}};
}

/* The state where the probe began, given that it returned with `end`. */
static bool from_return(const struct region *r, const struct frame_state *end,
			struct frame_state *s)
{
	int32_t pushes = r->isa->call_pushes;
	bool by_fp = end->sp.kind == FRAME_ALIGNED;
	if (!by_fp && (end->sp.kind != FRAME_CFA || end->sp.offset < 0))
		return false;
	/* CFA = (SP or FP here) + height */
	int32_t height = end->sp.offset + pushes;
	uint32_t word = by_fp ? FRAME_FP_WORD : FRAME_WORD;
	memset(s, 0, sizeof *s);
	s->guessed = 1;
	if (by_fp)
		s->fp = (struct frame_value){FRAME_CFA, -height};
	else
		s->sp = (struct frame_value){FRAME_CFA, -height};
	if (pushes)
		add_slot(s, -pushes, FRAME_RA);
	else if (end->link.kind == word)
		add_slot(s, end->link.offset - height, FRAME_RA);
	else if (end->link.kind == FRAME_RA && !by_fp)
		s->link = (struct frame_value){FRAME_RA, 0};
	else
		return false;
	if (end->fp.kind == word)
		add_slot(s, end->fp.offset - height, FRAME_FP);
	else if (end->fp.kind == FRAME_ALIGNED && end->fp.offset == 0)
		s->fp = (struct frame_value){FRAME_FP, 0};
	if (end->extra.kind == word)
		add_slot(s, end->extra.offset - height, FRAME_EXTRA);
	else if (end->extra.kind == FRAME_EXTRA)
		s->extra = end->extra;
	return true;
}

/* The state where the probe began, given that it arrived with `end` where `known` holds. */
static bool from_join(const struct frame_state *end, const struct frame_state *known,
		      struct frame_state *s)
{
	*s = *known;
	s->guessed = 1;
	s->root = 0;
	if (end->sp.kind == FRAME_CFA && known->sp.kind == FRAME_CFA)
		s->sp.offset = known->sp.offset - end->sp.offset;
	else
		s->sp = (struct frame_value){FRAME_UNKNOWN, 0};
	if (!(end->fp.kind == FRAME_ALIGNED && end->fp.offset == 0))
		s->fp = (struct frame_value){FRAME_UNKNOWN, 0};
	if (end->link.kind != FRAME_RA)
		s->link = (struct frame_value){FRAME_UNKNOWN, 0};
	if (end->extra.kind != FRAME_EXTRA)
		s->extra = (struct frame_value){FRAME_UNKNOWN, 0};
	memset(s->other, 0, sizeof s->other);
	s->other_count = 0;
	return s->sp.kind == FRAME_CFA || s->fp.kind == FRAME_CFA;
}

/* The state of the nearest code before `at` in the same procedure from which control could have
   come here: a jump through a table (*by_switch), else whatever has the deepest frame. */
static uint32_t continued_state(const struct region *r, uint64_t at, bool *by_switch)
{
	unsigned unit = r->isa->insn_min;
	uint32_t best = 0, last = 0;
	uint64_t begin = r->start;
	unsigned budget = BACK_INSNS;
	for (uint64_t a = at; a > r->start && budget--;) {
		a -= unit;
		uint32_t slot = *region_slot(r, a, unit);
		uint32_t id = slot & SLOT_STATE;
		if (id && id != last && r->states[id].sp.kind == FRAME_CFA &&
		    (!best || r->states[id].sp.offset < r->states[best].sp.offset))
			best = id;
		last = id ? id : last;
		if (slot & SLOT_START) {
			begin = a;
			break;
		}
	}
	for (size_t i = 0; i < r->switch_count; i++)
		if (r->switches[i].at <= at && r->switches[i].at >= begin) {
			begin = r->switches[i].at; /* the nearest */
			*by_switch = true;
			best = r->switches[i].state;
		}
	return best;
}

static uint32_t doubt_state(const struct region *r, uint64_t at)
{
	for (size_t i = 0; i < r->doubt_count; i++)
		if (r->doubts[i].at == at)
			return r->doubts[i].state;
	return 0;
}

static bool same_frame(const struct frame_state *a, const struct frame_state *b)
{
	if (a->sp.kind == FRAME_CFA && b->sp.kind == FRAME_CFA)
		return a->sp.offset == b->sp.offset;
	return a->fp.kind == FRAME_CFA && b->fp.kind == FRAME_CFA && a->fp.offset == b->fp.offset;
}

/* Where the frame was saved in the same places, FP is what it is in the rest of the procedure. */
static void borrow_fp(struct frame_state *s, const struct frame_state *continued)
{
	struct frame_value mine = frame_saved(s, FRAME_FP),
			   other = frame_saved(continued, FRAME_FP);
	if (s->fp.kind == FRAME_UNKNOWN && mine.kind == FRAME_CFA && other.kind == FRAME_CFA &&
	    mine.offset == other.offset)
		s->fp = continued->fp;
}

/* Does the state lead to a caller, and is SP not above the frame? */
static bool is_plausible(const struct region *r, const struct frame_state *s)
{
	struct recipe recipe;
	frame_recipe(r->isa, s, &recipe);
	return recipe.cfa != RECIPE_NONE && recipe.cfa != RECIPE_ROOT &&
	       !(s->sp.kind == FRAME_CFA && s->sp.offset > -(int32_t)r->isa->call_pushes);
}

static void seed_guess(struct region *r, uint64_t at, const struct frame_state *state)
{
	struct frame_state s = *state;
	s.guessed = 1;
	region_push(r, at, region_intern(r, &s), false);
}

/* Is the first thing here a push, where a procedure may begin? */
static bool pushes(const struct region *r, uint64_t at)
{
	struct insn insn;
	bool stores = false, moves = false;
	r->isa->decode(r->bytes + (at - r->start), r->limit - at, at, &insn);
	for (unsigned i = 0; i < insn.effect_count; i++) {
		stores |= insn.effects[i].op == EFFECT_STORE;
		moves |= insn.effects[i].op == EFFECT_MOVE && insn.effects[i].dst == r->isa->sp &&
			 insn.effects[i].imm < 0;
	}
	return at % r->isa->procedure_align == 0 && stores && moves;
}

/* `at` is the first instruction of a gap, `padded`: padding stands before it. `before` is the
   state with which control would come here from the code before, 0 where it cannot. `ended`:
   the code before ends for certain. */
static void fill_at(struct region *r, uint64_t at, bool padded, uint32_t before, bool ended)
{
	struct frame_state inferred;
	struct probe p;
	bool prologue = region_opens_frame(r, at) || (padded && pushes(r, at));
	bool known = false;
	probe(r, at, &p);
	if (p.end == PROBE_RETURNS)
		known = from_return(r, &p.state, &inferred);
	else if (p.end == PROBE_JOINS)
		known = from_join(&p.state, &r->states[p.joined], &inferred);
	known = known && is_plausible(r, &inferred);
	bool by_switch = false;
	uint32_t continued = before ? before : continued_state(r, at, &by_switch);
	if (continued && !is_plausible(r, &r->states[continued])) {
		continued = before = 0;
		by_switch = false; /* what it led to is not known */
	}
	if (known && continued)
		borrow_fp(&inferred, &r->states[continued]);
	/* Where procedures are aligned, the lack of padding tells that one goes on. */
	bool led = by_switch || before || r->isa->procedure_align > r->isa->insn_min;
	if (region_is_filled_to(r, at)) {
		region_start(r, at);
	} else if (known && frame_is_entry(r->isa, &inferred)) {
		if (by_switch && !prologue && frame_is_entry(r->isa, &r->states[continued]))
			seed_guess(r, at, &inferred);
		else
			region_start(r, at);
	} else if (by_switch && p.inside && !prologue) {
		seed_guess(r, at, &r->states[continued]);
	} else if (before && p.uses_fp && r->states[before].fp.kind == FRAME_CFA) {
		seed_guess(r, at, &r->states[before]);
	} else if (prologue && padded) {
		region_start(r, at);
	} else if (known && continued && same_frame(&inferred, &r->states[continued])) {
		seed_guess(r, at, &r->states[continued]);
	} else if (known) {
		seed_guess(r, at, &inferred);
	} else if (continued && !prologue && (p.uses_frame || (led && !(padded || ended)))) {
		seed_guess(r, at, &r->states[continued]);
	} else {
		region_start(r, at);
	}
	*region_slot(r, at, r->isa->insn_min) |= SLOT_SOFT;
}

void region_take_hints(struct region *r)
{
	unsigned unit = r->isa->insn_min;
	size_t i = 0, high = r->input->hint_count;
	r->filling = true;
	while (i < high) {
		size_t middle = (i + high) / 2;
		if (r->input->hints[middle] < r->start)
			i = middle + 1;
		else
			high = middle;
	}
	for (; i < r->input->hint_count && r->input->hints[i] < r->end && !r->failed; i++) {
		uint64_t at = r->input->hints[i];
		if (at % unit == 0 && !(*region_slot(r, at, unit) & SLOT_STATE))
			fill_at(r, at, true, 0, false);
		region_drain(r);
	}
}

/* Where the first procedure or reached instruction is: what stands before belongs to a procedure
   that began in the region before. */
static uint64_t first_known(const struct region *r)
{
	unsigned unit = r->isa->insn_min;
	uint64_t at = r->start;
	while (at < r->end && !(*region_slot(r, at, unit) & (SLOT_STATE | SLOT_START)))
		at += unit;
	return at;
}

/* Instructions that do nothing, before code that was given a state: they may be its own (hand-written
   procedures begin with one, and so may what follows a call), and a recipe for padding does no harm. */
static void claim_padding(struct region *r, uint64_t padding, uint64_t at)
{
	uint32_t id = *region_slot(r, at, r->isa->insn_min) & SLOT_STATE;
	if (!padding || !id)
		return;
	struct frame_state state = r->states[id];
	state.guessed = 1;
	region_push(r, padding, region_intern(r, &state), false);
	region_drain(r);
}

/* Where instructions have any length, the last bytes of a gap can look like one that reaches into the
   next procedure: the last zero of padding, or data. */
static bool is_rest(const struct region *r, const struct insn *insn, bool padded)
{
	const uint8_t *byte = r->bytes + (insn->address - r->start);
	if (r->isa->insn_min > 1)
		return false;
	if (padded && insn->address > r->start && !byte[0] && !byte[-1])
		return true;
	for (uint64_t at = insn->address + 1; at < insn->address + insn->length; at++)
		if (region_has(r, at) && (*region_slot(r, at, 1) & SLOT_START))
			return true;
	return false;
}

/* Fills all gaps from `at` on. */
static void fill_from(struct region *r, uint64_t at)
{
	unsigned unit = r->isa->insn_min;
	struct insn insn;
	bool padded = r->first;
	uint64_t padding = 0; /* where the instructions that do nothing before `at` begin */
	uint32_t before = 0;
	bool ended = false; /* a call that never returns, by its name, stands before */
	r->filling = true;
	while (at < r->end && !r->failed) {
		uint32_t slot = *region_slot(r, at, unit);
		uint32_t length = (slot >> SLOT_LENGTH_SHIFT) * unit;
		if (slot & SLOT_STATE) {
			if (before) /* nothing but padding stood between a call and this */
				claim_padding(r, padding, at);
			at += length ? length : unit;
			padded = false;
			padding = 0;
			before = 0;
			ended = false;
			continue;
		}
		uint32_t doubt = (slot & SLOT_DOUBT) ? doubt_state(r, at) : 0;
		before = doubt ? doubt : before;
		ended = ended || ((slot & SLOT_DOUBT) && !doubt);
		r->isa->decode(r->bytes + (at - r->start), r->limit - at, at, &insn);
		if (insn.kind == INSN_NOP || insn.kind == INSN_TRAP || insn.kind == INSN_BAD) {
			padding = insn.kind != INSN_NOP ? 0 : padding ? padding : at;
			padded = true;
			at += insn.length;
			continue;
		}
		if (is_rest(r, &insn, padded)) {
			padding = 0;
			padded = true;
			at++;
			continue;
		}
		fill_at(r, at, padded, before, ended);
		region_drain(r);
		claim_padding(r, padding, at);
		if (!(*region_slot(r, at, unit) & SLOT_STATE)) {
			at += insn.length;
			before = 0;
		}
	}
}

void region_fill(struct region *r)
{
	fill_from(r, r->first ? r->start : first_known(r));
}

void region_fill_head(struct region *r)
{
	uint64_t at = r->start;
	/* An instruction may reach over from the region before. */
	if (r->isa->insn_min == 1 && !r->first && first_known(r) < r->start + 15)
		at = first_known(r);
	fill_from(r, at);
}
