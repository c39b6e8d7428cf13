/* SPDX-License-Identifier: Apache-2.0 */
/*
 *       old       new    change  95% interval         share         verdict
 *    1.20 s    1.32 s    +10.0%  +7.2% … +12.9%   30.0% → 31.6%   slower   solve  mesh.cc:12  (app)
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "analyze/summary.h"
#include "base/buf.h"
#include "compare/diff.h"
#include "compare/runs.h"
#include "compare/text.h"

#define NUMBERS 77 /* columns before the names */

struct drawing {
	const struct diff *d;
	const struct runs *runs;
	const struct text_options *o;
	struct buf *out;
};

static const char *style(const struct drawing *d, const char *sequence)
{
	return d->o->colour ? sequence : "";
}

static double score(const struct diff *d, const struct diff_row *r, bool old)
{
	if (d->options.shares)
		return old ? r->old_share : r->new_share;
	return old ? r->old_cost : r->new_cost;
}

static const char *colour_of(const struct diff *d, const struct diff_row *r)
{
	if (!r->changed)
		return TEXT_DIM;
	return score(d, r, false) > score(d, r, true) ? TEXT_RED : TEXT_GREEN;
}

static void put_interval(const struct drawing *d, const struct diff_row *r)
{
	char change[TEXT_RATIO_MAX] = "", low[TEXT_RATIO_MAX], high[TEXT_RATIO_MAX], text[64] = "";
	double old = score(d->d, r, true), new = score(d->d, r, false);
	if (old > 0)
		text_ratio(change, new / old);
	if (r->tested)
		snprintf(text, sizeof text, "%s to %s", text_change(low, r->test.low),
			 text_change(high, r->test.high));
	buf_printf(d->out, " %8s  %-18s", change, text);
}

static void put_row(const struct drawing *d, const struct diff_row *r)
{
	char old[TEXT_COST_MAX], new[TEXT_COST_MAX];
	buf_puts(d->out, style(d, colour_of(d->d, r)));
	buf_printf(d->out, "%9s %9s", text_cost(old, r->old_cost, d->d->unit),
		   text_cost(new, r->new_cost, d->d->unit));
	put_interval(d, r);
	buf_printf(d->out, " %6.2f%% %6.2f%%  %-9s", 100 * r->old_share, 100 * r->new_share,
		   diff_verdict(d->d, r));
	buf_puts(d->out, r->changed ? style(d, TEXT_PLAIN) : "");
	if (r->row)
		text_row(r->row, d->o, d->o->width > NUMBERS ? d->o->width - NUMBERS : 0, d->out);
	else
		buf_puts(d->out, "(all)");
	buf_puts(d->out, r->too_slow ? style(d, TEXT_RED) : "");
	buf_puts(d->out, r->too_slow ? "  TOO SLOW" : "");
	buf_printf(d->out, "%s\n", style(d, TEXT_PLAIN));
}

static void put_side(const struct drawing *d, const char *name, size_t from, size_t to)
{
	char count[SUMMARY_COUNT_MAX], cost[TEXT_COST_MAX];
	uint64_t samples = 0;
	for (size_t i = from; i < to; i++)
		samples += d->runs->all[i].samples;
	buf_printf(d->out, "%s: ", name);
	text_harmless(d->runs->all[from].path, d->out);
	if (to - from > 1)
		buf_printf(d->out, " and %zu more", to - from - 1);
	if (d->d->amounts)
		buf_printf(d->out, ", %s of ",
			   text_cost(cost, (double)samples / (double)(to - from), d->d->unit));
	else
		buf_printf(d->out, ", %s samples of ", summary_count(count, samples));
	text_harmless(d->d->metric, d->out);
	buf_puts(d->out, to - from > 1 ? "; a run on average is shown\n" : "\n");
}

static void put_footer(const struct drawing *d, uint64_t more)
{
	const struct diff *x = d->d;
	const struct diff_options *o = &x->options;
	buf_printf(d->out, "\n%s", style(d, TEXT_DIM));
	if (more)
		buf_printf(d->out, "%" PRIu64 " more rows: --limit shows more\n", more);
	if (x->untestable) {
		buf_puts(d->out, "no verdicts: ");
		text_harmless(x->metric, d->out);
		buf_puts(d->out,
			 " counts no samples, so it takes several runs on each side to tell "
			 "a change from chance\n");
	} else {
		buf_printf(d->out,
			   "%zu of %zu row%s changed; the chance that any interval is wrong is at "
			   "most %g%%\n",
			   x->changed, x->count - x->untested,
			   x->count - x->untested == 1 ? "" : "s", 100 * o->alpha);
	}
	if (x->untested)
		buf_printf(d->out,
			   "%zu %s with less than %g%%, or with few samples, %s not "
			   "tested (--min)\n",
			   x->untested, x->untested == 1 ? "row" : "rows", 100 * o->min,
			   x->untested == 1 ? "was" : "were");
	if (!x->has_replicates && !x->amounts)
		buf_printf(d->out,
			   "one run on each side: it is assumed that runs differ by %g%% "
			   "(--noise); several runs would show it\n",
			   100 * o->noise);
	buf_puts(d->out, style(d, TEXT_PLAIN));
	if (o->fail_above >= 0)
		buf_printf(d->out, "%s%s by more than %g%%%s\n",
			   style(d, x->too_slow ? TEXT_RED : TEXT_GREEN),
			   x->too_slow ? "slower" : "nothing is certainly slower",
			   100 * o->fail_above, style(d, TEXT_PLAIN));
}

void diff_text(const struct diff *x, const struct runs *runs, const struct text_options *o,
	       struct buf *out)
{
	struct drawing d = {.d = x, .runs = runs, .o = o, .out = out};
	uint64_t shown = 0, more = 0;
	put_side(&d, "old", 0, x->options.old_runs);
	put_side(&d, "new", x->options.old_runs, runs->count);
	buf_printf(out, "\n%s%9s %9s %8s  %-18s %7s %7s%s\n", style(&d, TEXT_DIM), "old", "new",
		   x->options.shares ? "of share" : "change", "95% interval", "share", "now",
		   style(&d, TEXT_PLAIN));
	if (!x->options.shares)
		put_row(&d, &x->total);
	for (size_t i = 0; i < x->count; i++) {
		if (!x->rows[i].large && x->options.min > 0)
			continue;
		if (o->limit && shown >= o->limit) {
			more++;
			continue;
		}
		shown++;
		put_row(&d, &x->rows[i]);
	}
	put_footer(&d, more);
}
