/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "compare/numbers.h"
#include "compare/runs.h"

struct differ {
	const struct runs *runs;
	struct diff *d;
	double *scales;              /* by run, for the test */
	double old_whole, new_whole; /* cost of a run on average */
};

static void sum_side(const struct differ *f, const uint64_t *counts, bool old, uint64_t *samples,
		     double *cost)
{
	size_t split = f->d->options.old_runs, from = old ? 0 : split,
	       to = old ? split : f->runs->count;
	*samples = 0;
	*cost = 0;
	for (size_t i = from; i < to; i++) {
		*samples += counts[i];
		*cost += (double)counts[i] * (double)f->runs->all[i].period / (double)(to - from);
	}
}

static struct test_side side_of(const struct differ *f, const uint64_t *counts, bool old)
{
	size_t split = f->d->options.old_runs;
	return old ? (struct test_side){counts, f->scales, split}
		   : (struct test_side){counts + split, f->scales + split, f->runs->count - split};
}

static struct test_options test_options_of(const struct diff_options *o)
{
	return (struct test_options){o->noise, 1 - o->alpha, o->shares};
}

static void measure(const struct differ *f, struct diff_row *r, const uint64_t *counts)
{
	const struct diff_options *o = &f->d->options;
	struct test_side before = side_of(f, counts, true), after = side_of(f, counts, false);
	struct test_options options = test_options_of(o);
	sum_side(f, counts, true, &r->old_samples, &r->old_cost);
	sum_side(f, counts, false, &r->new_samples, &r->new_cost);
	r->old_share = f->old_whole > 0 ? r->old_cost / f->old_whole : 0;
	r->new_share = f->new_whole > 0 ? r->new_cost / f->new_whole : 0;
	r->p = r->too_slow_p = -1;
	r->tested = r->old_samples + r->new_samples >= TEST_LEAST &&
		    (r->row ? (r->old_share + r->new_share) / 2 >= o->min : !o->shares);
	if (!r->tested)
		return;
	test_compare(&before, &after, &options, &r->test);
	r->p = r->test.p;
	/* What is new cannot have become slower; all together can. */
	if (o->fail_above >= 0 && r->old_samples && !(r->row && o->fail_on_total))
		r->too_slow_p = test_exceeds(&before, &after, &options, 1 + o->fail_above);
}

/* Corrects one of the two chances of total and rows. */
static struct err *correct(struct diff *d, bool slow)
{
	size_t count = d->count + 1;
	double *p = calloc(count, 2 * sizeof *p), *adjusted = p ? p + count : NULL;
	bool good = p;
	for (size_t i = 0; good && i < count; i++) {
		const struct diff_row *r = i ? &d->rows[i - 1] : &d->total;
		p[i] = slow ? r->too_slow_p : r->p;
	}
	good = good && holm(p, adjusted, count);
	for (size_t i = 0; good && i < count; i++) {
		struct diff_row *r = i ? &d->rows[i - 1] : &d->total;
		*(slow ? &r->too_slow_p : &r->p) = adjusted[i];
	}
	free(p);
	return good ? NULL : err_new("out of memory");
}

static void judge(struct diff *d, struct diff_row *r)
{
	r->changed = r->p >= 0 && r->p <= d->options.alpha;
	r->too_slow = r->too_slow_p >= 0 && r->too_slow_p <= d->options.alpha;
	d->too_slow |= r->too_slow;
	d->tests += r->tested;
	d->changed += r->row && r->changed;
	d->untested += r->row && !r->tested;
}

static int compare_rows(const struct diff_row *x, const struct diff_row *y, double by_x,
			double by_y)
{
	if (x->changed != y->changed)
		return x->changed ? -1 : 1;
	if (x->tested != y->tested)
		return x->tested ? -1 : 1;
	if (by_x != by_y)
		return by_x > by_y ? -1 : 1;
	return strcmp(x->row->name, y->row->name);
}

static int compare_costs(const void *a, const void *b)
{
	const struct diff_row *x = a, *y = b;
	return compare_rows(x, y, fabs(x->new_cost - x->old_cost), fabs(y->new_cost - y->old_cost));
}

static int compare_shares(const void *a, const void *b)
{
	const struct diff_row *x = a, *y = b;
	return compare_rows(x, y, fabs(x->new_share - x->old_share),
			    fabs(y->new_share - y->old_share));
}

static struct err *set_scales(struct differ *f)
{
	f->scales = calloc(f->runs->count + 1, sizeof *f->scales);
	if (!f->scales)
		return err_new("out of memory");
	for (size_t i = 0; i < f->runs->count; i++) {
		const struct run *run = &f->runs->all[i];
		if (!run->samples && f->d->options.shares)
			return err_new("%s has no samples to compare shares of", run->path);
		f->scales[i] = f->d->options.shares ? 1 / (double)run->samples
						    : (double)run->period;
	}
	return NULL;
}

static struct err *measure_all(struct differ *f, const struct counts *rows)
{
	struct diff *d = f->d;
	uint64_t *whole = calloc(f->runs->count + 1, sizeof *whole), ignored;
	d->rows = calloc(rows->count + 1, sizeof *d->rows);
	if (!whole || !d->rows) {
		free(whole);
		return err_new("out of memory");
	}
	for (size_t i = 0; i < f->runs->count; i++)
		whole[i] = f->runs->all[i].samples;
	sum_side(f, whole, true, &ignored, &f->old_whole);
	sum_side(f, whole, false, &ignored, &f->new_whole);
	measure(f, &d->total, whole);
	for (size_t i = 0; i < rows->count; i++) {
		struct diff_row *r = &d->rows[d->count++];
		r->row = &rows->all[i];
		measure(f, r, rows->counts + i * rows->runs);
	}
	free(whole);
	return NULL;
}

struct err *diff_make(const struct runs *runs, const struct counts *rows,
		      const struct diff_options *options, struct diff *out)
{
	struct differ f = {.runs = runs, .d = out};
	*out = (struct diff){
		.options = *options,
		.metric = runs->metric,
		.unit = runs->unit,
		.has_replicates = options->old_runs > 1 || runs->count - options->old_runs > 1,
	};
	struct err *e = set_scales(&f);
	if (!e)
		e = measure_all(&f, rows);
	if (!e)
		e = correct(out, false);
	if (!e)
		e = correct(out, true);
	for (size_t i = 0; i <= out->count && !e; i++)
		judge(out, i ? &out->rows[i - 1] : &out->total);
	if (!e)
		qsort(out->rows, out->count, sizeof *out->rows,
		      options->shares ? compare_shares : compare_costs);
	free(f.scales);
	if (e)
		diff_free(out);
	return e;
}

void diff_free(struct diff *d)
{
	free(d->rows);
	*d = (struct diff){0};
}
