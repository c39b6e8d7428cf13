/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What instructions usually cost, as bench/frequency measured it: it counted how often the code of some programs
 * ran, and so the samples of each instruction told its cycles. It is not the same for all CPUs (costs_aarch64.c,
 * costs_x86_64.c): one tells which instruction waited, another the one behind it; one finishes instructions one
 * by one, another in groups. This is only where learning begins. What is a small share of a cycle hangs
 * on how many instructions the CPU finishes in one. Learning cannot find it: half the cycles with twice
 * the executions is as likely. Where several in a row are looked at, these also need each other's results, and a wider CPU
 * gains less by them: about the root of its width.
 */
#include "explain/costs_usual.h"

#include <math.h>
#include <string.h>

#include "isa/insn.h"

/* Adds a part of a distribution: how much of all, around where, and how wide to each side. */
static void add_part(double *cells, double share, double center, double below, double above)
{
	double parts[COST_CELLS], sum = 0;
	for (size_t i = 0; i < COST_CELLS; i++) {
		double far = COST_FIRST + COST_STEP * (double)i - log(center);
		far /= far < 0 ? below : above;
		sum += parts[i] = exp(-0.5 * far * far);
	}
	for (size_t i = 0; i < COST_CELLS; i++)
		cells[i] += share * parts[i] / sum;
}

/* `unit`: cycles that 1 stands for; `size`: instructions that each take the small share. */
static void spread(double *cells, const struct usual_table *t, const struct usual *u, double unit,
		   double size)
{
	double waits = 1 - u->none - u->small;
	if (waits < 0.02)
		waits = 0.02;
	add_part(cells, u->none, unit * t->none.center, t->none.below, t->none.above);
	add_part(cells, u->small, unit * size * t->small.center, t->small.below, t->small.above);
	add_part(cells, waits * 0.95, unit * u->tail, 0.75 * u->wide, 1.15 * u->wide);
	add_part(cells, waits * 0.05, unit * 0.6, 2, 2.5);
}

static const struct usual *usual_of(const struct usual_table *t, size_t kind)
{
	size_t several = kind - COST_ALONE;
	if (kind < COST_ALONE)
		return &t->alone[kind / COST_BEFORE][kind % COST_BEFORE];
	if (!t->by_groups)
		return &t->pairs[several / (COST_AFTER * 2)][several / 2 % COST_AFTER][several % 2];
	size_t inside = several / (COST_GROUP * 2);
	if (inside >= COST_INSIDE)
		inside = COST_INSIDE - 1;
	return &t->groups[inside][several / 2 % COST_GROUP][several % 2];
}

void cost_usual(struct frequency_costs *costs, const struct isa *isa, double width)
{
	const struct usual_table *t = isa == &isa_x86_64 ? &usual_x86_64 : &usual_aarch64;
	double narrower = width > 0 ? t->width / width : 1;
	double unit = t->unit * (t->by_groups ? sqrt(narrower) : narrower);
	memset(costs->share, 0, sizeof costs->share);
	costs->groups = t->by_groups;
	costs->small = unit * t->small.center;
	costs->doubt = hypot(t->doubt, width > 0 ? log(width / t->width) : 0);
	memcpy(costs->weights, t->weights, sizeof costs->weights);
	for (size_t kind = 0; kind < COST_KINDS; kind++)
		spread(costs->share[kind], t, usual_of(t, kind), unit, cost_size(costs, kind));
	cost_prepare(costs);
}
