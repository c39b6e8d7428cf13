/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Least squares on the logarithms of flows, which are positive by that. Three things are summed:
 *
 *   costs       of each class, as the samples tell; any shape
 *   relations   one logarithm against another, or against a number; quadratic
 *   sums        what flows into a node flows out of it: the logarithm of the whole against that of the sum
 *
 * Sums are held by springs that become stiffer from stage to stage: so a bad start may pass through flows that
 * do not fit. In each stage, steps are as Levenberg and Marquardt have them: where one makes things worse, the
 * next is shorter. (Plain steps go back and forth: the flow of a way that is hardly taken is the small
 * difference of large ones, and its logarithm may be anything.) A node with many arcs
 * (a switch, a common end) becomes a tree of sums of two, with unknowns of their own between: so a row of
 * the system has few entries, and its factors stay sparse.
 */
#include "explain/flow.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "explain/classes.h"
#include "explain/sparse.h"

#define ROUNDS 12    /* in each stage, at most */
#define STEP_MAX 1.5 /* of a logarithm in one round */
#define SETTLED 0.01 /* of the cost */
#define DAMPING_LEAST 1e-4
#define DAMPING_MOST 1e7
#define WEAK 8.0 /* deviation of what nothing is known of */

/* More edges than these, and so many for each block, go from many blocks to many (an interpreter that jumps from each of its
   operations to the next): the factors would have too many entries, and finding that out takes seconds. */
#define MANY_EDGES 16384
#define MANY_OF_A_BLOCK 8

static const double springs[] = {0.3,   0.1,   0.03,  0.01,
				 0.003, 0.001, 0.0003}; /* deviations of sums */
#define SPRING_LAST 0.0003
#define SPRING_ROUGH 0.002 /* the last ones are for what must be exact */

struct sum { /* whole = left + right */
	uint32_t whole, left, right;
};

struct relation {
	uint32_t a, b; /* NOTHING: `a` alone */
	double value, weight;
};
#define NOTHING UINT32_MAX

struct flow {
	const struct network *network;
	const uint32_t *class;
	size_t class_count, count; /* unknowns: classes, then parts of sums */
	struct sum *sums;
	size_t sum_count, sum_room;
	struct relation *relations;
	size_t relation_count, relation_room;
};

/* ---- relations ---- */

static bool relate(struct flow *f, uint32_t a, uint32_t b, double ratio, double variance)
{
	if (a == b)
		return true;
	if (!ARRAY_ROOM(f->relations, f->relation_count, f->relation_room))
		return false;
	f->relations[f->relation_count++] = (struct relation){a, b, ratio, 1 / variance};
	return true;
}

struct err *flow_relate(struct flow *f, uint32_t a, uint32_t b, double ratio, double variance)
{
	return relate(f, a, b, ratio, variance) ? NULL : err_new("out of memory");
}

struct err *flow_expect(struct flow *f, uint32_t a, double value, double variance)
{
	return flow_relate(f, a, NOTHING, value, variance);
}

/* ---- sums ---- */

static bool add_sum(struct flow *f, uint32_t whole, uint32_t left, uint32_t right)
{
	if (!ARRAY_ROOM(f->sums, f->sum_count, f->sum_room))
		return false;
	f->sums[f->sum_count++] = (struct sum){whole, left, right};
	return true;
}

/* The whole is the sum of parts; `parts` is used up. */
static bool add_parts(struct flow *f, uint32_t whole, uint32_t *parts, size_t count)
{
	while (count > 2) {
		size_t kept = 0;
		for (size_t i = 0; i + 1 < count; i += 2) {
			uint32_t between = (uint32_t)f->count++;
			if (!add_sum(f, between, parts[i], parts[i + 1]))
				return false;
			parts[kept++] = between;
		}
		if (count % 2)
			parts[kept++] = parts[count - 1];
		count = kept;
	}
	return count < 2 || add_sum(f, whole, parts[0], parts[1]);
}

/* Arcs by the node that they begin at, or end at. */
static bool index_arcs(const struct network *n, bool by_end, uint32_t *first, uint32_t *arcs)
{
	for (size_t i = 0; i < n->arc_count; i++)
		first[(by_end ? n->arcs[i].to : n->arcs[i].from) + 1]++;
	for (size_t i = 0; i < n->node_count; i++)
		first[i + 1] += first[i];
	for (uint32_t i = (uint32_t)n->arc_count; i-- > 0;)
		arcs[--first[(by_end ? n->arcs[i].to : n->arcs[i].from) + 1]] = i;
	memmove(first, first + 1, n->node_count * sizeof *first);
	first[n->node_count] = (uint32_t)n->arc_count;
	return true;
}

