/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two things make the samples of a function differ from run to run though
 * nothing changed. Samples are taken now and then: a function that takes m
 * samples on average gets m give or take sqrt(m) (Poisson). And runs differ:
 * other addresses, other neighbours on the machine. The first is known; the
 * second shows only when something was run several times.
 *
 * With a cost of a run c = samples * scale, the question "is after = r * before?"
 * is answered by
 *
 *          |after - r * before| - correction
 *     t = -----------------------------------        V: variance of a side's mean
 *              sqrt(V(after) + r² V(before))
 *
 *   - What sampling alone gives, as if the answer were yes: the samples of both
 *     sides together say what the cost of a run is then, C, and V is the sum of
 *     C * scale over the side's runs, over their number squared.
 *   - A side with several runs has their own scatter, s² / runs. The larger of the
 *     two is V: so no luck with few runs makes us surer than sampling permits.
 *     Degrees of freedom are Welch's.
 *   - A single run beside a side with several is taken to scatter as that does.
 *   - One run on each side: the scatter is assumed, and t is normal. All of a run differs by
 *     noise * C; small functions differ by more than that and sampling give, as caches and addresses
 *     happen to be: their variance by sampling is taken CLUMPED times (bench/diff shows why).
 *
 * Few samples lie unevenly around their mean: far more of them than expected come by luck more often than far
 * fewer. Where the sides have about equally many samples, that cancels out. Where one side has only few (a short
 * recording, a long period), t would be too large. The square roots of counts lie evenly (of shares, the angle
 * whose sine the square root is); where they differ less than the counts, t is less by that, too. That is for
 * single runs: where runs scatter, Student's distribution has more than enough room for it.
 *
 * What is counted may be no samples, but what they stand for, such as bytes. Then nothing is known of chance but the
 * scatter of the runs: V is that alone, and there is no correction.
 *
 * The correction is half a sample of each side, as counts come in whole numbers.
 * With equal scales and r = 1 this is the sign test of the samples, a little to
 * the safe side. The interval of after / before has all r for which t is not
 * larger than usual, so it and p never contradict each other: it leaves out 1 if and only if p says that
 * something changed. With runs that scatter much, such r may lie in two pieces; what is between 1 and the
 * piece with after / before is then decided by whether 1 itself is plausible.
 */
#include "compare/test.h"

#include <math.h>

#include "compare/numbers.h"

#define RATIO_MAX 1e9
#define CLUMPED 2

struct spread { /* of a side's cost per run */
	double mean;
	double variance; /* of a run, by the scatter of the runs; < 0: there is only one */
	double samples;
};

struct question {
	const struct test_side *sides[2];
	struct spread spreads[2];
	const struct test_options *options;
};

static void spread_of(const struct test_side *side, struct spread *out)
{
	double squares = 0;
	*out = (struct spread){.variance = -1};
	for (size_t i = 0; i < side->runs; i++) {
		out->mean += (double)side->counts[i] * side->scales[i] / (double)side->runs;
		out->samples += (double)side->counts[i];
	}
	for (size_t i = 0; i < side->runs; i++) {
		double off = (double)side->counts[i] * side->scales[i] - out->mean;
		squares += off * off;
	}
	if (side->runs > 1)
		out->variance = squares / (double)(side->runs - 1);
}

static void question_make(const struct test_side *before, const struct test_side *after,
			  const struct test_options *options, struct question *q)
{
	*q = (struct question){.sides = {before, after}, .options = options};
	spread_of(before, &q->spreads[0]);
	spread_of(after, &q->spreads[1]);
}

/* The cost of a run before, if that after is r times it. */
static double common_cost(const struct question *q, double r)
{
	double exposure = 0;
	for (int s = 0; s < 2; s++)
		for (size_t i = 0; i < q->sides[s]->runs; i++)
			exposure += (s ? r : 1) / q->sides[s]->scales[i];
	return exposure > 0 ? (q->spreads[0].samples + q->spreads[1].samples) / exposure : 0;
}

/* Of a side's mean, by sampling alone. Of a whole there is no more than all: that scatters less. */
static double sampling(const struct question *q, int s, double cost)
{
	const struct test_side *side = q->sides[s];
	double scales = 0;
	if (q->options->amounts)
		return 0;
	for (size_t i = 0; i < side->runs; i++)
		scales += side->scales[i];
	double part = q->options->shares ? fmax(0, 1 - cost) : 1;
	return cost * part * scales / ((double)side->runs * (double)side->runs);
}

