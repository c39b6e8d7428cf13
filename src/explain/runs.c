/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often loops ran, told from what their code asks for.
 *
 * Samples tell an instruction's executions times its cycles. Where nothing in a loop can wait for longer than the code
 * asks for, each iteration takes what the model says, and so its cycles tell how often it ran. Elsewhere this is a bound:
 * code cannot have run more often than it can be done. The bound holds for a loop as a whole, and for parts of it
 * between instructions that may wait: what comes behind a load that has its data is finished as fast as its own
 * chain allows. Without this, a loop with one wait looks like one that ran far more often: all else in it has few samples,
 * and these may be those of instructions that wait for nothing.
 *
 * Only loops that go one way are bound like this. Where ways part, the model of one of them says nothing of the others.
 */
#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "explain/internal.h"
#include "explain/machine.h"
#include "isa/insn.h"

#define SAMPLES_LEAST 100 /* of a loop, or of a part of it: fewer tell nothing */
#define SPREAD 0.2        /* by how much the model may be wrong */
#define SPREAD_UNITS \
	1.0 /* divisions and atomic operations take as long as those that were measured, or twice that */
#define CAP_INSNS 4 /* of a block that is long enough to be told from its neighbours */
#define CAP_CYCLES 2.0
#define PART_CYCLES 2.0 /* the same of a part of a loop */
#define PART_EDGE 0.5   /* cycles of it that may be seen before or behind it */
#define LATE 40.0       /* cycles that loads may take longer */
#define CODE_LINE 64
#define CODE_CACHE (64 << 10) /* bytes of code that fit into the first cache */

struct bound {
	uint32_t block; /* which */
	double runs;
	bool least;   /* not only at most, but so often */
	double below; /* then it may be so much less, as a factor */
};

struct refining {
	struct function *f;
	struct path path;
	struct frequency_anchor *known, *limits;
	size_t known_count, limit_count;
	double *below;    /* of each that is known */
	uint32_t *blocks; /* the same: its block */
};

/* ---- loops that cannot wait ---- */

static bool is_call(const struct explain_insn *i)
{
	return i->kind == INSN_CALL || i->kind == INSN_CALL_INDIRECT || i->kind == INSN_SYSCALL;
}

/* Divisions, and atomic operations on what no other thread has: how long they take was measured. */
static bool is_measured(const struct explain_insn *i)
{
	const struct operands *o = &i->operands;
	return o->class == OPERANDS_DIVIDE ||
	       (o->class == OPERANDS_ATOMIC && o->load && o->store && !i->shared);
}

/* Whether an instruction can wait for longer than the code asks for. */
static bool may_lose(const struct explain_insn *i, bool last)
{
	if (is_measured(i))
		return false;
	return (insn_may_wait_long(i) && !i->operands.stack) ||
	       i->operands.class != OPERANDS_PLAIN || (i->kind == INSN_BRANCH && !last) ||
	       is_call(i);
}

static bool may_any_lose(const struct function *f, const struct path *path)
{
	for (size_t k = 0; k < path->count; k++)
		if (may_lose(&f->insns[path->insns[k]], k + 1 == path->count))
			return true;
	return false;
}

/* A loop whose only loads are of what it stored right before waits for just that, each time. */
static bool only_forwards(const struct function *f, const struct path *path)
{
	bool forwards = false;
	for (size_t k = 0; k < path->count; k++) {
		const struct operands *o = &f->insns[path->insns[k]].operands;
		bool blocked = o->load && forwarding_blocker(f, path->insns[k]) != GRAPH_NONE;
		if (o->class != OPERANDS_PLAIN || (o->load && !o->stack && !blocked))
			return false;
		forwards |= blocked;
	}
	return forwards;
}

static double spread_below(const struct function *f, const struct path *path)
{
	for (size_t k = 0; k < path->count; k++)
		if (is_measured(&f->insns[path->insns[k]]))
			return SPREAD_UNITS;
	return SPREAD;
}

/* ---- loops that go one way ---- */

/* Whether all of its blocks run equally often. */
static bool goes_one_way(const struct function *f, const struct path *path)
{
	uint32_t class = f->frequency.blocks[f->insns[path->insns[0]].block].class;
	for (size_t k = 0; k < path->count; k++)
		if (f->frequency.blocks[f->insns[path->insns[k]].block].class != class)
			return false;
	return true;
}

