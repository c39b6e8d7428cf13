/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "compare/counts.h"
#include "compare/runs.h"

#define ALPHA 0.05 /* the chance that a row is wrongly said to vary */

/* Samples of another period count for more or less. */
static double weight(const struct runs *runs, size_t run)
{
	return (double)runs->all[run].period / (double)runs->all[0].period;
}

static void measure(const struct runs *runs, const uint64_t *counts, double *values,
		    struct stats_row *out)
{
	double variance = 0;
	for (size_t i = 0; i < runs->count; i++) {
		values[i] = (double)counts[i] * weight(runs, i);
		variance += values[i] * weight(runs, i) / (double)runs->count;
	}
	moments_of(values, runs->count, &out->moments);
	out->counts = counts;
	out->range = out->moments.sum > 0 ? (out->moments.max - out->moments.min) / out->moments.sum
					  : 0;
	out->expected = sqrt(variance);
	double squares = variance > 0 ? out->moments.deviation * out->moments.deviation / variance
				      : 0;
	size_t df = runs->count - 1;
	out->p = chi_square_above(squares * (double)df, df);
	out->varies = out->p < ALPHA;
}

static int compare(const void *a, const void *b)
{
	const struct stats_row *x = a, *y = b;
	if (x->varies != y->varies)
		return x->varies ? -1 : 1;
	if (x->varies && x->moments.deviation != y->moments.deviation)
		return x->moments.deviation > y->moments.deviation ? -1 : 1;
	if (x->moments.sum != y->moments.sum)
		return x->moments.sum > y->moments.sum ? -1 : 1;
	return strcmp(x->row->name, y->row->name);
}

/* Among many rows some have a small chance by chance. */
static struct err *find_varying(struct stats *s)
{
	double *p = calloc(s->count + 1, sizeof *p);
	bool good = p;
	for (size_t i = 0; good && i < s->count; i++)
		p[i] = s->rows[i].p;
	good = good && holm(p, p, s->count);
	for (size_t i = 0; good && i < s->count; i++)
		s->rows[i].varies = p[i] < ALPHA;
	free(p);
	return good ? NULL : err_new("out of memory");
}

static void measure_rows(const struct runs *runs, const struct counts *rows, double min,
			 double *values, struct stats *out)
{
	double whole = out->total.moments.sum;
	for (size_t i = 0; i < rows->count; i++) {
		struct stats_row *r = &out->rows[out->count];
		*r = (struct stats_row){.row = &rows->all[i]};
		measure(runs, rows->counts + i * rows->runs, values, r);
		r->share = whole > 0 ? r->moments.sum / whole : 0;
		if (r->share >= min)
			out->count++;
		else
			out->hidden++;
	}
}

struct err *stats_make(const struct runs *runs, const struct counts *rows, double min,
		       struct stats *out)
{
	double *values = calloc(runs->count + 1, sizeof *values);
	*out = (struct stats){
		.rows = calloc(rows->count + 1, sizeof *out->rows),
		.totals = calloc(runs->count + 1, sizeof *out->totals),
	};
	bool good = values && out->rows && out->totals;
	for (size_t i = 0; good && i < runs->count; i++)
		out->totals[i] = runs->all[i].samples;
	if (good) {
		measure(runs, out->totals, values, &out->total);
		out->total.share = 1;
		measure_rows(runs, rows, min, values, out);
	}
	free(values);
	struct err *e = good ? find_varying(out) : err_new("out of memory");
	if (e)
		stats_free(out);
	else
		qsort(out->rows, out->count, sizeof *out->rows, compare);
	return e;
}

void stats_free(struct stats *s)
{
	free(s->rows);
	free(s->totals);
	*s = (struct stats){0};
}
