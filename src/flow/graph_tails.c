/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An indirect jump whose target is not computed is a tail call where the stack and the
 * caller's registers are as they were at the entry: nothing of the procedure is
 * left. The frame (flow/frame.h) is followed over the blocks for that, where
 * there is such a jump; the first way to come to a block counts.
 */
#include <stdlib.h>

#include "flow/frame.h"
#include "flow/graph_build.h"

#define MAX_BLOCKS 100000u

struct frames {
	struct build *b;
	struct frame_state *states; /* where each block begins */
	bool *known;
	uint32_t *todo;
	size_t count;
};

static bool is_computed(const struct build *b, uint64_t jump)
{
	const struct leave *leave = build_leave(b, jump);
	return leave && leave->computed;
}

static void arrive(struct frames *f, uint32_t block, const struct frame_state *state)
{
	if (f->known[block])
		return;
	f->known[block] = true;
	f->states[block] = *state;
	f->todo[f->count++] = block;
}

static void pass(struct frames *f, struct graph_block *block, struct frame_state state)
{
	const struct isa *isa = f->b->isa;
	const struct span *s = build_span(f->b, block->start);
	struct insn insn;
	for (uint64_t at = block->start; s && at < block->end && at < s->end; at += insn.length) {
		isa->decode(s->bytes + (at - s->start), s->end - at, at, &insn);
		if (at == block->last && block->ends == GRAPH_UNRESOLVED &&
		    !is_computed(f->b, at) && frame_is_entry(isa, &state))
			block->ends = GRAPH_TAIL_CALLS;
		frame_apply(isa, &state, &insn);
	}
	for (uint32_t i = 0; i < block->count; i++)
		arrive(f, f->b->graph->edges[block->first + i].to, &state);
}

static void follow_frames(struct frames *f)
{
	struct graph *g = f->b->graph;
	struct frame_state entry;
	frame_entry(f->b->isa, &entry);
	arrive(f, g->entry, &entry);
	while (f->count) {
		uint32_t i = f->todo[--f->count];
		pass(f, &g->blocks[i], f->states[i]);
	}
}

void build_tail_calls(struct build *b)
{
	struct graph *g = b->graph;
	struct frames f = {.b = b};
	bool any = false;
	for (size_t i = 0; i < g->block_count; i++)
		any |= g->blocks[i].ends == GRAPH_UNRESOLVED;
	if (!any || g->entry == GRAPH_NONE || b->failed)
		return;
	if (g->block_count <= MAX_BLOCKS) {
		f.states = malloc(g->block_count * sizeof *f.states);
		f.known = calloc(g->block_count, sizeof *f.known);
		f.todo = malloc(g->block_count * sizeof *f.todo);
		b->failed = !f.states || !f.known || !f.todo;
		if (!b->failed)
			follow_frames(&f);
		free(f.states);
		free(f.known);
		free(f.todo);
	}
	for (size_t i = 0; i < g->block_count; i++)
		g->unresolved += g->blocks[i].ends == GRAPH_UNRESOLVED;
}
