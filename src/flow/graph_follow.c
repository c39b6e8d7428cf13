/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/array.h"
#include "flow/graph_build.h"

#define MAX_BLOCKS 1000000u

static bool is_full(struct build *b)
{
	uint32_t max = b->in->max_blocks ? b->in->max_blocks : MAX_BLOCKS;
	if (b->leaders + b->leave_count < max)
		return false;
	b->graph->truncated = true;
	return true;
}

static void mark_leader(struct build *b, uint8_t *slot)
{
	if (!(*slot & SLOT_LEADER))
		b->leaders++;
	*slot |= SLOT_LEADER;
}

bool build_leads(struct build *b, uint64_t at)
{
	struct span *s = build_span(b, at);
	if (!s || at % b->isa->insn_min)
		return false;
	uint8_t *slot = build_slot(b, s, at);
	if (!(*slot & SLOT_LEADER) && is_full(b))
		return true;
	mark_leader(b, slot);
	if (!(*slot & SLOT_LENGTH) &&
	    build_grow(b, &b->todo, &b->todo_capacity, b->todo_count, sizeof *b->todo))
		b->todo[b->todo_count++] = at;
	return true;
}

/* Where an exception goes that is thrown below the call that returns to `at`; 0: nowhere. */
static uint64_t landing_of(const struct graph_input *in, uint64_t at)
{
	size_t found = FIRST_NOT(i, in->landing_count, in->landings[i].end < at);
	return found < in->landing_count && in->landings[found].start < at
		       ? in->landings[found].target
		       : 0;
}

static bool call_returns(const struct build *b, const struct insn *call)
{
	const struct graph_input *in = b->in;
	if (call->kind == INSN_CALL)
		return !in->never_returns || !in->never_returns(in->context, call->target);
	return !call->target || !in->never_returns_slot ||
	       !in->never_returns_slot(in->context, call->target);
}

static void mark_again(struct build *b, const struct insn *call)
{
	const struct graph_input *in = b->in;
	struct span *s = build_span(b, call->address);
	if (!s || !in->returns_again || !in->returns_again(in->context, call))
		return;
	uint8_t *slot = build_slot(b, s, call->address);
	mark_leader(b, slot);
	*slot |= SLOT_AGAIN;
}

/* Where control goes after a call. Returns how the block ends, GRAPH_FALLS where it does not. */
static enum graph_end end_of_call(struct build *b, const struct insn *call, uint64_t *landing)
{
	uint64_t next = call->address + call->length;
	struct span *s;
	mark_again(b, call);
	*landing = b->in->landing_count ? landing_of(b->in, next) : 0;
	if (*landing && (s = build_span(b, *landing)) && *landing % b->isa->insn_min == 0 &&
	    build_leads(b, *landing))
		*build_slot(b, s, *landing) |= SLOT_LANDING;
	else
		*landing = 0;
	/* What stands at the very end of a procedure has nowhere to return to. */
	if (!build_span(b, next) || !call_returns(b, call))
		return GRAPH_STOPS;
	return *landing ? GRAPH_CALLS : GRAPH_FALLS;
}

static enum graph_end end_of(struct build *b, const struct insn *insn, uint64_t *landing)
{
	switch (insn->kind) {
	case INSN_CALL:
	case INSN_CALL_INDIRECT:
		return end_of_call(b, insn, landing);
	case INSN_JUMP:
		return build_leads(b, insn->target) ? GRAPH_JUMPS : GRAPH_TAIL_CALLS;
	case INSN_BRANCH:
		build_leads(b, insn->target);
		return GRAPH_BRANCHES;
	case INSN_JUMP_INDIRECT:
		return insn->target ? GRAPH_TAIL_CALLS : GRAPH_UNRESOLVED;
	case INSN_RETURN:
		return GRAPH_RETURNS;
	case INSN_TRAP:
		return GRAPH_STOPS;
	case INSN_BAD:
		return GRAPH_BAD;
	default:
		return GRAPH_FALLS;
	}
}

static bool goes_on(enum graph_end ends)
{
	return ends == GRAPH_FALLS || ends == GRAPH_BRANCHES || ends == GRAPH_CALLS;
}

static void add_leave(struct build *b, const struct insn *insn, enum graph_end ends,
		      uint64_t landing)
{
	if (!build_grow(b, &b->leaves, &b->leave_capacity, b->leave_count, sizeof *b->leaves))
		return;
	b->leaves[b->leave_count++] = (struct leave){
		.at = insn->address,
		.target = insn->target,
		.landing = landing,
		.ends = (uint8_t)ends,
	};
}

/* One way, to its end or to what is known already. */
static void follow_way(struct build *b, uint64_t at)
{
	struct span *s = build_span(b, at);
	unsigned unit = b->isa->insn_min;
	struct insn insn;
	while (s && !b->failed) {
		uint8_t *slot = build_slot(b, s, at);
		uint64_t landing = 0;
		if (*slot & SLOT_LENGTH)
			return;
		b->isa->decode(s->bytes + (at - s->start), s->end - at, at, &insn);
		*slot |= (uint8_t)(insn.length / unit);
		enum graph_end ends = end_of(b, &insn, &landing);
		at += insn.length;
		if (at >= s->end)
			s = build_span(b, at);
		if (ends == GRAPH_FALLS && s)
			continue;
		if (ends == GRAPH_FALLS)
			ends = GRAPH_BAD;
		*slot |= SLOT_LEAVES;
		add_leave(b, &insn, ends, landing);
		if (!goes_on(ends) || !s || is_full(b))
			return;
		mark_leader(b, build_slot(b, s, at));
	}
}

void build_drain(struct build *b)
{
	while (b->todo_count && !b->failed)
		follow_way(b, b->todo[--b->todo_count]);
}

void build_follow(struct build *b, uint64_t at)
{
	build_leads(b, at);
	build_drain(b);
}

void build_gaps(struct build *b)
{
	struct insn insn;
	for (size_t i = 0; i < b->span_count && !b->failed; i++) {
		struct span *s = &b->spans[i];
		for (uint64_t at = s->start; at < s->end && !is_full(b);) {
			unsigned length = *build_slot(b, s, at) & SLOT_LENGTH;
			if (length) {
				at += length * b->isa->insn_min;
				continue;
			}
			b->isa->decode(s->bytes + (at - s->start), s->end - at, at, &insn);
			if (insn.kind == INSN_NOP || insn.kind == INSN_TRAP ||
			    insn.kind == INSN_BAD)
				at += insn.length;
			else
				build_follow(b, at);
		}
	}
}
