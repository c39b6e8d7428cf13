/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Following code.
 *
 * A way begins at a place with a state (flow/frame.h), applies one instruction
 * after the other and ends at a return, a jump, or code that has that state
 * already. Branches queue further ways. What keeps this from going wrong:
 *
 *  1. Nothing flows into the start of a procedure: its state is the entry's.
 *  2. Where ways meet, the state is narrowed to what holds on both, so each place
 *     changes only a few times and following ends.
 *  3. Where two ways disagree about SP, one of them is not real. The usual reason is
 *     a call that never returns, so what was reached by the return of a call gives
 *     way to what was reached otherwise, once (SLOT_AFTER, SLOT_REDONE). Else the
 *     first stays.
 *  4. What follows a call that may not return (it looks like the end of the
 *     procedure, or the callee has no return) waits until all that is certain was
 *     followed: it is left to region_fill, with the state as a candidate.
 *  5. From then on (`filling`), nothing changes what was certain (SLOT_SURE), and
 *     inferred starts give way to control that is seen to arrive (SLOT_SOFT).
 */
#include "flow/region.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "flow/returns.h"
#include "flow/tables.h"
#include "image/image.h"
#include "isa/insn.h"

bool region_grow(struct region *r, void *array, size_t *capacity, size_t count, size_t element)
{
	if (count < *capacity)
		return true;
	size_t wanted = *capacity ? *capacity * 2 : 64;
	void **pointer = array;
	void *grown = realloc(*pointer, wanted * element);
	if (!grown) {
		r->failed = 1;
		return false;
	}
	*pointer = grown;
	*capacity = wanted;
	return true;
}

static uint64_t mix(uint64_t h, struct frame_value v)
{
	h = (h ^ ((uint64_t)v.kind << 32 | (uint32_t)v.offset)) * 0xff51afd7ed558ccdu;
	return h ^ h >> 32;
}

static uint32_t state_hash(const struct frame_state *s)
{
	uint64_t h = mix(mix(mix(mix(s->guessed, s->sp), s->fp), s->link), s->extra);
	for (unsigned i = 0; i < s->slot_count; i++)
		h = mix(mix(h, s->slots[i].at), s->slots[i].holds);
	for (unsigned i = 0; i < s->other_count; i++)
		h = mix(h + s->other[i].reg, s->other[i].value);
	return (uint32_t)h;
}

/* The registers that hold a known value. */
static uint32_t live_registers(const struct isa *isa, const struct frame_state *s)
{
	uint32_t live = 1u << isa->sp;
	if (s->fp.kind)
		live |= 1u << isa->fp;
	if (s->extra.kind)
		live |= 1u << isa->extra;
	if (s->link.kind && isa->link != INSN_NO_REG)
		live |= 1u << isa->link;
	for (unsigned i = 0; i < s->other_count; i++)
		live |= 1u << s->other[i].reg;
	return live;
}

static bool rehash(struct region *r)
{
	uint32_t size = r->hash_size ? r->hash_size * 2 : 1024;
	uint32_t *hash = calloc(size, sizeof *hash);
	if (!hash)
		return false;
	for (uint32_t id = 1; id < r->state_count; id++) {
		uint32_t i = state_hash(&r->states[id]) & (size - 1);
		while (hash[i])
			i = (i + 1) & (size - 1);
		hash[i] = id;
	}
	free(r->hash);
	r->hash = hash;
	r->hash_size = size;
	return true;
}

uint32_t region_intern(struct region *r, const struct frame_state *state)
{
	if (r->state_count == 0)
		r->state_count = 1; /* index 0 means "none" */
	if (r->state_count * 2 >= r->hash_size && !rehash(r)) {
		r->failed = 1;
		return 0;
	}
	uint32_t i = state_hash(state) & (r->hash_size - 1);
	for (; r->hash[i]; i = (i + 1) & (r->hash_size - 1))
		if (!memcmp(&r->states[r->hash[i]], state, sizeof *state))
			return r->hash[i];
	if (r->state_count >= SLOT_STATE ||
	    !region_grow(r, &r->states, &r->state_capacity, r->state_count, sizeof *r->states) ||
	    !region_grow(r, &r->live, &r->live_capacity, r->state_count, sizeof *r->live)) {
		r->failed = 1;
		return 0;
	}
	r->states[r->state_count] = *state;
	r->live[r->state_count] = live_registers(r->isa, state);
	r->hash[i] = r->state_count;
	return r->state_count++;
}

