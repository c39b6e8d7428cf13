/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From samples of time to frequencies.
 *
 * The samples of an instruction are about its executions times the cycles that each takes: only the product
 * is known. Three things tell them apart.
 *
 *   1. Classes. Blocks and edges that must run equally often share one unknown (explain/classes.h).
 *   2. Costs. On a CPU that finishes several instructions in a cycle, one that waits for nothing takes a small
 *      share of a cycle, always the same, or nothing at all, if it is finished along with the one before. So
 *      where several instructions of a class have the same few samples, these tell its frequency. It is not
 *      decided which ones wait: each instruction has a distribution of cycles (explain/costs.h), and how likely
 *      all samples of a class are, by its frequency, is a curve, often with several peaks.
 *      On x86-64, samples fall between groups that are finished together: there, several instructions in a row
 *      have such a share.
 *   3. Flow. What comes into a block goes out of it. All classes are estimated together (explain/flow.h): a class
 *      whose instructions all wait gets its frequency from its neighbours.
 *
 * The distributions are learned from the program itself: estimate with those that are usual, count how many
 * cycles instructions took by that, and begin again.
 *
 * What cannot be told from time: two parts of a procedure that are joined only by ways which are rarely taken,
 * and both of which wait in all their instructions. Edges that were seen, and anchors, tell it.
 *
 * How sure an estimate is comes from the curvature of all costs together at the result. This is too good, because
 * instructions of a class wait for the same things; WIDER is by how much, as measured. High confidence also asks for
 * several instructions that waited for nothing.
 */
#include "explain/frequency.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "base/parallel.h"
#include "explain/classes.h"
#include "explain/costs.h"
#include "explain/flow.h"
#include "flow/graph.h"

#define LEARN_ROUNDS 1
#define LEARN_USUAL 300.0 /* how many windows the usual costs count for */
#define LEARN_SAMPLES 500 /* of a procedure: fewer teach little */

/* Instructions of a class are not as independent as the likelihood takes them for: measured errors are this
   much wider (bench/frequency). */
#define WIDER 2.5

/* So many windows of a class tell as much as all of them: where there are thousands, they wait for the same things. */
#define WINDOWS_MOST 128
#define CURVATURE_LEAST 0.05
#define LIMIT_DEVIATION 0.1 /* of the logarithm of a limit */
#define SLOPE_STEP 1.5      /* of a logarithm: no step is longer */
#define EDGE_DEVIATION \
	2.0 /* of the logarithm of an edge's share of its block, where nothing is known */

/* When an estimate is of high and of medium confidence: its deviation, with how many instructions that waited
   for nothing, and so many samples of these; as measured (bench/frequency). */
#define HIGH_DEVIATION 0.15
#define HIGH_DEVIATION_SEEN 0.08 /* with edges that were seen, which make it smaller */
#define HIGH_COUNT 5
#define HIGH_SAMPLES 150
#define HIGH_ANCHORED 0.05 /* by other things than samples */
#define MEDIUM_DEVIATION 0.4
#define MEDIUM_COUNT 2

#define COMMON_MANY 0.05
#define COMMON_SOME 0.15
#define COMMON_FEW 0.3

/* The same without edges, on CPUs that finish instructions in groups: a short block may wait in all of its groups. */
#define ALONE_SOME 0.25
#define ALONE_FEW 0.5

/* A procedure while it is estimated. */
struct estimate {
	const struct frequency_input *in;
	const struct frequency_costs *costs;
	struct network network;
	uint32_t *class; /* of each arc */
	size_t class_count;
	struct cost_window *windows; /* by class */
	uint32_t *first;             /* of each class, and one more: its windows */
	double *values, *deviations; /* of each class: logarithms */
	double *limits;              /* the same: it is not more, about; INFINITY: it may be */
};

static void release(struct estimate *x)
{
	network_free(&x->network);
	free(x->class);
	free(x->windows);
	free(x->first);
	free(x->values);
	free(x->deviations);
	free(x->limits);
}