static bool add_sums(struct flow *f, bool by_end)
{
	const struct network *n = f->network;
	uint32_t *first = calloc(n->node_count + 1, sizeof *first);
	uint32_t *arcs = calloc(n->arc_count + 1, sizeof *arcs);
	bool good = first && arcs && index_arcs(n, by_end, first, arcs);
	for (uint32_t i = 0; good && i < n->block_count; i++) {
		uint32_t node = by_end ? network_head(i) : network_tail(i);
		uint32_t *parts = arcs + first[node];
		size_t count = first[node + 1] - first[node];
		for (size_t k = 0; k < count; k++)
			parts[k] = f->class[parts[k]];
		if (count == 1 && parts[0] != f->class[i])
			good = relate(f, parts[0], f->class[i], 0, SPRING_LAST * SPRING_LAST);
		else
			good = add_parts(f, f->class[i], parts, count);
	}
	free(first);
	free(arcs);
	return good;
}

struct err *flow_open(const struct network *network, const uint32_t *class, size_t class_count,
		      struct flow **out)
{
	struct flow *f = calloc(1, sizeof *f);
	*out = f;
	if (f) {
		*f = (struct flow){.network = network,
				   .class = class,
				   .class_count = class_count,
				   .count = class_count};
		if (add_sums(f, true) && add_sums(f, false))
			return NULL;
	}
	flow_close(f);
	*out = NULL;
	return err_new("out of memory");
}

void flow_close(struct flow *f)
{
	if (!f)
		return;
	free(f->sums);
	free(f->relations);
	free(f);
}

/* ---- the system ---- */

struct solver {
	const struct flow *f;
	struct sparse *matrix;
	flow_cost *cost;
	const void *context;
	double *values, *right, *tried; /* of the unknowns */
	double spring, step, damping;
};

static struct err *open_matrix(struct solver *s)
{
	const struct flow *f = s->f;
	size_t count = 0;
	struct sparse_pair *pairs = calloc(3 * f->sum_count + f->relation_count + 1, sizeof *pairs);
	if (!pairs)
		return err_new("out of memory");
	for (size_t i = 0; i < f->sum_count; i++) {
		const struct sum *x = &f->sums[i];
		pairs[count++] = (struct sparse_pair){x->whole, x->left};
		pairs[count++] = (struct sparse_pair){x->whole, x->right};
		pairs[count++] = (struct sparse_pair){x->left, x->right};
	}
	for (size_t i = 0; i < f->relation_count; i++)
		if (f->relations[i].b != NOTHING)
			pairs[count++] = (struct sparse_pair){f->relations[i].a, f->relations[i].b};
	size_t kept = 0;
	for (size_t i = 0; i < count; i++)
		if (pairs[i].row != pairs[i].column)
			pairs[kept++] = pairs[i];
	struct err *e = sparse_open(f->count, pairs, kept, &s->matrix);
	free(pairs);
	return e;
}

/* A linear residual of up to three unknowns, as squares. */
static void add_residual(struct solver *s, const uint32_t *unknowns, const double *slopes,
			 size_t count, double residual, double weight)
{
	for (size_t i = 0; i < count; i++) {
		s->right[unknowns[i]] -= weight * slopes[i] * residual;
		for (size_t k = 0; k <= i; k++)
			sparse_add(s->matrix, unknowns[i], unknowns[k],
				   weight * slopes[i] * slopes[k]);
	}
}

static double log_sum(double a, double b)
{
	double most = a > b ? a : b, least = a > b ? b : a;
	return most + log1p(exp(least - most));
}

static void add_sum_residual(struct solver *s, const struct sum *x)
{
	double total = log_sum(s->values[x->left], s->values[x->right]);
	uint32_t unknowns[3] = {x->whole, x->left, x->right};
	double slopes[3] = {-1, exp(s->values[x->left] - total), exp(s->values[x->right] - total)};
	add_residual(s, unknowns, slopes, 3, total - s->values[x->whole],
		     1 / (s->spring * s->spring));
}

static double relation_residual(const struct relation *r, const double *values)
{
	return values[r->a] - (r->b == NOTHING ? 0 : values[r->b]) - r->value;
}

static void add_relation(struct solver *s, const struct relation *r)
{
	uint32_t unknowns[2] = {r->a, r->b};
	double slopes[2] = {1, -1};
	add_residual(s, unknowns, slopes, r->b == NOTHING ? 1 : 2, relation_residual(r, s->values),
		     r->weight);
}

static void add_costs(struct solver *s)
{
	for (uint32_t i = 0; i < s->f->class_count; i++) {
		double slope = 0, curvature = 0;
		s->cost(s->context, i, s->values[i], s->step, &slope, &curvature);
		sparse_add(s->matrix, i, i, curvature);
		s->right[i] -= slope;
	}
	for (uint32_t i = 0; i < s->f->count; i++) {
		sparse_add(s->matrix, i, i, 1 / (WEAK * WEAK) + s->damping);
		s->right[i] -= s->values[i] / (WEAK * WEAK);
	}
}