void region_push(struct region *r, uint64_t at, uint32_t state, bool after_call)
{
	if (!state || !region_grow(r, &r->todo, &r->todo_capacity, r->todo_count, sizeof *r->todo))
		return;
	r->todo[r->todo_count++] = (struct region_todo){at, state, after_call};
}

void region_start(struct region *r, uint64_t at)
{
	struct frame_state entry;
	if (!region_has(r, at) || at % r->isa->insn_min)
		return;
	uint32_t *slot = region_slot(r, at, r->isa->insn_min);
	if (*slot & SLOT_START)
		return;
	*slot |= SLOT_START;
	if (region_grow(r, &r->starts, &r->start_capacity, r->start_count, sizeof *r->starts))
		r->starts[r->start_count++] = at;
	frame_entry(r->isa, &entry);
	region_push(r, at, region_intern(r, &entry), false);
}

static void leave_region(struct region *r, uint64_t to, uint32_t state, bool after_call)
{
	if (!region_grow(r, &r->edges, &r->edge_capacity, r->edge_count, sizeof *r->edges))
		return;
	r->edges[r->edge_count++] = (struct region_edge){to, after_call, r->states[state]};
}

static void note(struct region *r, struct region_mark **marks, size_t *count, size_t *capacity,
		 uint64_t at, uint32_t state)
{
	if (region_grow(r, marks, capacity, *count, sizeof **marks))
		(*marks)[(*count)++] = (struct region_mark){at, state};
}

/* Control goes to `to`, inside the procedure. */
static void go(struct region *r, uint64_t to, uint32_t state)
{
	if (region_has(r, to) && to % r->isa->insn_min == 0)
		*region_slot(r, to, r->isa->insn_min) |= SLOT_BRANCHED;
	if (!region_has(r, to))
		leave_region(r, to, state, false);
	else if (to % r->isa->insn_min == 0 &&
		 !(*region_slot(r, to, r->isa->insn_min) & SLOT_START))
		region_push(r, to, state, false);
}

/* An exception thrown below this call may arrive at a landing pad of the procedure. */
static void go_landing(struct region *r, const struct insn *call, uint32_t state)
{
	const struct trace_landing *all = r->input->landings;
	uint64_t at = call->address + call->length;
	size_t found = FIRST_NOT(i, r->input->landing_count, all[i].end < at);
	if (found < r->input->landing_count && all[found].start < at && at <= all[found].end)
		go(r, all[found].target, state);
}

/* An unconditional jump may leave the procedure. */
static void go_jump(struct region *r, const struct insn *insn, uint32_t state)
{
	uint64_t to = insn->target;
	bool here = region_has(r, to) && to % r->isa->insn_min == 0;
	if (here && (*region_slot(r, to, r->isa->insn_min) & SLOT_START))
		return;
	bool entry = frame_is_entry(r->isa, &r->states[state]);
	if (!entry && here && to % r->isa->procedure_align == 0 &&
	    (r->states[state].guessed || region_is_filled_to(r, to)) && region_opens_frame(r, to)) {
		/* No procedure sets up a second frame: it is the state that is wrong, or what is on the stack is
		   the next one's. (V8 puts arguments and the return address there, and jumps.) */
		region_start(r, to);
		return;
	}
	if (entry && region_grow(r, &r->tails, &r->tail_capacity, r->tail_count, sizeof *r->tails))
		r->tails[r->tail_count++] = (struct region_jump){insn->address, to};
	if (entry) {
		struct frame_state left = r->states[state];
		frame_leave(&left);
		state = region_intern(r, &left);
	}
	if (here)
		region_push(r, to, state, false);
	else if (!region_has(r, to))
		leave_region(r, to, state, false);
}

/* Is what follows a call the begin of something else: padding up to an aligned address, or a
   prologue? Then whether the call returns is decided after all that is certain. */
