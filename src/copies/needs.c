/* SPDX-License-Identifier: Apache-2.0 */
#include "copies/needs.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "copies/live.h"
#include "copies/original.h"
#include "copies/use.h"
#include "flow/graph.h"
#include "isa/insn.h"

/* What is needed after a call is also needed after the last call of who calls, and so on. */
#define ROUNDS_MAX 30u

/* ---- what is live in a procedure ---- */

/* Registers that the rules for calls let a function change. */
static uint32_t usual(const struct original *o)
{
	return o->cpu->all & ~o->cpu->kept;
}

/* Whether it calls functions of which only the rules for calls are known. */
static bool calls_strangers(const struct original *o, const struct graph *graph)
{
	for (size_t b = 0; b < graph->block_count; b++)
		for (uint64_t at = graph->blocks[b].start; at < graph->blocks[b].end;) {
			struct insn insn;
			if (!original_insn(o, at, &insn))
				break;
			if (insn.kind == INSN_CALL_INDIRECT ||
			    (insn.kind == INSN_CALL && original_stub(o, insn.target)))
				return true;
			at += insn.length;
		}
	return false;
}

struct context {
	const struct needs *needs;
	const struct original *o;
	uint32_t procedure;
};

/* Stubs lead to other files: there, the rules for calls hold. */
static uint32_t read_at(const void *context, uint64_t address)
{
	const struct context *c = context;
	uint32_t to = extents_at(&c->o->extents, address);
	if (to == c->procedure || original_stub(c->o, address))
		return 0;
	bool begins = to != EXTENT_NONE && extents_start(&c->o->extents, to) == address;
	return begins ? c->needs->reads[to] : c->o->cpu->all;
}

struct err *needs_live(const struct needs *needs, const struct original *o, uint32_t procedure,
		       const struct graph *graph, struct live *out)
{
	const struct context context = {.needs = needs, .o = o, .procedure = procedure};
	const struct live_input input = {
		.image = o->image,
		.isa = o->control.isa,
		.cpu = o->cpu,
		.graph = graph,
		.others = calls_strangers(o, graph) ? usual(o) : 0,
		.read_at = read_at,
		.context = &context,
		.jumped_to = o->jumped_to[procedure],
		.needed = needs->sure[procedure] ? needs->registers[procedure] : o->cpu->all,
	};
	return live_find(&input, out);
}

/* ---- what is needed after calls ---- */

struct finder {
	const struct original *o;
	struct graph *const *graphs;
	struct needs *out;
	bool first; /* the first round */
	/* By procedure: */
	uint32_t *seen; /* calls of it */
	bool *followed; /* what it reads is found */
	bool *looked;   /* its calls are looked at */
	bool *stale;    /* what is needed of it is more than when its calls were looked at */
	bool *more;     /* it reads more than when its callers were looked at */
};

static struct err *take_calls(struct finder *f, uint32_t from, const struct graph *graph)
{
	struct live live;
	struct err *e = needs_live(f->out, f->o, from, graph, &live);
	if (e)
		return e;
	for (uint32_t b = 0; b < graph->block_count; b++)
		for (uint32_t k = live.first[b]; k < live.first[b + 1]; k++) {
			const struct live_insn *insn = &live.insns[k];
			uint32_t to = original_callee(f->o, from, insn->kind, insn->target);
			if (to == EXTENT_NONE)
				continue;
			uint32_t needed = live_behind(&live, b, k) & usual(f->o);
			f->stale[to] |= f->looked[to] && needed & ~f->out->registers[to];
			f->out->registers[to] |= needed;
			f->seen[to] += f->first;
		}
	f->more[from] = (live.reads & ~f->out->reads[from]) != 0;
	f->out->reads[from] |= live.reads;
	live_free(&live);
	return NULL;
}

static struct err *look_at(struct finder *f, uint32_t from)
{
	struct graph graph = {0};
	struct err *e = f->graphs[from] ? NULL : original_graph(f->o, from, &graph);
	f->stale[from] = false;
	if (!e)
		e = take_calls(f, from, f->graphs[from] ? f->graphs[from] : &graph);
	graph_free(&graph);
	return e;
}

