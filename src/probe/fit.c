/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each bucket of values is a point: the mean of its values, and the mean time of its calls. A shape is fitted by least
 * squares of relative errors, since times range over powers of ten. A mean of few calls says less. A thread that lost its
 * CPU makes a call look slow, so points far off count less the farther they are (Cauchy's weights, by iteration).
 *
 * A shape with one more parameter always fits a little better. So shapes are compared by the Bayesian information
 * criterion, with the errors of the best one as the measure. The chances that follow from it are what we call sure.
 */
#include "probe/fit.h"

#include <math.h>
#include <stddef.h>

#include "harvest/measures.h"

#define POINTS_MIN 4
#define RANGE_MIN 4.0 /* the largest value to the least */
#define ROUNDS 12
#define NEARLY 4.4 /* of the criterion: a chance of one to nine */
#define FLAT 0.1   /* of the least time: growth that does not matter */
#define FLOOR 0.04 /* relative error of a mean of many calls */
#define ONE 0.5    /* of one call */
#define FAR 2.0    /* errors beyond this count less */

struct point {
	double n, ns, calls, error; /* error: relative */
};

struct points {
	struct point all[PROBE_VALUES];
	unsigned count;
};

static double shape_of(enum fit_shape shape, double n)
{
	switch (shape) {
	case FIT_LINEAR:
		return n;
	case FIT_N_LOG_N:
		return n * log2(n + 1);
	case FIT_SQUARE:
		return n * n;
	default:
		return 0;
	}
}

const char *fit_name(enum fit_shape shape)
{
	static const char *const names[] = {NULL, "constant", "n", "n log n", "n^2"};
	return names[shape];
}

double fit_time(const struct fit *f, double n)
{
	return f->base_ns + f->each_ns * shape_of(f->shape, n);
}

static double error_at(const struct fit *f, const struct point *p)
{
	return (fit_time(f, p->n) - p->ns) / (p->ns * p->error);
}

/* One weighted fit. The time of a call never falls with n, and is never below nothing. */
static void fit_once(const struct points *p, const double *weights, struct fit *f)
{
	double s = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
	for (unsigned i = 0; i < p->count; i++) {
		const struct point *q = &p->all[i];
		double sigma = q->ns * q->error, w = weights[i] / (sigma * sigma);
		double x = shape_of(f->shape, q->n);
		s += w;
		sx += w * x;
		sy += w * q->ns;
		sxx += w * x * x;
		sxy += w * x * q->ns;
	}
	double determinant = s * sxx - sx * sx;
	bool grows = f->shape != FIT_CONSTANT && determinant > 1e-12 * s * sxx;
	f->each_ns = grows ? (s * sxy - sx * sy) / determinant : 0;
	f->each_ns = f->each_ns > 0 ? f->each_ns : 0;
	f->base_ns = (sy - f->each_ns * sx) / s;
	if (f->base_ns < 0) {
		f->base_ns = 0;
		f->each_ns = sxy / sxx;
	}
}

/* Fits one shape. Returns the sum of its errors. */
static double fit_shape(const struct points *p, struct fit *f)
{
	double weights[PROBE_VALUES], loss = 0;
	for (unsigned i = 0; i < p->count; i++)
		weights[i] = 1;
	for (int round = 0; round < ROUNDS; round++) {
		fit_once(p, weights, f);
		for (unsigned i = 0; i < p->count; i++) {
			double far = error_at(f, &p->all[i]) / FAR;
			weights[i] = 1 / (1 + far * far);
		}
	}
	for (unsigned i = 0; i < p->count; i++) {
		double far = error_at(f, &p->all[i]) / FAR;
		loss += FAR * FAR * log1p(far * far);
	}
	return loss;
}

static void gather(const struct probe_measure *m, struct points *out, bool cpu)
{
	out->count = 0;
	for (uint32_t i = 0; i < PROBE_VALUES - PROBE_NEGATIVE; i++) {
		const struct probe_bucket *b = &m->buckets[i];
		uint64_t ns = cpu ? b->cpu_ns : b->ns;
		if (!b->calls || !ns)
			continue;
		double calls = (double)b->calls;
		out->all[out->count++] = (struct point){(double)b->sum / calls, (double)ns / calls,
							calls,
							sqrt(FLOOR * FLOOR + ONE * ONE / calls)};
	}
}

static double explained(const struct points *p, double loss)
{
	struct fit constant = {.shape = FIT_CONSTANT};
	double all = fit_shape(p, &constant);
	return all > 0 && loss < all ? 1 - loss / all : 0;
}

/* The time that it says for all calls, as a part of what they took. */
static double covered(const struct points *p, const struct fit *f)
{
	double said = 0, taken = 0;
	for (unsigned i = 0; i < p->count; i++) {
		said += p->all[i].calls * fit_time(f, p->all[i].n);
		taken += p->all[i].calls * p->all[i].ns;
	}
	return taken > 0 ? said / taken : 0;
}

/* Whether it grows so little that it is as good as constant. */
static bool is_flat(const struct fit *f)
{
	return f->shape == FIT_CONSTANT ||
	       fit_time(f, f->to) - fit_time(f, f->from) < FLAT * fit_time(f, f->from);
}

/* Returns the shape that is nearly as good as the best. */
static enum fit_shape next_best(const struct fit *fits, const double *scores, int best)
{
	int next = FIT_NONE;
	for (int i = FIT_CONSTANT; i <= FIT_SQUARE; i++)
		if (i != best && !(is_flat(&fits[i]) && is_flat(&fits[best])) &&
		    scores[i] - scores[best] < NEARLY && (!next || scores[i] < scores[next]))
			next = i;
	return (enum fit_shape)next;
}

struct fit fit_make(const struct probe_measure *m)
{
	struct fit fits[FIT_SQUARE + 1] = {{0}}, none = {0};
	double losses[FIT_SQUARE + 1], sum = 0, alike = 0;
	struct points points;
	bool cpu = false;
	int best = FIT_CONSTANT;
	for (uint32_t i = 0; i < PROBE_VALUES; i++)
		cpu |= m->buckets[i].cpu_ns > 0;
	gather(m, &points, cpu);
	if (points.count < POINTS_MIN)
		return none;
	double from = points.all[0].n, to = points.all[points.count - 1].n;
	if (to < RANGE_MIN * (from > 1 ? from : 1))
		return none;
	for (int i = FIT_CONSTANT; i <= FIT_SQUARE; i++) {
		fits[i] = (struct fit){.shape = (enum fit_shape)i,
				       .cpu = cpu,
				       .points = points.count,
				       .from = from,
				       .to = to};
		losses[i] = fit_shape(&points, &fits[i]);
	}
	for (int i = FIT_LINEAR; i <= FIT_SQUARE; i++)
		best = losses[i] < losses[best] ? i : best;
	double freedom = points.count - 2.0, scale = fmax(1, losses[best] / fmax(1, freedom));
	double scores[FIT_SQUARE + 1], extra = log(points.count);
	for (int i = FIT_CONSTANT; i <= FIT_SQUARE; i++)
		scores[i] = losses[i] / scale + (i == FIT_CONSTANT ? 0 : extra);
	for (int i = FIT_CONSTANT; i <= FIT_SQUARE; i++)
		best = scores[i] < scores[best] ? i : best;
	for (int i = FIT_CONSTANT; i <= FIT_SQUARE; i++) {
		double chance = exp((scores[best] - scores[i]) / 2);
		bool same = i == best || (is_flat(&fits[i]) && is_flat(&fits[best]));
		sum += chance;
		alike += same ? chance : 0;
	}
	fits[best].other = next_best(fits, scores, best);
	if (is_flat(&fits[best])) {
		best = FIT_CONSTANT;
		fits[best].each_ns = 0;
	}
	fits[best].sure = alike / sum;
	fits[best].covered = covered(&points, &fits[best]);
	fits[best].explained = explained(&points, losses[best]);
	return fits[best];
}