static bool looks_like_end(const struct region *r, uint64_t at)
{
	size_t size = r->limit - at;
	const uint8_t *code = r->bytes + (at - r->start);
	struct insn insn;
	if (at % r->isa->procedure_align == 0 && r->isa->is_prologue(code, size))
		return true;
	r->isa->decode(code, size, at, &insn);
	if (insn.kind != INSN_NOP && insn.kind != INSN_TRAP)
		return false;
	while (insn.kind == INSN_NOP && size > insn.length) {
		at += insn.length;
		code += insn.length;
		size -= insn.length;
		r->isa->decode(code, size, at, &insn);
	}
	return at % 16 == 0 || insn.kind == INSN_TRAP;
}

static bool is_reached(const struct region *r, uint64_t at)
{
	return at % r->isa->insn_min == 0 && (*region_slot(r, at, r->isa->insn_min) & SLOT_STATE);
}

static void call_procedure(struct region *r, const struct insn *insn)
{
	if (insn->kind != INSN_CALL || insn->target == insn->address + insn->length)
		return;
	if (region_has(r, insn->target) && !(r->filling && is_reached(r, insn->target)))
		region_start(r, insn->target);
	else if (!region_has(r, insn->target) &&
		 region_grow(r, &r->calls, &r->call_capacity, r->call_count, sizeof *r->calls))
		r->calls[r->call_count++] = insn->target;
}

static void note_doubt(struct region *r, uint64_t at, uint32_t state)
{
	note(r, &r->doubts, &r->doubt_count, &r->doubt_capacity, at, state);
	if (region_has(r, at))
		*region_slot(r, at, r->isa->insn_min) |= SLOT_DOUBT;
}

/* Continues after a call. Returns false where this is the end of the way. */
static bool after_call(struct region *r, const struct insn *insn, uint32_t state)
{
	uint64_t next = insn->address + insn->length;
	call_procedure(r, insn);
	if (r->input->landing_count)
		go_landing(r, insn, state);
	if (next >= r->limit)
		return false;
	uint64_t callee = call_target(r->returns, insn);
	if (callee && procedure_is_noreturn(r->returns, callee)) {
		if (region_has(r, next)) /* no state: nothing continues here for certain */
			*region_slot(r, next, r->isa->insn_min) |= SLOT_DOUBT;
		return false;
	}
	if ((callee && !procedure_returns(r->returns, callee)) || looks_like_end(r, next)) {
		note_doubt(r, next, state);
		return false;
	}
	return true;
}

/* What a way that arrives at a place that was reached before does to it. Returns the state to
   go on with, 0 to stop. */
static uint32_t arrive_again(struct region *r, uint32_t *slot, uint32_t state, bool after,
			     bool *redo)
{
	uint32_t old = *slot & SLOT_STATE;
	struct frame_state met;
	bool conflict;
	if (old == state || (r->filling && (*slot & SLOT_SURE)))
		return 0;
	met = r->states[old];
	/* Code that has lost its way back does not run: what such a way brings narrows nothing. */
	bool had = frame_has_return(&met), has = frame_has_return(&r->states[state]);
	if (had && !has)
		return 0;
	if ((met.guessed && !r->states[state].guessed) || (!had && has)) {
		if (*slot & SLOT_REDONE)
			return 0;
		*slot |= SLOT_REDONE;
		return state;
	}
	bool changed = frame_meet(&met, &r->states[state], &conflict);
	if (conflict) {
		bool wrong = *redo || ((*slot & SLOT_AFTER) && !after);
		if (!wrong || (*slot & SLOT_REDONE))
			return 0;
		*slot |= SLOT_REDONE; /* the call before it never returned */
		*redo = true;
		return state;
	}
	return changed ? region_intern(r, &met) : 0;
}

/* Most instructions touch nothing that the state knows of. */
static bool concerns(uint32_t live, const struct insn *insn)
{
	if (insn->kind == INSN_CALL || insn->kind == INSN_CALL_INDIRECT || (insn->writes & live))
		return true;
	for (unsigned i = 0; i < insn->effect_count; i++) {
		const struct effect *e = &insn->effects[i];
		bool source = e->src != INSN_NO_REG && (live >> e->src & 1);
		if ((live >> e->dst & 1) || (source && e->op != EFFECT_STORE) ||
		    (e->op == EFFECT_CONST && frame_keeps_constant(e->imm)))
			return true;
	}
	return false;
}