/* Whether the samples of an instruction can only be of what itself and others like it wait for. */
static bool is_plain(const struct function *f, const struct path *path, size_t at)
{
	const struct explain_insn *i = &f->insns[path->insns[at]];
	unsigned reach = f->machine->reach > f->machine->reach_other ? f->machine->reach
								     : f->machine->reach_other;
	if (i->operands.load || i->operands.class != OPERANDS_PLAIN || is_call(i))
		return false;
	for (unsigned back = 1; back <= reach; back++) {
		const struct explain_insn *b =
			&f->insns[path->insns[(at + path->count - back % path->count) %
					      path->count]];
		if (insn_may_wait_long(b) || b->operands.class != OPERANDS_PLAIN)
			return false;
	}
	return true;
}

/* The most often that the parts between instructions which may wait can have run. */
static double most_by_parts(const struct function *f, const struct path *path)
{
	double *waits = calloc(2 * path->count, sizeof *waits), *late = waits + path->count;
	double most = INFINITY, cycles = 0, samples = 0;
	if (!waits)
		return INFINITY;
	pipeline_waits(f, path, 0, waits);
	pipeline_waits(f, path, LATE, late);
	for (size_t k = 0; k <= path->count; k++) {
		if (k < path->count && is_plain(f, path, k)) {
			cycles += fmin(waits[k], late[k]);
			samples += f->insns[path->insns[k]].samples;
			continue;
		}
		if (cycles >= PART_CYCLES && samples >= SAMPLES_LEAST)
			most = fmin(most, samples * f->cycles_per_sample / (cycles - PART_EDGE));
		cycles = samples = 0;
	}
	free(waits);
	return most;
}

static bool bound_path(const struct function *f, uint32_t loop, struct path *path,
		       struct bound *out)
{
	double cycles = 0;
	if (!path_around(f, loop, PATH_MAX_INSNS, path))
		return false;
	for (size_t i = 0; i < path->count; i++)
		cycles += f->insns[path->insns[i]].samples * f->cycles_per_sample;
	double least = pipeline_steady(f, path, PIPELINE_WHOLE);
	if (cycles < SAMPLES_LEAST * f->cycles_per_sample || least <= 0)
		return false;
	*out = (struct bound){.block = f->loops.loops[loop].header,
			      .runs = cycles / least,
			      .least = true,
			      .below = spread_below(f, path)};
	if (!may_any_lose(f, path) || only_forwards(f, path))
		return true;
	if (!goes_one_way(f, path))
		return false;
	*out = (struct bound){.block = f->loops.loops[loop].header,
			      .runs = fmin(out->runs, most_by_parts(f, path))};
	return true;
}

/* ---- other loops ---- */

/* Whether a loop can lose nothing but what wrong guesses of its branches cost. */
static bool only_guesses(const struct function *f, uint32_t loop)
{
	for (size_t k = 0; k < f->insn_count; k++) {
		const struct explain_insn *i = &f->insns[k];
		if (i->block == GRAPH_NONE || f->loops.innermost[i->block] != loop)
			continue;
		if ((insn_may_wait_long(i) && !i->operands.stack) ||
		    i->operands.class != OPERANDS_PLAIN || is_call(i))
			return false;
	}
	return true;
}

/* The most that such a loop can have run: what the code of its header asks for each time was seen there. */
static bool bound_header(const struct function *f, uint32_t loop, struct bound *out)
{
	uint32_t header = f->loops.loops[loop].header, first = f->own->first[header];
	double cycles = 0, model = 0;
	if (f->own->count[header] < CAP_INSNS || !only_guesses(f, loop))
		return false;
	for (uint32_t i = first; i < first + f->own->count[header]; i++) {
		cycles += f->insns[i].cycles;
		model += f->insns[i].model;
	}
	if (cycles < SAMPLES_LEAST * f->cycles_per_sample || model < CAP_CYCLES)
		return false;
	*out = (struct bound){.block = header, .runs = cycles / model};
	return true;
}

/* A loop with more code than the first cache holds: each time, all of it comes from the second. Code behind a jump
   comes when it is known that it is needed; what follows on was asked for before. */
