/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From samples to cycles of one execution, and what of these is lost.
 *
 * A sample falls behind the instruction that was waited for: with loads up to machine.reach instructions,
 * depending on how the CPU groups them, with divisions up to machine.reach_other, with others none. So the samples of an instruction may be its own, or
 * those of a load shortly before it. A load may wait for hundreds of cycles, an addition for one: samples are
 * shared by how long each may wait.
 *
 * What the code asks for is known better for a loop as a whole than for each of its instructions: CPUs
 * finish them in groups, and then one instruction of a group is seen to wait for all. So what the model asks
 * for more than was seen at one instruction is taken from what was seen too much at others of the same loop.
 */
#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "explain/internal.h"
#include "explain/machine.h"
#include "isa/insn.h"

#define LOAD_MAY_WAIT 40.0 /* cycles, mostly */
#define STORE_MAY_WAIT 10.0
#define PATH_BEFORE 96 /* instructions from which a block is entered */

/* ---- where samples belong ---- */

/* The instruction `back` before this one, on the way it is mostly come to; GRAPH_NONE: not known. */
static uint32_t insn_before(const struct function *f, uint32_t insn, unsigned back)
{
	uint32_t block = f->insns[insn].block;
	while (block != GRAPH_NONE) {
		uint32_t first = f->own->first[block];
		if (insn - first >= back)
			return insn - back;
		back -= insn - first;
		block = f->own->before[block];
		if (block == GRAPH_NONE || !f->own->count[block])
			return GRAPH_NONE;
		insn = f->own->first[block] + f->own->count[block];
	}
	return GRAPH_NONE;
}

static double may_wait(const struct function *f, uint32_t insn)
{
	const struct explain_insn *i = &f->insns[insn];
	if (insn_may_wait_long(i))
		return i->operands.load ? LOAD_MAY_WAIT : STORE_MAY_WAIT;
	return fmax(i->model, f->machine->numbers.plain) +
	       (i->operands.class != OPERANDS_PLAIN ? 10 : 0);
}

/* How many instructions behind it its samples may fall. */
static unsigned reach_of(const struct function *f, const struct explain_insn *i)
{
	if (insn_may_wait_long(i))
		return f->machine->reach;
	return i->operands.class == OPERANDS_DIVIDE ? f->machine->reach_other : 0;
}

void samples_place(struct function *f)
{
	unsigned reach = f->machine->reach;
	if (f->machine->reach_other > reach)
		reach = f->machine->reach_other;
	for (size_t i = 0; i < f->insn_count; i++)
		f->insns[i].cycles = 0;
	for (uint32_t i = 0; i < f->insn_count; i++) {
		double left = f->insns[i].samples * f->cycles_per_sample;
		uint32_t from[CALIBRATE_SKID];
		double share[CALIBRATE_SKID], sum;
		unsigned count = 0;
		if (left <= 0)
			continue;
		bool itself = !reach_of(f, &f->insns[i]);
		from[count] = i;
		share[count] = sum = itself ? may_wait(f, i) : f->machine->numbers.plain;
		for (unsigned back = 1; back <= reach && f->insns[i].block != GRAPH_NONE; back++) {
			uint32_t before = insn_before(f, i, back);
			if (before == GRAPH_NONE || reach_of(f, &f->insns[before]) < back)
				continue;
			from[++count] = before;
			sum += share[count] = may_wait(f, before);
		}
		for (unsigned k = 0; k <= count; k++)
			f->insns[from[k]].cycles += left * share[k] / sum;
	}
}

/* ---- what the code asks for ---- */

/* Instructions of the largest block, and what may come before it. */
static size_t longest_path(const struct function *f)
{
	size_t most = 0;
	for (uint32_t b = 0; b < f->graph.block_count; b++)
		most = f->own->count[b] > most ? f->own->count[b] : most;
	return most + PATH_BEFORE;
}

static bool has_samples(const struct function *f, uint32_t block)
{
	for (uint32_t i = 0; i < f->own->count[block]; i++)
		if (f->insns[f->own->first[block] + i].samples > 0)
			return true;
	return false;
}

struct err *function_find_fixed(struct function *f)
{
	size_t room = longest_path(f);
	struct path path = {.insns = calloc(room, sizeof *path.insns)};
	struct pipeline_step *steps = calloc(room, sizeof *steps);
	bool good = path.insns && steps;
	for (uint32_t b = 0; good && b < f->graph.block_count; b++) {
		size_t own;
		if (!has_samples(f, b))
			continue;
		path_to(f, b, f->own->count[b] + PATH_BEFORE, &path, &own);
		pipeline_run(f, &path, PIPELINE_WHOLE, steps);
		for (size_t i = path.count - own; i < path.count; i++) {
			f->insns[path.insns[i]].model = steps[i].waits;
			f->insns[path.insns[i]].why = steps[i].why;
		}
	}
	free(path.insns);
	free(steps);
	return good ? NULL : err_new("out of memory");
}

/* ---- what is lost ---- */

/* Of each instruction, how many cycles more or less were seen than the model asks for; made even in two steps: first
   between neighbours of a block, because what is finished together is seen at one of them; then in the whole loop. */
struct balance {
	double *more, *less;
	double *group_more, *group_less; /* of each loop's own blocks, and of the code in none */
};

#define NEIGHBOURS 8 /* instructions that may be finished together */