static uint32_t apply(struct region *r, const struct insn *insn, uint32_t state)
{
	if (!concerns(r->live[state], insn))
		return state;
	struct frame_state next = r->states[state];
	if (!frame_apply(r->isa, &next, insn))
		return state;
	/* Who returns has a caller, and uses the register as any other. */
	if (next.root && !r->states[state].root &&
	    procedure_returns(r->returns, insn->address + insn->length))
		next.root = 0;
	return region_intern(r, &next);
}

/* A procedure that pushes the link register, or saves it together with FP, or returns through it
   from where the last call left the stack, has not called anything before. So that call did not
   return, and another procedure begins behind it. (A mere store proves nothing: the register may
   serve as any other.) */
static bool needs_lost_link(const struct region *r, const struct insn *insn, uint32_t state,
			    uint32_t behind)
{
	const struct frame_state *s = &r->states[state];
	uint8_t link = r->isa->link;
	bool stores = false, pushes = false, record = false;
	if (link == INSN_NO_REG || s->link.kind != FRAME_UNKNOWN || s->sp.kind != FRAME_CFA)
		return false;
	if (insn->kind == INSN_RETURN)
		return insn->reg == link && s->sp.offset != 0 &&
		       s->sp.offset == r->states[behind].sp.offset;
	for (unsigned i = 0; i < insn->effect_count; i++) {
		const struct effect *e = &insn->effects[i];
		stores |= e->op == EFFECT_STORE && e->src == link;
		pushes |= e->op == EFFECT_MOVE && e->dst == r->isa->sp && e->imm < 0;
		record |= e->op == EFFECT_STORE && e->src == r->isa->fp && s->fp.kind == FRAME_CFA;
	}
	return stores && (pushes || record);
}

/* Padding belongs to nobody. */
static uint64_t skip_padding(const struct region *r, uint64_t at)
{
	struct insn insn;
	for (; region_has(r, at); at += insn.length) {
		r->isa->decode(r->bytes + (at - r->start), r->limit - at, at, &insn);
		if (insn.kind != INSN_NOP)
			break;
	}
	return at;
}

/* The loop that touches the pages of a large frame ends when SP has arrived at its end. */
static uint32_t after_compare(struct region *r, uint32_t state, unsigned compared)
{
	struct frame_state s = r->states[state];
	if (compared == INSN_NO_REG)
		return state;
	frame_equal_sp(r->isa, &s, compared);
	return region_intern(r, &s);
}

static unsigned length_at(const void *context, uint64_t at)
{
	const struct region *r = context;
	if (!region_has(r, at) || at % r->isa->insn_min)
		return 0;
	uint32_t slot = *region_slot(r, at, r->isa->insn_min);
	return (slot & SLOT_STATE) ? (slot >> SLOT_LENGTH_SHIFT) * r->isa->insn_min : 0;
}

static const uint8_t *data_at(const void *context, uint64_t address, size_t *size)
{
	return image_bytes_at(((const struct region *)context)->image, address, size);
}

#define TABLE_TARGETS 4096

#define PROLOGUE_INSNS 6

/* Where calls push nothing, schedulers like to put other instructions
   before it; where they do, pushes are as often arguments. */
bool region_opens_frame(const struct region *r, uint64_t at)
{
	unsigned look = r->isa->call_pushes ? 1 : PROLOGUE_INSNS;
	struct insn insn = {.kind = INSN_OTHER};
	for (; look && at < r->limit && insn.kind == INSN_OTHER; look--, at += insn.length) {
		const uint8_t *code = r->bytes + (int64_t)(at - r->start);
		if (r->isa->is_prologue(code, r->limit - at))
			return true;
		r->isa->decode(code, r->limit - at, at, &insn);
	}
	return false;
}

bool region_is_filled_to(const struct region *r, uint64_t at)
{
	const unsigned traps = 2; /* one may stand behind a jump for other reasons */
	struct insn insn;
	if (r->isa->insn_min > 1 || at % r->isa->procedure_align || !region_has(r, at - traps))
		return false;
	for (unsigned i = 1; i <= traps; i++) {
		r->isa->decode(r->bytes + (at - i - r->start), 1, at - i, &insn);
		if (insn.kind != INSN_TRAP)
			return false;
	}
	return true;
}