/* Looks at what is stale. */
static struct err *look_at_stale(struct finder *f, bool *any)
{
	struct err *e = NULL;
	*any = false;
	for (uint32_t i = 0; i < f->o->extents.procedure_count && !e; i++)
		if (f->stale[i]) {
			*any = true;
			e = look_at(f, i);
		}
	for (size_t i = 0; i < f->o->call_count; i++) {
		const struct original_call *c = &f->o->calls[i];
		f->stale[c->from] |= f->looked[c->from] && f->more[c->to];
	}
	memset(f->more, 0, f->o->extents.procedure_count * sizeof *f->more);
	return e;
}

/* Follows what is wanted, and where that jumps to. Returns whether that was more. */
static bool follow_jumps(struct finder *f)
{
	bool more = false;
	for (size_t i = 0; i < f->o->call_count; i++) {
		const struct original_call *c = &f->o->calls[i];
		if (!f->followed[c->from] || !f->o->jumped_to[c->to] || f->followed[c->to])
			continue;
		f->followed[c->to] = more = true;
	}
	return more;
}

/* Chooses what to look at: what is wanted, where that jumps to, and who calls it. Of others, all is possible. */
static void choose(struct finder *f)
{
	size_t count = f->o->extents.procedure_count;
	for (size_t i = 0; i < count; i++)
		f->followed[i] = f->graphs[i] != NULL;
	while (follow_jumps(f))
		;
	for (size_t i = 0; i < count; i++) {
		f->looked[i] = f->followed[i];
		f->out->sure[i] = f->graphs[i] || !f->o->called[i];
		f->out->reads[i] = f->followed[i] ? 0 : f->o->cpu->all;
	}
	for (size_t i = 0; i < f->o->call_count; i++)
		f->looked[f->o->calls[i].from] |= f->graphs[f->o->calls[i].to] != NULL;
	memcpy(f->stale, f->looked, count * sizeof *f->stale);
}

/* Calls that only the sweep over the code has found may need anything. */
static void doubt(struct finder *f)
{
	for (size_t i = 0; i < f->o->extents.procedure_count; i++)
		if (f->graphs[i] && f->seen[i] != f->o->called[i]) {
			f->out->sure[i] = false;
			f->stale[i] = true;
		}
}

static void doubt_all(struct finder *f)
{
	for (size_t i = 0; i < f->o->extents.procedure_count; i++) {
		f->out->sure[i] = f->o->called[i] == 0;
		f->out->reads[i] = f->o->cpu->all;
	}
}

static struct err *find_all(struct finder *f)
{
	bool any = true;
	struct err *e = NULL;
	choose(f);
	for (unsigned round = 0; any && round < ROUNDS_MAX && !e; round++) {
		f->first = !round;
		e = look_at_stale(f, &any);
		if (!round)
			doubt(f);
	}
	if (any)
		doubt_all(f);
	return e;
}

static void free_finder(struct finder *f)
{
	free(f->seen);
	free(f->followed);
	free(f->looked);
	free(f->stale);
	free(f->more);
}

struct err *needs_find(const struct original *o, struct graph *const *graphs, struct needs *out)
{
	size_t count = o->extents.procedure_count + 1;
	struct finder f = {.o = o, .graphs = graphs, .out = out};
	f.seen = calloc(count, sizeof *f.seen);
	f.followed = calloc(count, sizeof *f.followed);
	f.looked = calloc(count, sizeof *f.looked);
	f.stale = calloc(count, sizeof *f.stale);
	f.more = calloc(count, sizeof *f.more);
	out->registers = calloc(count, sizeof *out->registers);
	out->reads = calloc(count, sizeof *out->reads);
	out->sure = calloc(count, sizeof *out->sure);
	bool room = f.seen && f.followed && f.looked && f.stale && f.more && out->registers &&
		    out->reads && out->sure;
	struct err *e = room ? find_all(&f) : err_new("out of memory");
	free_finder(&f);
	if (e)
		needs_free(out);
	return e;
}

void needs_free(struct needs *needs)
{
	free(needs->registers);
	free(needs->reads);
	free(needs->sure);
	*needs = (struct needs){0};
}