enum assumed { AS_ESTIMATED, AT_MOST, AT_LEAST, ASSUMED }; /* of how often code ran */

static size_t group_of(const struct function *f, const struct explain_insn *i)
{
	uint32_t loop = i->block == GRAPH_NONE ? LOOP_NONE : f->loops.innermost[i->block];
	return loop == LOOP_NONE ? f->loops.count : loop;
}

static double runs_of(const struct function *f, const struct explain_insn *i, enum assumed how)
{
	const struct frequency *q = &f->frequency.blocks[i->block];
	return how == AT_MOST ? q->high : how == AT_LEAST ? q->low : q->executions;
}

static void even_out(struct balance *b, uint32_t from, uint32_t to)
{
	double moved = fmin(b->more[from], b->less[to]);
	b->more[from] -= moved;
	b->less[to] -= moved;
}

static void balance_neighbours(const struct function *f, struct balance *b)
{
	for (uint32_t apart = 1; apart <= NEIGHBOURS; apart++)
		for (uint32_t k = apart; k < f->insn_count; k++) {
			if (f->insns[k].block == GRAPH_NONE ||
			    f->insns[k].block != f->insns[k - apart].block)
				continue;
			even_out(b, k - apart, k);
			even_out(b, k, k - apart);
		}
}

static void balance(const struct function *f, enum assumed how, struct balance *b)
{
	for (size_t k = 0; k < f->insn_count; k++) {
		const struct explain_insn *i = &f->insns[k];
		double over = i->block == GRAPH_NONE ? 0
						     : i->cycles - i->model * runs_of(f, i, how);
		b->more[k] = fmax(0, over);
		b->less[k] = fmax(0, -over);
	}
	balance_neighbours(f, b);
	for (size_t g = 0; g <= f->loops.count; g++)
		b->group_more[g] = b->group_less[g] = 0;
	for (size_t k = 0; k < f->insn_count; k++) {
		b->group_more[group_of(f, &f->insns[k])] += b->more[k];
		b->group_less[group_of(f, &f->insns[k])] += b->less[k];
	}
}

/* Cycles of all executions of an instruction that the code does not ask for. */
static double lost_at(const struct function *f, const struct balance *b, size_t insn)
{
	size_t g = group_of(f, &f->insns[insn]);
	double more = b->group_more[g], less = b->group_less[g];
	return more > less ? b->more[insn] * (1 - less / more) : 0;
}

static bool balance_open(const struct function *f, struct balance *b)
{
	b->more = calloc(f->insn_count + 1, sizeof *b->more);
	b->less = calloc(f->insn_count + 1, sizeof *b->less);
	b->group_more = calloc(f->loops.count + 1, sizeof *b->group_more);
	b->group_less = calloc(f->loops.count + 1, sizeof *b->group_less);
	return b->more && b->less && b->group_more && b->group_less;
}

static void balance_close(struct balance *b)
{
	free(b->more);
	free(b->less);
	free(b->group_more);
	free(b->group_less);
}

static void lose(const struct function *f, struct explain_insn *i, const double lost[ASSUMED])
{
	double runs = i->frequency, noise = 2 * sqrt(i->cycles * f->cycles_per_sample);
	double all = lost[AS_ESTIMATED];
	i->cpi = i->cycles / runs;
	i->lost = all / runs;
	i->fixed = i->cpi - i->lost;
	i->lost_part = (struct range){fmin(lost[AT_MOST], all) / runs,
				      fmin(i->cycles, fmax(lost[AT_LEAST], all)) / runs, i->lost};
	i->lost_range = (struct range){fmax(0, i->lost_part.low - noise / runs),
				       fmin(i->cpi, i->lost_part.high + noise / runs), i->lost};
	i->stalls = all > noise && all > 3 * f->cycles_per_sample;
}

/* Much code with few samples each: together they may be more than chance. */
static void add_up(struct function *f)
{
	struct sum {
		double cycles, lost, seen;
	} *all = calloc(f->loops.count + 1, sizeof *all);
	for (size_t k = 0; all && k < f->insn_count; k++) {
		const struct explain_insn *i = &f->insns[k];
		struct sum *s = &all[group_of(f, i)];
		s->cycles += i->cycles;
		s->lost += i->lost * i->frequency;
		s->seen += i->stalls ? i->lost * i->frequency : 0;
	}
	for (size_t k = 0; all && k < f->insn_count; k++) {
		struct explain_insn *i = &f->insns[k];
		const struct sum *s = &all[group_of(f, i)];
		double noise = 4 * sqrt(s->cycles * f->cycles_per_sample);
		if (s->lost > noise && s->seen < s->lost / 2 && i->lost > 0)
			i->stalls = true;
	}
	free(all);
}

void stalls_find(struct function *f)
{
	struct balance b;
	double(*lost)[ASSUMED] = calloc(f->insn_count + 1, sizeof *lost);
	bool good = balance_open(f, &b) && lost;
	for (unsigned how = 0; good && how < ASSUMED; how++) {
		balance(f, (enum assumed)how, &b);
		for (size_t k = 0; k < f->insn_count; k++)
			lost[k][how] = lost_at(f, &b, k);
	}
	for (size_t k = 0; good && k < f->insn_count; k++)
		if (f->insns[k].block != GRAPH_NONE && f->insns[k].frequency > 0)
			lose(f, &f->insns[k], lost[k]);
	if (good)
		add_up(f);
	balance_close(&b);
	free(lost);
}
