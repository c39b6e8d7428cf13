/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
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

static void measure(const struct differ *f, struct diff_row *r, const uint64_t *counts)
{
	const struct diff_options *o = &f->d->options;
	r->counts = counts;
	sum_side(f, counts, true, &r->old_samples, &r->old_cost);
	sum_side(f, counts, false, &r->new_samples, &r->new_cost);
	r->old_share = f->old_whole > 0 ? r->old_cost / f->old_whole : 0;
	r->new_share = f->new_whole > 0 ? r->new_cost / f->new_whole : 0;
	r->p = -1;
	r->large = r->old_samples + r->new_samples >= (f->d->amounts ? 1 : TEST_LEAST) &&
		   (!r->row || (r->old_share + r->new_share) / 2 >= o->min);
	r->tested = r->large && !f->d->untestable && (r->row || !o->shares);
	f->d->tests += r->tested;
	f->d->untested += r->row && !r->large;
}

static void test(const struct differ *f, struct diff_row *r)
{
	struct diff *d = f->d;
	const struct diff_options *o = &d->options;
	struct test_side before = side_of(f, r->counts, true), after = side_of(f, r->counts, false);
	struct test_options options = {o->noise, d->confidence, o->shares, d->amounts};
	if (!r->tested)
		return;
	test_compare(&before, &after, &options, &r->test);
	r->p = fmin(1, r->test.p * (double)d->tests);
	r->changed = r->test.changed;
	/* What is new cannot have become slower; all together can. */
	r->too_slow = o->fail_above >= 0 && r->old_samples && !(r->row && o->fail_on_total) &&
		      r->test.low > 1 + o->fail_above;
	d->too_slow |= r->too_slow;
	d->changed += r->row && r->changed;
}

static int compare_rows(const struct diff_row *x, const struct diff_row *y, double by_x,
			double by_y)
{
	if (x->changed != y->changed)
		return x->changed ? -1 : 1;
	if (x->large != y->large)
		return x->large ? -1 : 1;
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

static struct err *measure_all(struct differ *f, const struct counts *rows, uint64_t *whole)
{
	struct diff *d = f->d;
	uint64_t ignored;
	d->rows = calloc(rows->count + 1, sizeof *d->rows);
	if (!whole || !d->rows)
		return err_new("out of memory");
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
	d->confidence = 1 - d->options.alpha / (double)(d->tests ? d->tests : 1);
	for (size_t i = 0; i <= d->count; i++)
		test(f, i ? &d->rows[i - 1] : &d->total);
	d->total.counts = NULL; /* they go */
	return NULL;
}

struct err *diff_make(const struct runs *runs, const struct counts *rows,
		      const struct diff_options *options, struct diff *out)
{
	struct differ f = {.runs = runs, .d = out};
	uint64_t *whole = calloc(runs->count + 1, sizeof *whole);
	*out = (struct diff){
		.options = *options,
		.metric = runs->metric,
		.unit = runs->unit,
		.has_replicates = options->old_runs > 1 || runs->count - options->old_runs > 1,
		.amounts = runs->amounts,
		.untestable = runs->amounts &&
			      (options->old_runs < 2 || runs->count - options->old_runs < 2),
	};
	struct err *e = set_scales(&f);
	if (!e && out->untestable && options->fail_above >= 0)
		e = err_new("--fail-above takes several runs on each side for %s, which counts no "
			    "samples",
			    runs->metric);
	if (!e)
		e = measure_all(&f, rows, whole);
	if (!e)
		qsort(out->rows, out->count, sizeof *out->rows,
		      options->shares ? compare_shares : compare_costs);
	free(whole);
	free(f.scales);
	if (e)
		diff_free(out);
	return e;
}

const char *diff_verdict(const struct diff *d, const struct diff_row *r)
{
	bool shares = d->options.shares;
	if (!r->tested)
		return r->large && d->untestable ? "untested" : "too few";
	if (!r->changed)
		return "noise";
	if (!r->old_samples)
		return "new";
	if (!r->new_samples)
		return "gone";
	bool more = shares ? r->new_share > r->old_share : r->new_cost > r->old_cost;
	if (shares || d->amounts || strcmp(d->unit, "ns") != 0)
		return more ? "more" : "less";
	return more ? "slower" : "faster";
}

void diff_free(struct diff *d)
{
	free(d->rows);
	*d = (struct diff){0};
}