static bool bound_code(const struct function *f, uint32_t loop, struct bound *out)
{
	uint32_t back = f->loops.loops[loop].back_from, before = GRAPH_NONE;
	double jumps = 0, lines = 0, cycles = 0;
	for (uint32_t k = 0; k < f->insn_count; k++) {
		const struct explain_insn *i = &f->insns[k];
		if (i->block == GRAPH_NONE || f->loops.innermost[i->block] != loop ||
		    f->frequency.blocks[i->block].class != f->frequency.blocks[back].class)
			continue;
		cycles += i->cycles;
		if (before != GRAPH_NONE &&
		    f->insns[before].address / CODE_LINE == i->address / CODE_LINE)
			continue;
		bool follows = before != GRAPH_NONE && k == before + 1 &&
			       f->insns[before].kind != INSN_JUMP;
		jumps += !follows;
		lines++;
		before = k;
	}
	double l2 = f->machine->numbers.l2;
	if (lines * CODE_LINE < CODE_CACHE || cycles < SAMPLES_LEAST * f->cycles_per_sample)
		return false;
	*out = (struct bound){.block = back,
			      .runs = cycles / (jumps * l2 + (lines - jumps) * l2 / 4)};
	return true;
}

/* ---- all of them ---- */

/* What the model knows of a class is no more than that. */
static void widen(struct function *f, uint32_t class, double below)
{
	for (size_t b = 0; b < f->frequency.block_count; b++) {
		struct frequency *q = &f->frequency.blocks[b];
		if (q->class != class)
			continue;
		q->low = fmin(q->low, q->executions / (1 + below));
		q->high = fmax(q->high, q->executions * (1 + SPREAD));
		if (q->confidence == FREQUENCY_HIGH)
			q->confidence = FREQUENCY_MEDIUM;
	}
}

/* What is limited is not more than the limit, as far as the model is right. */
static void narrow(struct function *f, const struct frequency_anchor *limit)
{
	uint32_t block = graph_find(&f->graph, limit->address);
	uint32_t class = f->frequency.blocks[block].class;
	for (size_t b = 0; b < f->frequency.block_count; b++) {
		struct frequency *q = &f->frequency.blocks[b];
		if (q->class == class)
			q->high = fmin(q->high,
				       fmax(q->executions, limit->executions * (1 + SPREAD)));
	}
}

static void refine_loop(struct refining *r, uint32_t loop)
{
	struct function *f = r->f;
	struct bound bound;
	if (!bound_path(f, loop, &r->path, &bound) && !bound_header(f, loop, &bound) &&
	    !bound_code(f, loop, &bound))
		return;
	struct frequency_anchor anchor = {f->graph.blocks[bound.block].start, bound.runs};
	if (bound.least) {
		r->below[r->known_count] = bound.below;
		r->blocks[r->known_count] = bound.block;
		r->known[r->known_count++] = anchor;
	} else if (f->frequency.blocks[bound.block].executions > bound.runs) {
		r->limits[r->limit_count++] = anchor;
	}
}

static struct err *estimate_again(struct refining *r, struct frequency_input *input)
{
	input->anchors = r->known;
	input->anchor_count = r->known_count;
	input->limits = r->limits;
	input->limit_count = r->limit_count;
	frequency_free(&r->f->frequency);
	struct err *e = frequency_estimate(input, &r->f->frequency);
	for (size_t k = 0; !e && k < r->known_count; k++)
		widen(r->f, r->f->frequency.blocks[r->blocks[k]].class, r->below[k]);
	for (size_t k = 0; !e && k < r->limit_count; k++)
		narrow(r->f, &r->limits[k]);
	input->anchors = input->limits = NULL;
	input->anchor_count = input->limit_count = 0;
	return e;
}

struct err *frequency_refine(struct function *f, struct frequency_input *input)
{
	size_t loops = f->loops.count + 1;
	struct refining r = {
		.f = f,
		.path.insns = calloc(PATH_MAX_INSNS, sizeof *r.path.insns),
		.known = calloc(loops, sizeof *r.known),
		.limits = calloc(loops, sizeof *r.limits),
		.below = calloc(loops, sizeof *r.below),
		.blocks = calloc(loops, sizeof *r.blocks),
	};
	struct err *e = NULL;
	if (!r.path.insns || !r.known || !r.limits || !r.below || !r.blocks)
		e = err_new("out of memory");
	for (uint32_t i = 0; !e && i < f->loops.count; i++)
		refine_loop(&r, i);
	if (!e && r.known_count + r.limit_count)
		e = estimate_again(&r, input);
	free(r.path.insns);
	free(r.known);
	free(r.limits);
	free(r.below);
	free(r.blocks);
	return e;
}
