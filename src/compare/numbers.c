/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/numbers.h"

#include <math.h>
#include <stdlib.h>

#define STEPS 200 /* more than any of the series and searches here take */
#define TINY 1e-300

double normal_above(double z)
{
	return 0.5 * erfc(z / sqrt(2));
}

/* The continued fraction of the incomplete beta function, from the front (Lentz). */
static double beta_fraction(double a, double b, double x)
{
	double c = 1, d = 1 - (a + b) * x / (a + 1), result;
	d = 1 / (fabs(d) < TINY ? TINY : d);
	result = d;
	for (int i = 1; i <= STEPS; i++) {
		double even = i * (b - i) * x / ((a + 2 * i - 1) * (a + 2 * i));
		double odd = -(a + i) * (a + b + i) * x / ((a + 2 * i) * (a + 2 * i + 1));
		double before = result;
		for (int k = 0; k < 2; k++) {
			double term = k ? odd : even;
			d = 1 + term * d;
			d = 1 / (fabs(d) < TINY ? TINY : d);
			c = 1 + term / c;
			c = fabs(c) < TINY ? TINY : c;
			result *= c * d;
		}
		if (fabs(result - before) <= 1e-15 * fabs(result))
			break;
	}
	return result;
}

/* The regularised incomplete beta function. */
static double beta_part(double a, double b, double x)
{
	if (x <= 0 || x >= 1)
		return x >= 1;
	double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
					 : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double student_above(double t, double df)
{
	if (!isfinite(df) || df > 1e6)
		return normal_above(t);
	if (!isfinite(t))
		return t < 0;
	double tail = 0.5 * beta_part(df / 2, 0.5, df / (df + t * t));
	return t >= 0 ? tail : 1 - tail;
}

double student_quantile(double chance, double df)
{
	double low = -1, high = 1;
	while (student_above(low, df) < chance && low > -1e12)
		low *= 2;
	while (student_above(high, df) > chance && high < 1e12)
		high *= 2;
	for (int i = 0; i < STEPS && high - low > 1e-12 * (fabs(low) + fabs(high)); i++) {
		double middle = (low + high) / 2;
		if (student_above(middle, df) > chance)
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2;
}

/* That of one or two, and what each two more of them add. */
double chi_square_above(double x, size_t df)
{
	double y = x / 2, a = df % 2 ? 0.5 : 1;
	if (x <= 0 || !df)
		return x <= 0;
	double chance = df % 2 ? erfc(sqrt(y)) : exp(-y);
	for (; a < (double)df / 2; a++)
		chance += exp(a * log(y) - y - lgamma(a + 1));
	return fmin(chance, 1);
}

struct ranked {
	double p;
	size_t index;
};

static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	if (x->p != y->p)
		return x->p < y->p ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

bool holm(const double *p, double *adjusted, size_t count)
{
	struct ranked *order = calloc(count + 1, sizeof *order);
	size_t used = 0;
	double highest = 0;
	if (!order)
		return false;
	for (size_t i = 0; i < count; i++) {
		adjusted[i] = p[i];
		if (p[i] >= 0)
			order[used++] = (struct ranked){p[i], i};
	}
	qsort(order, used, sizeof *order, compare_ranked);
	for (size_t i = 0; i < used; i++) {
		double value = fmin(1, order[i].p * (double)(used - i));
		highest = fmax(highest, value);
		adjusted[order[i].index] = highest;
	}
	free(order);
	return true;
}

void moments_of(const double *values, size_t count, struct moments *out)
{
	double squares = 0;
	*out = (struct moments){0};
	if (!count)
		return;
	out->min = out->max = values[0];
	for (size_t i = 0; i < count; i++) {
		out->sum += values[i];
		out->min = fmin(out->min, values[i]);
		out->max = fmax(out->max, values[i]);
	}
	out->mean = out->sum / (double)count;
	for (size_t i = 0; i < count; i++)
		squares += (values[i] - out->mean) * (values[i] - out->mean);
	out->deviation = count > 1 ? sqrt(squares / (double)(count - 1)) : 0;
}