/* ---- windows of classes ---- */

static size_t insns_of(const struct frequency_input *in, uint32_t block, size_t *first)
{
	const struct graph_block *b = &in->graph->blocks[block];
	*first = FIRST_NOT(i, in->insn_count, in->insns[i].address < b->start);
	return FIRST_NOT(i, in->insn_count, in->insns[i].address < b->end) - *first;
}

static bool take_windows(struct estimate *x)
{
	const struct frequency_input *in = x->in;
	size_t blocks = in->graph->block_count, first;
	x->first = calloc(x->class_count + 2, sizeof *x->first);
	struct cost_window *cut = calloc(2 * in->insn_count + 1, sizeof *cut);
	x->windows = calloc(2 * in->insn_count + 1, sizeof *x->windows);
	if (!x->first || !x->windows || !cut) {
		free(cut);
		return false;
	}
	for (uint32_t i = 0; i < blocks; i++) {
		size_t count = insns_of(in, i, &first);
		x->first[x->class[i] + 2] += (uint32_t)cost_cut(x->costs, in->insns + first, count,
								cut);
	}
	for (size_t i = 1; i <= x->class_count; i++)
		x->first[i + 1] += x->first[i];
	for (uint32_t i = 0; i < blocks; i++) {
		size_t count = insns_of(in, i, &first);
		count = cost_cut(x->costs, in->insns + first, count,
				 x->windows + x->first[x->class[i] + 1]);
		x->first[x->class[i] + 1] += (uint32_t)count;
	}
	free(cut);
	return true;
}

static void take_limits(struct estimate *x)
{
	const struct frequency_input *in = x->in;
	double unit = in->cycles_per_sample > 0 ? in->cycles_per_sample : 1;
	for (size_t i = 0; i < x->class_count; i++)
		x->limits[i] = INFINITY;
	for (size_t i = 0; i < in->limit_count; i++) {
		uint32_t block = graph_find(in->graph, in->limits[i].address);
		if (block != GRAPH_NONE && in->limits[i].executions > 0) {
			double *limit = &x->limits[x->class[block]];
			*limit = fmin(*limit, log(in->limits[i].executions / unit));
		}
	}
}

static struct err *begin(struct estimate *x)
{
	struct err *e = network_make(x->in->graph, &x->network);
	if (!e)
		e = network_classes(&x->network, &x->class, &x->class_count);
	if (e)
		return e;
	x->values = calloc(x->class_count + 1, sizeof *x->values);
	x->deviations = calloc(x->class_count + 1, sizeof *x->deviations);
	x->limits = calloc(x->class_count + 1, sizeof *x->limits);
	if (!x->values || !x->deviations || !x->limits || !take_windows(x))
		return err_new("out of memory");
	take_limits(x);
	return NULL;
}

/* ---- what the samples of a class tell ---- */

static double class_likelihood(const struct estimate *x, uint32_t class, double value)
{
	double over = fmax(0, value - x->limits[class]) / LIMIT_DEVIATION;
	double sum = 0, count = x->first[class + 1] - x->first[class];
	for (uint32_t i = x->first[class]; i < x->first[class + 1]; i++)
		sum += cost_weight(x->costs, &x->windows[i]) *
		       cost_likelihood(x->costs, &x->windows[i], value);
	return (count > WINDOWS_MOST ? sum * WINDOWS_MOST / count : sum) - 0.5 * over * over;
}

/* Where the likelihood bends the wrong way, or is steep, its curvature is taken for more: no step is far then. */
static double class_cost(const void *context, uint32_t class, double value, double step,
			 double *slope, double *curvature)
{
	const struct estimate *x = context;
	if (x->first[class] == x->first[class + 1])
		return 0;
	double here = class_likelihood(x, class, value);
	if (!slope)
		return -here;
	double below = class_likelihood(x, class, value - step);
	double above = class_likelihood(x, class, value + step);
	*slope = (below - above) / (2 * step);
	*curvature = fmax((2 * here - below - above) / (step * step),
			  fmax(CURVATURE_LEAST, fabs(*slope) / SLOPE_STEP));
	return -here;
}