/* Of a side's mean, and its degrees of freedom. */
static double variance(const struct question *q, int s, double cost, double r, double *df)
{
	double runs = (double)q->sides[s]->runs, least = sampling(q, s, cost), scatter;
	double own = q->spreads[s].variance, others = q->spreads[!s].variance;
	if (own < 0 && others < 0) {
		*df = INFINITY;
		double noise = q->options->noise * cost;
		return least * (noise > 0 ? CLUMPED : 1) + noise * noise / runs;
	}
	/* The other side's cost is r times ours, or ours r times it. */
	scatter = own >= 0 ? own : others * (s ? r * r : r > 0 ? 1 / (r * r) : 1);
	*df = (double)q->sides[own >= 0 ? s : !s]->runs - 1;
	return fmax(least, scatter / runs);
}

/* A cost or share whose luck is the same in both directions, and how fast that grows with it. */
static double evened(const struct question *q, double cost)
{
	return q->options->shares ? asin(sqrt(fmin(1, cost))) : sqrt(cost);
}

static double evened_slope(const struct question *q, double cost)
{
	return 0.5 / sqrt(cost * (q->options->shares ? fmax(0, 1 - cost) : 1));
}

/* The part of a difference that is left when the luck of few samples is evened out, at most 1. */
static double even_part(const struct question *q, double r, double expected)
{
	double before = r * q->spreads[0].mean, after = q->spreads[1].mean;
	double slope = evened_slope(q, expected), off = fabs(after - before);
	if (!(off > 0) || !isfinite(slope))
		return 1;
	return fmin(1, fabs(evened(q, after) - evened(q, before)) / (slope * off));
}

static double t_of(const struct question *q, double r, double *df)
{
	double cost = common_cost(q, r), dfs[2];
	double v0 = variance(q, 0, cost, r, &dfs[0]) * r * r;
	double v1 = variance(q, 1, cost * r, r, &dfs[1]), v = v0 + v1;
	double off = q->spreads[1].mean - r * q->spreads[0].mean, correction = 0;
	for (int s = 0; s < 2 && !q->options->amounts; s++) {
		const struct test_side *side = q->sides[s];
		correction += 0.5 * (s ? 1 : r) * side->scales[0] / (double)side->runs;
	}
	*df = INFINITY;
	if (q->spreads[0].variance >= 0 && q->spreads[1].variance >= 0 && v > 0)
		*df = v * v / (v0 * v0 / dfs[0] + v1 * v1 / dfs[1]);
	else if (isfinite(dfs[0]))
		*df = dfs[0]; /* both stand on the same runs */
	double left = fmax(0, fabs(off) - correction);
	if (!(v > 0))
		return left > 0 ? copysign(INFINITY, off) : 0;
	double part = isfinite(*df) ? 1 : even_part(q, r, cost * r);
	return copysign(part * left / sqrt(v), off);
}

/* Whether a ratio is within the interval. */
static bool is_plausible(const struct question *q, double r)
{
	double df, t = t_of(q, r, &df);
	return 2 * student_above(fabs(t), df) > 1 - q->options->confidence;
}

/* Between a ratio that is plausible and one that is not. */
static double find_edge(const struct question *q, double inside, double outside)
{
	for (int i = 0; i < 60; i++) {
		double middle = (inside + outside) / 2;
		if (is_plausible(q, middle))
			inside = middle;
		else
			outside = middle;
	}
	return inside;
}

static double find_low(const struct question *q, double middle, bool same)
{
	if (!same && middle > 1)
		return find_edge(q, middle, 1);
	return is_plausible(q, 0) ? 0 : find_edge(q, same ? fmin(middle, 1) : middle, 0);
}

static double find_high(const struct question *q, double middle, bool same)
{
	double inside = same ? fmax(middle, 1) : middle, far = inside;
	if (!same && middle < 1)
		return find_edge(q, middle, 1);
	do
		far = far * 2 + 1e-3;
	while (far < RATIO_MAX && is_plausible(q, far));
	return far < RATIO_MAX ? find_edge(q, inside, far) : INFINITY;
}

static void find_interval(const struct question *q, struct test_result *out)
{
	double middle = out->before > 0 ? out->after / out->before : RATIO_MAX;
	bool same = is_plausible(q, 1);
	out->low = find_low(q, middle, same);
	out->high = find_high(q, middle, same);
	out->changed = !same;
}

void test_compare(const struct test_side *before, const struct test_side *after,
		  const struct test_options *options, struct test_result *out)
{
	struct question q;
	double ignored;
	question_make(before, after, options, &q);
	*out = (struct test_result){.before = q.spreads[0].mean, .after = q.spreads[1].mean};
	double t = t_of(&q, 1, &out->df);
	out->p = fmin(1, 2 * student_above(fabs(t), out->df));
	double r = out->before > 0 ? out->after / out->before : 1;
	out->error = sqrt(variance(&q, 0, out->before, r, &ignored) +
			  variance(&q, 1, out->after, r, &ignored));
	find_interval(&q, out);
}