static void fill(struct solver *s)
{
	const struct flow *f = s->f;
	sparse_clear(s->matrix);
	memset(s->right, 0, f->count * sizeof *s->right);
	add_costs(s);
	for (size_t i = 0; i < f->relation_count; i++)
		add_relation(s, &f->relations[i]);
	for (size_t i = 0; i < f->sum_count; i++)
		add_sum_residual(s, &f->sums[i]);
	sparse_factor(s->matrix);
}

/* What all costs, relations and sums come to. */
static double total_cost(const struct solver *s, const double *values)
{
	const struct flow *f = s->f;
	double total = 0, squares = 0, weak = 0;
	for (uint32_t i = 0; i < f->class_count; i++)
		total += s->cost(s->context, i, values[i], s->step, NULL, NULL);
	for (size_t i = 0; i < f->relation_count; i++) {
		double residual = relation_residual(&f->relations[i], values);
		total += 0.5 * f->relations[i].weight * residual * residual;
	}
	for (size_t i = 0; i < f->sum_count; i++) {
		const struct sum *x = &f->sums[i];
		double residual = log_sum(values[x->left], values[x->right]) - values[x->whole];
		squares += residual * residual;
	}
	for (size_t i = 0; i < f->count; i++)
		weak += values[i] * values[i];
	return total + 0.5 * squares / (s->spring * s->spring) + 0.5 * weak / (WEAK * WEAK);
}

static void try_step(struct solver *s)
{
	fill(s);
	sparse_solve(s->matrix, s->right);
	for (size_t i = 0; i < s->f->count; i++) {
		double step = s->right[i];
		if (!(fabs(step) < STEP_MAX))
			step = step > 0 ? STEP_MAX : -STEP_MAX;
		s->tried[i] = s->values[i] + step;
	}
}

static void run_stage(struct solver *s)
{
	double least = total_cost(s, s->values);
	for (int round = 0; round < ROUNDS; round++) {
		try_step(s);
		double cost = total_cost(s, s->tried);
		if (!(cost < least)) {
			s->damping = fmin(s->damping * 6, DAMPING_MOST);
			continue;
		}
		memcpy(s->values, s->tried, s->f->count * sizeof *s->values);
		s->damping = fmax(s->damping / 4, DAMPING_LEAST);
		if (least - cost < SETTLED)
			return;
		least = cost;
	}
}

static void set_parts(struct solver *s)
{
	for (size_t i = 0; i < s->f->sum_count;
	     i++) { /* parts of a tree come before what they make up */
		const struct sum *x = &s->f->sums[i];
		if (x->whole >= s->f->class_count)
			s->values[x->whole] = log_sum(s->values[x->left], s->values[x->right]);
	}
}

static void run_stages(struct solver *s, bool rough)
{
	set_parts(s);
	s->damping = 1;
	for (size_t i = 0; i < sizeof springs / sizeof *springs; i++) {
		if (rough && springs[i] < SPRING_ROUGH)
			break;
		s->spring = springs[i];
		s->step = s->spring > 0.05 ? 0.4 : 0.2;
		run_stage(s);
	}
}

static void take_deviations(struct solver *s, double *deviations)
{
	s->damping = 0;
	fill(s);
	sparse_invert(s->matrix, s->right);
	for (size_t i = 0; i < s->f->class_count; i++)
		deviations[i] = sqrt(s->right[i] > 0 ? s->right[i] : 0);
}

struct err *flow_solve(struct flow *f, flow_cost *cost, const void *context, double *values,
		       double *deviations, bool *solved)
{
	struct solver s = {.f = f, .cost = cost, .context = context};
	const struct network *n = f->network;
	*solved = false;
	if (n->edge_count > MANY_EDGES && n->edge_count > MANY_OF_A_BLOCK * n->block_count)
		return NULL;
	struct err *e = open_matrix(&s);
	*solved = !e && s.matrix;
	if (!*solved)
		return e;
	s.values = calloc(f->count + 1, sizeof *s.values);
	s.right = calloc(f->count + 1, sizeof *s.right);
	s.tried = calloc(f->count + 1, sizeof *s.tried);
	if (s.values && s.right && s.tried) {
		memcpy(s.values, values, f->class_count * sizeof *values);
		run_stages(&s, !deviations);
		memcpy(values, s.values, f->class_count * sizeof *values);
		if (deviations)
			take_deviations(&s, deviations);
	} else {
		e = err_new("out of memory");
	}
	free(s.values);
	free(s.right);
	free(s.tried);
	sparse_close(s.matrix);
	return e;
}