/* The best frequency of a class by its samples alone. */
static double best_of(const struct estimate *x, uint32_t class)
{
	double total = 0.3, least = INFINITY, best = 0, most = -INFINITY;
	uint32_t count = x->first[class + 1] - x->first[class];
	for (uint32_t i = x->first[class]; i < x->first[class + 1]; i++) {
		total += x->windows[i].samples;
		least = fmin(least, x->windows[i].samples);
	}
	/* One instruction that waits for memory may have nearly all samples: the others tell. */
	double around = log(total / (1 + count)), lowest = fmin(around - 3, log(least + 0.3));
	for (double value = lowest; value < around + 8; value += 0.1) {
		double likelihood = class_likelihood(x, class, value);
		if (likelihood > most) {
			most = likelihood;
			best = value;
		}
	}
	return best;
}

/* ---- the flow ---- */

static struct err *relate_edges(const struct estimate *x, struct flow *flow)
{
	const struct network *n = &x->network;
	struct err *e = NULL;
	uint32_t *outs = calloc(n->node_count + 1, sizeof *outs);
	if (!outs)
		return err_new("out of memory");
	for (size_t i = 0; i < n->arc_count; i++)
		outs[n->arcs[i].from]++;
	for (size_t i = n->block_count; !e && i < n->arc_count; i++) {
		uint32_t from = n->arcs[i].from;
		if (from && outs[from] > 1)
			e = flow_relate(flow, x->class[i], x -> class[(from - 2) / 2],
					-log(outs[from]), EDGE_DEVIATION *EDGE_DEVIATION);
	}
	free(outs);
	return e;
}

static void guess(struct estimate *x)
{
	const struct network *n = &x->network;
	for (uint32_t i = 0; i < x->class_count; i++)
		x->values[i] = x->first[i] == x->first[i + 1] ? INFINITY : best_of(x, i);
	for (size_t i = n->block_count; i < n->arc_count; i++) {
		double *value = &x->values[x->class[i]];
		uint32_t from = n->arcs[i].from, to = n->arcs[i].to;
		if (x->first[x->class[i]] != x->first[x->class[i] + 1])
			continue;
		double a = from ? x->values[x->class[(from - 2) / 2]] : INFINITY;
		double b = to ? x->values[x->class[(to - 1) / 2]] : INFINITY;
		double least = (a < b ? a : b) - 0.7;
		if (least < *value)
			*value = least;
	}
	for (uint32_t i = 0; i < x->class_count; i++)
		if (!isfinite(x->values[i]))
			x->values[i] = 0;
}

static struct err *expect_known(const struct estimate *x, struct flow *flow)
{
	const struct frequency_input *in = x->in;
	double unit = in->cycles_per_sample > 0 ? in->cycles_per_sample : 1;
	struct err *e = NULL;
	if (in->entries > 0)
		e = flow_expect(flow, x->class[x->network.entry], log(in->entries / unit),
				0.1 * 0.1);
	for (size_t i = 0; !e && i < in->anchor_count; i++) {
		uint32_t block = graph_find(in->graph, in->anchors[i].address);
		if (block != GRAPH_NONE && in->anchors[i].executions > 0)
			e = flow_expect(flow, x->class[block],
					log(in->anchors[i].executions / unit), 0.01 * 0.01);
	}
	return e;
}