/* Does an instruction that was reached reach over this address? */
static bool is_inside_insn(const struct region *r, uint64_t at)
{
	for (uint64_t before = at; r->isa->insn_min == 1 && before > r->start && at - before < 15;)
		if (before--, length_at(r, before) > at - before)
			return true;
	return false;
}

/* Can a case of a switch begin here? Compilers send the impossible ones to the end of the
   procedure, where padding stands or the next one begins. */
static bool is_case(const struct region *r, uint64_t at)
{
	struct insn insn;
	if (region_has(r, at) &&
	    ((*region_slot(r, at, r->isa->insn_min) & SLOT_START) || is_inside_insn(r, at)))
		return false;
	r->isa->decode(r->bytes + (int64_t)(at - r->start), r->limit - at, at, &insn);
	if (insn.kind == INSN_NOP || insn.kind == INSN_TRAP || insn.kind == INSN_BAD)
		return false;
	return at % r->isa->procedure_align != 0 || !region_opens_frame(r, at);
}

static void follow_table(struct region *r, const struct jump_table *table, uint32_t state)
{
	uint64_t *targets = malloc(TABLE_TARGETS * sizeof *targets);
	if (!targets) {
		r->failed = 1;
		return;
	}
	size_t count = tables_targets(table, data_at, r, r->base, r->limit, r->isa->insn_min,
				      targets, TABLE_TARGETS);
	for (size_t i = 0; i < count; i++) {
		bool good = is_case(r, targets[i]);
		/* Where only a few addresses can begin a procedure, those wait until more are known. */
		if (good && !r->filling && r->isa->procedure_align > r->isa->insn_min &&
		    targets[i] % r->isa->procedure_align == 0)
			note(r, &r->late, &r->late_count, &r->late_capacity, targets[i], state);
		else if (good)
			go(r, targets[i], state);
	}
	free(targets);
}

/* Was the target computed, not loaded? Then it is a place in this procedure, not another one. */
static bool is_computed(const struct region *r, const struct insn *jump)
{
	struct insn insn;
	uint64_t before = jump->address;
	unsigned limit = 15;
	if (jump->reg == INSN_NO_REG)
		return false;
	do {
		if (before == r->start || !limit--)
			return false;
		before -= r->isa->insn_min;
	} while (before + length_at(r, before) != jump->address);
	r->isa->decode(r->bytes + (before - r->start), r->limit - before, before, &insn);
	for (unsigned i = 0; i < insn.effect_count; i++)
		if (insn.effects[i].dst == jump->reg &&
		    (insn.effects[i].op == EFFECT_ADD || insn.effects[i].op == EFFECT_SUB))
			return true;
	return insn.effect_count == 0 && insn.length > 1 && (insn.writes >> jump->reg & 1);
}

/* A jump table is followed; anything else is noted, for code that nothing else leads to. */
static void jump_indirect(struct region *r, const struct insn *insn, uint32_t state)
{
	bool entry = frame_is_entry(r->isa, &r->states[state]); /* most of these are tail calls */
	struct tables_code code = {
		.isa = r->isa,
		.bytes = r->bytes,
		.start = r->start,
		.end = r->limit,
		.length = length_at,
		.context = r,
		.branches = &r->branches,
		.nearby = entry,
	};
	struct jump_table table;
	bool found = !insn->target && tables_find(&code, insn->address, &table);
	if (found || !entry || is_computed(r, insn))
		note(r, &r->switches, &r->switch_count, &r->switch_capacity, insn->address, state);
	if (!found)
		return;
	/* Where no compare bounds the index, a guess at the end of the table does more harm than good:
	   region_fill finds most of these cases by what they do next. */
	if (table.exact)
		follow_table(r, &table, state);
}

void region_take_late(struct region *r)
{
	for (size_t i = 0; i < r->late_count; i++)
		if (is_case(r, r->late[i].at))
			go(r, r->late[i].at, r->late[i].state);
	r->late_count = 0;
	region_drain(r);
}

static void note_branch(struct region *r, const struct insn *insn, bool known)
{
	if (!known && region_has(r, insn->target) &&
	    !branches_add(&r->branches, insn->address, insn->target))
		r->failed = 1;
}

