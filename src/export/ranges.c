/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stretches of code that ran from their first to their last instruction, and jumps, each with how often: the text that
 * llvm-profgen --unsymbolized-profile reads.
 *
 *     number of stretches
 *     FIRST-LAST:COUNT ...
 *     number of jumps
 *     FROM->TO:COUNT ...
 *
 * Addresses are hexadecimal, and count from the page with which the first segment with code begins.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/err.h"
#include "explain/program.h"
#include "export/executions_of.h"
#include "image/image.h"
#include "isa/insn.h"

#define PAGE 4096

struct stretch {
	uint64_t first, last, count;
};

struct ranges {
	const struct function *f; /* at hand */
	struct stretch *stretches, *jumps;
	size_t stretch_count, stretch_room, jump_count, jump_room;
	bool failed;
};

static void add_stretch(struct ranges *r, uint64_t first, uint64_t last, double count)
{
	if (executions_round(count) == 0)
		return;
	if (ARRAY_ROOM(r->stretches, r->stretch_count, r->stretch_room))
		r->stretches[r->stretch_count++] = (struct stretch){first, last,
								    executions_round(count)};
	else
		r->failed = true;
}

static void add_jump(struct ranges *r, uint64_t from, uint64_t to, double count)
{
	if (executions_round(count) == 0)
		return;
	if (ARRAY_ROOM(r->jumps, r->jump_count, r->jump_room))
		r->jumps[r->jump_count++] = (struct stretch){from, to, executions_round(count)};
	else
		r->failed = true;
}

static void add_call(void *context, size_t insn, uint64_t to, const char *symbol, double count)
{
	struct ranges *r = context;
	(void)symbol;
	if (to)
		add_jump(r, r->f->insns[insn].address, to, count);
}

/* A stretch ends where a block does, and with each call: that is a jump, too. */
static void add_stretches(struct ranges *r)
{
	const struct function *f = r->f;
	for (size_t i = 0, first = 0; i < f->insn_count; i++) {
		const struct explain_insn *n = &f->insns[i];
		if (!i || n[-1].block != n->block || n[-1].kind == INSN_CALL ||
		    n[-1].kind == INSN_CALL_INDIRECT)
			first = i;
		bool ends = i + 1 == f->insn_count || n[1].block != n->block ||
			    n->kind == INSN_CALL || n->kind == INSN_CALL_INDIRECT;
		if (ends && n->block != GRAPH_NONE)
			add_stretch(r, f->insns[first].address, n->address, n->frequency);
	}
}

static void add_function(struct executions *x, struct ranges *r)
{
	const struct graph *g = &r->f->graph;
	add_stretches(r);
	for (size_t i = 0; i < g->edge_count; i++)
		if (g->edges[i].kind == EDGE_JUMP || g->edges[i].kind == EDGE_SWITCH)
			add_jump(r, g->blocks[g->edges[i].from].last,
				 g->blocks[g->edges[i].to].start,
				 r->f->frequency.edges[i].executions);
	executions_of_calls(x, r->f, add_call, r);
}

static uint64_t find_base(const struct image *image)
{
	const struct image_segment *all;
	size_t count = image_segments(image, &all);
	for (size_t i = 0; i < count; i++)
		if (all[i].executable)
			return all[i].address / PAGE * PAGE;
	return 0;
}

static void print(const struct executions *x, const struct ranges *r)
{
	uint64_t base = find_base(x->image);
	fprintf(x->out, "%zu\n", r->stretch_count);
	for (size_t i = 0; i < r->stretch_count; i++)
		fprintf(x->out, "%" PRIx64 "-%" PRIx64 ":%" PRIu64 "\n",
			r->stretches[i].first - base, r->stretches[i].last - base,
			r->stretches[i].count);
	fprintf(x->out, "%zu\n", r->jump_count);
	for (size_t i = 0; i < r->jump_count; i++)
		fprintf(x->out, "%" PRIx64 "->%" PRIx64 ":%" PRIu64 "\n", r->jumps[i].first - base,
			r->jumps[i].last - base, r->jumps[i].count);
}

struct err *ranges_write(struct executions *x)
{
	struct ranges r = {0};
	for (size_t i = 0; i < x->program->count; i++) {
		r.f = x->program->functions[i].function;
		add_function(x, &r);
	}
	struct err *e = r.failed ? err_new("out of memory") : NULL;
	if (!e)
		print(x, &r);
	free(r.stretches);
	free(r.jumps);
	return e;
}