/* Pairs that were seen: of each block, the logarithms of the odds of its edges. */
static struct err *relate_seen(const struct estimate *x, struct flow *flow)
{
	const struct frequency_input *in = x->in;
	const struct graph *g = in->graph;
	struct err *e = NULL;
	double *seen = calloc(g->edge_count + 1, sizeof *seen);
	double *squares = calloc(g->edge_count + 1, sizeof *squares);
	if (!seen || !squares)
		e = err_new("out of memory");
	for (size_t i = 0; !e && i < in->observation_count; i++) {
		const struct frequency_observation *o = &in->observations[i];
		uint32_t from = graph_find(g, o->from), to = graph_find(g, o->to);
		if (from == GRAPH_NONE || to == GRAPH_NONE || g->blocks[to].start != o->to)
			continue;
		const struct graph_block *b = &g->blocks[from];
		for (uint32_t k = b->first; k < b->first + b->count; k++)
			if (g->edges[k].to == to) {
				seen[k] += o->count;
				squares[k] += o->squares > 0 ? o->squares : o->count;
			}
	}
	for (uint32_t i = 0; !e && i < g->block_count; i++) {
		const struct graph_block *b = &g->blocks[i];
		double sum = 0, square = 0;
		for (uint32_t k = b->first; k < b->first + b->count; k++) {
			sum += seen[k];
			square += squares[k];
		}
		/* With weights, they tell as much as fewer without. */
		double worth = square > 0 ? sum / square : 0;
		for (uint32_t k = b->first; !e && sum > 0 && k < b->first + b->count; k++) {
			double part = (seen[k] * worth + 0.5) / (sum * worth + 0.5 * b->count);
			double variance = (1 - part) / (seen[k] * worth + 0.5) + 0.05 * 0.05;
			e = flow_relate(flow, x->class[g->block_count + k], x -> class[i],
					log(part), variance);
		}
	}
	free(seen);
	free(squares);
	return e;
}

/* Each class alone, where the flow cannot be found. */
static void estimate_alone(struct estimate *x)
{
	for (uint32_t i = 0; i < x->class_count; i++) {
		double slope = 0, curvature = 0;
		class_cost(x, i, x->values[i], 0.2, &slope, &curvature);
		x->deviations[i] = curvature > 0.1 ? 1 / sqrt(curvature) : 3;
	}
}

/* `rough`: without deviations. */
static struct err *solve(struct estimate *x, bool rough)
{
	bool solved = true;
	struct flow *flow = NULL;
	struct err *e = flow_open(&x->network, x->class, x->class_count, &flow);
	if (!e)
		e = relate_edges(x, flow);
	if (!e)
		e = relate_seen(x, flow);
	if (!e)
		e = expect_known(x, flow);
	if (!e) {
		guess(x);
		e = flow_solve(flow, class_cost, x, x->values, rough ? NULL : x->deviations,
			       &solved);
	}
	if (!solved)
		estimate_alone(x);
	for (size_t i = 0; i < x->class_count; i++)
		x->deviations[i] *= WIDER;
	flow_close(flow);
	return e;
}

/* ---- the result ---- */

/* How many of a class's instructions waited for nothing, and the samples of these. */
static unsigned count_small(const struct estimate *x, uint32_t class, double *samples)
{
	unsigned count = 0;
	*samples = 0;
	for (uint32_t i = x->first[class]; i < x->first[class + 1]; i++) {
		unsigned small = cost_small(x->costs, &x->windows[i], x->values[class]);
		count += small;
		*samples += small ? x->windows[i].samples : 0;
	}
	return count;
}

static uint8_t confidence_of(const struct estimate *x, uint32_t class)
{
	double samples, deviation = x->deviations[class];
	unsigned count = count_small(x, class, &samples);
	double most = x->in->observation_count ? HIGH_DEVIATION_SEEN : HIGH_DEVIATION;
	if (x->network.incomplete)
		return count >= HIGH_COUNT ? FREQUENCY_MEDIUM : FREQUENCY_LOW;
	if (deviation < HIGH_ANCHORED ||
	    (deviation < most && count >= HIGH_COUNT && samples >= HIGH_SAMPLES))
		return FREQUENCY_HIGH;
	return deviation < MEDIUM_DEVIATION && count >= MEDIUM_COUNT ? FREQUENCY_MEDIUM
								     : FREQUENCY_LOW;
}