/* One way from a place to where it ends: jump, return, or code whose state is known. */
static void follow(struct region *r, uint64_t at, uint32_t state, bool after)
{
	unsigned unit = r->isa->insn_min;
	bool first = true,
	     redo = !r->filling && region_has(r, at) && (*region_slot(r, at, unit) & SLOT_START);
	uint64_t behind_call = 0;
	uint32_t behind_state = 0;
	unsigned compared = INSN_NO_REG; /* with SP, last */
	struct insn insn;
	for (; state && !r->failed; first = false) {
		if (!region_has(r, at)) {
			leave_region(r, at, state, after);
			return;
		}
		uint32_t *slot = region_slot(r, at, unit);
		if (!first && (*slot & SLOT_START))
			return;
		if (*slot & SLOT_STATE) {
			state = arrive_again(r, slot, state, after, &redo);
			if (!state)
				return;
		}
		r->isa->decode(r->bytes + (at - r->start), r->limit - at, at, &insn);
		if (insn.kind == INSN_BAD)
			return;
		if (behind_call && needs_lost_link(r, &insn, state, behind_state)) {
			uint64_t behind = skip_padding(r, behind_call);
			/* Where a branch goes, this procedure continues: with what the branch brings. */
			if (!region_has(r, behind) ||
			    !(*region_slot(r, behind, unit) & SLOT_BRANCHED))
				region_start(r, behind);
			return;
		}
		bool known = *slot & SLOT_STATE;
		*slot = (*slot &
			 (SLOT_START | SLOT_REDONE | SLOT_SOFT | SLOT_BRANCHED | SLOT_DOUBT)) |
			state | (after ? SLOT_AFTER : 0) | (r->filling ? 0 : SLOT_SURE) |
			(uint32_t)(insn.length / unit) << SLOT_LENGTH_SHIFT;
		uint32_t next = apply(r, &insn, state);
		after = after && insn.kind == INSN_NOP;
		if (insn.effect_count && insn.effects[0].op == EFFECT_COMPARE)
			compared = insn.effects[0].src;
		switch (insn.kind) {
		case INSN_CALL:
		case INSN_CALL_INDIRECT:
			if (!after_call(r, &insn, next))
				return;
			after = true;
			behind_call = at + insn.length;
			behind_state = next;
			break;
		case INSN_JUMP:
			note_branch(r, &insn, known);
			go_jump(r, &insn, next);
			return;
		case INSN_JUMP_INDIRECT:
			jump_indirect(r, &insn, state);
			return;
		case INSN_BRANCH:
			note_branch(r, &insn, known);
			go(r, insn.target, next);
			next = after_compare(r, next, compared);
			break;
		case INSN_RETURN:
		case INSN_TRAP:
			return;
		default:
			break;
		}
		state = next;
		at += insn.length;
	}
}

void region_drain(struct region *r)
{
	while (r->todo_count && !r->failed) {
		struct region_todo t = r->todo[--r->todo_count];
		follow(r, t.at, t.state, t.after_call);
	}
}

void region_arrive(struct region *r)
{
	r->stirred = r->incoming_count || r->arrival_count;
	for (size_t i = 0; i < r->incoming_count; i++)
		if (!(r->filling && is_reached(r, r->incoming[i])))
			region_start(r, r->incoming[i]);
	r->incoming_count = 0;
	for (size_t i = 0; i < r->arrival_count; i++) {
		const struct region_edge *e = &r->arrivals[i];
		if (e->to % r->isa->insn_min)
			continue;
		uint32_t *slot = region_slot(r, e->to, r->isa->insn_min);
		if (!e->after_call && !frame_is_entry(r->isa, &e->state) &&
		    region_is_filled_to(r, e->to) && region_opens_frame(r, e->to)) {
			region_start(r, e->to); /* as in go_jump */
			continue;
		}
		if ((*slot & SLOT_SOFT) &&
		    !e->after_call) /* nothing was known of this way when it was inferred */
			*slot &= ~(SLOT_START | SLOT_SOFT | SLOT_STATE | SLOT_SURE);
		if (!(*slot & SLOT_START))
			region_push(r, e->to, region_intern(r, &e->state), e->after_call);
	}
	r->arrival_count = 0;
}