/* Edges that were seen tie classes together. Then their costs seem to tell much, but they wait for the same things, and
   are wrong together: by so much, as measured, if so many of their instructions waited for nothing. */
static double common_deviation(const struct estimate *x, uint32_t class)
{
	double samples;
	bool seen = x->in->observation_count;
	if (!seen && !x->costs->groups)
		return 0;
	unsigned count = count_small(x, class, &samples);
	if (count >= HIGH_COUNT)
		return COMMON_MANY;
	if (count >= MEDIUM_COUNT)
		return seen ? COMMON_SOME : ALONE_SOME;
	return seen ? COMMON_FEW : ALONE_FEW;
}

/* All of a program's executions are told by one unit, which may be wrong for this program, and more so for a CPU other than
   the one that it was measured on. Not where other things than samples tell. */
static double whole_deviation(const struct estimate *x, uint32_t class)
{
	double own = x->deviations[class];
	if (own < HIGH_ANCHORED)
		return own;
	return hypot(hypot(own, common_deviation(x, class)), x->costs->doubt);
}

static struct frequency frequency_of(const struct estimate *x, uint32_t class)
{
	double unit = x->in->cycles_per_sample > 0 ? x->in->cycles_per_sample : 1;
	double most = exp(x->values[class]) * unit;
	double wide = exp(1.645 * whole_deviation(x, class));
	return (struct frequency){
		.executions = most,
		.low = most / wide,
		.high = most * wide,
		.class = class,
		.confidence = confidence_of(x, class),
	};
}

static struct err *give(const struct estimate *x, struct frequency_result *out)
{
	const struct network *n = &x->network;
	out->blocks = calloc(n->block_count + 1, sizeof *out->blocks);
	out->edges = calloc(n->edge_count + 1, sizeof *out->edges);
	struct frequency *of = calloc(x->class_count + 1, sizeof *of); /* classes */
	if (!out->blocks || !out->edges || !of) {
		free(of);
		frequency_free(out);
		return err_new("out of memory");
	}
	for (uint32_t i = 0; i < x->class_count; i++)
		of[i] = frequency_of(x, i);
	out->block_count = n->block_count;
	out->edge_count = n->edge_count;
	out->class_count = x->class_count;
	out->incomplete = n->incomplete;
	for (size_t i = 0; i < n->block_count; i++)
		out->blocks[i] = of[x->class[i]];
	for (size_t i = 0; i < n->edge_count; i++)
		out->edges[i] = of[x->class[n->block_count + i]];
	out->entries = of[x->class[n->entry]];
	free(of);
	return NULL;
}

struct err *frequency_estimate(const struct frequency_input *input, struct frequency_result *out)
{
	struct estimate x = {.in = input, .costs = input->costs};
	struct frequency_costs *own = NULL;
	struct err *e = NULL;
	memset(out, 0, sizeof *out);
	if (!x.costs) {
		e = frequency_learn(input, 1, &own);
		x.costs = own;
	}
	if (!e)
		e = begin(&x);
	if (!e)
		e = solve(&x, false);
	if (!e)
		e = give(&x, out);
	release(&x);
	frequency_forget(own);
	return e;
}

void frequency_free(struct frequency_result *result)
{
	free(result->blocks);
	free(result->edges);
	memset(result, 0, sizeof *result);
}

/* ---- learning ---- */

typedef double cost_sums[COST_CELLS];

static void count_windows(const struct estimate *x, cost_sums *sums)
{
	for (uint32_t class = 0; class < x->class_count; class ++) {
		double weight = exp(x->values[class]) / 20;
		for (uint32_t i = x->first[class]; i < x->first[class + 1]; i++)
			cost_count(x->costs, &x->windows[i], x->values[class],
				   weight < 1 ? weight : 1, sums[x->windows[i].kind]);
	}
}

/* Neighbours share, so that few windows make no spikes. */
static void set_shares(struct frequency_costs *costs, const struct frequency_costs *usual,
		       const cost_sums *sums)
{
	for (size_t kind = 0; kind < COST_KINDS; kind++) {
		double total = 0;
		for (size_t cell = 0; cell < COST_CELLS; cell++) {
			double sum = 0, weights = 0;
			for (int by = -3; by <= 3; by++) {
				if ((int)cell + by < 0 || (int)cell + by >= COST_CELLS)
					continue;
				double weight = exp(-0.5 * by * by / 2.25);
				sum += weight * sums[kind][(int)cell + by];
				weights += weight;
			}
			costs->share[kind][cell] = sum / weights +
						   LEARN_USUAL * usual->share[kind][cell];
			total += costs->share[kind][cell];
		}
		for (size_t cell = 0; cell < COST_CELLS; cell++)
			costs->share[kind][cell] /= total;
	}
	cost_prepare(costs);
}

static struct err *learn_from(const struct frequency_input *in, const struct frequency_costs *costs,
			      cost_sums *sums)
{
	struct estimate x = {.in = in, .costs = costs};
	double samples = 0;
	for (size_t i = 0; i < in->insn_count; i++)
		samples += in->insns[i].samples;
	if (samples < LEARN_SAMPLES)
		return NULL;
	struct err *e = begin(&x);
	if (!e)
		e = solve(&x, true);
	if (!e)
		count_windows(&x, sums);
	release(&x);
	return e;
}

/* Procedures are learned from in parts, beside each other. There are as many parts everywhere, and their sums are added
   in order: the result is the same whatever the number of CPUs. */
#define LEARN_PARTS 8

struct learning {
	const struct frequency_input *inputs;
	size_t count;
	const struct frequency_costs *costs;
	cost_sums *sums[LEARN_PARTS];
	struct err *errors[LEARN_PARTS];
};

static void learn_part(void *context, size_t part)
{
	struct learning *l = context;
	memset(l->sums[part], 0, COST_KINDS * sizeof *l->sums[part]);
	for (size_t i = part; !l->errors[part] && i < l->count; i += LEARN_PARTS)
		l->errors[part] = learn_from(&l->inputs[i], l->costs, l->sums[part]);
}

/* Makes the sums of all procedures, in the first part. */
static struct err *learn_round(struct learning *l)
{
	struct err *e = NULL;
	parallel_for(LEARN_PARTS, learn_part, l);
	for (size_t part = 0; part < LEARN_PARTS; part++) {
		if (e)
			err_free(l->errors[part]);
		else
			e = l->errors[part];
		for (size_t kind = 0; part && kind < COST_KINDS; kind++)
			for (size_t cell = 0; cell < COST_CELLS; cell++)
				l->sums[0][kind][cell] += l->sums[part][kind][cell];
	}
	return e;
}

struct err *frequency_learn(const struct frequency_input *inputs, size_t count,
			    struct frequency_costs **out)
{
	struct frequency_costs *costs = malloc(sizeof *costs), *usual = malloc(sizeof *usual);
	struct learning l = {.inputs = inputs, .count = count, .costs = costs};
	bool good = costs && usual;
	for (size_t part = 0; part < LEARN_PARTS; part++) {
		l.sums[part] = malloc(COST_KINDS * sizeof *l.sums[part]);
		good = good && l.sums[part];
	}
	struct err *e = good ? NULL : err_new("out of memory");
	if (!e) {
		cost_usual(usual, count ? inputs[0].isa : NULL, count ? inputs[0].width : 0);
		*costs = *usual;
	}
	for (int round = 0; !e && round < LEARN_ROUNDS; round++) {
		e = learn_round(&l);
		if (!e)
			set_shares(costs, usual, l.sums[0]);
	}
	free(usual);
	for (size_t part = 0; part < LEARN_PARTS; part++)
		free(l.sums[part]);
	if (e) {
		free(costs);
		costs = NULL;
	}
	*out = costs;
	return e;
}

void frequency_forget(struct frequency_costs *costs)
{
	free(costs);
}
