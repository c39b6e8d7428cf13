/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "analyze/summary.h"
#include "base/buf.h"
#include "base/json.h"
#include "compare/counts.h"
#include "compare/runs.h"
#include "compare/stats.h"
#include "compare/text.h"

#define NUMBERS 75       /* columns before the names */
#define SETS_IN_A_LINE 4 /* totals of runs */
#define SETS_MAX 64      /* more are not listed */

struct drawing {
	const struct text_options *o;
	struct buf *out;
};

static const char *style(const struct drawing *d, const char *sequence)
{
	return d->o->colour ? sequence : "";
}

static void put_row(const struct drawing *d, const struct stats_row *r)
{
	const struct moments *m = &r->moments;
	buf_printf(d->out, "%s%7.2f%%%s %12.0f %6.2f%% %10.1f %10.1f %9.0f %9.0f  ",
		   style(d, r->varies ? TEXT_RED : ""), 100 * r->range, style(d, TEXT_PLAIN),
		   m->sum, 100 * r->share, m->mean, m->deviation, m->min, m->max);
	if (r->row)
		text_row(r->row, d->o, d->o->width > NUMBERS ? d->o->width - NUMBERS : 0, d->out);
	else
		buf_puts(d->out, "(all)");
	buf_puts(d->out, "\n");
}

static void put_sets(const struct drawing *d, const struct runs *runs)
{
	char count[SUMMARY_COUNT_MAX];
	size_t shown = runs->count > SETS_MAX ? 0 : runs->count;
	buf_puts(d->out, "samples of ");
	text_harmless(runs->metric, d->out);
	buf_printf(d->out, " in %zu runs\n", runs->count);
	for (size_t i = 0; i < shown; i++) {
		buf_puts(d->out, i % SETS_IN_A_LINE ? "   " : "  ");
		text_harmless(runs->all[i].path, d->out);
		buf_printf(d->out, ": %s%s", summary_count(count, runs->all[i].samples),
			   (i + 1) % SETS_IN_A_LINE && i + 1 < shown ? "" : "\n");
	}
}

void stats_text(const struct stats *s, const struct runs *runs, const struct text_options *o,
		struct buf *out)
{
	struct drawing d = {.o = o, .out = out};
	size_t shown = s->count;
	if (o->limit && shown > o->limit)
		shown = o->limit;
	put_sets(&d, runs);
	buf_printf(out, "\n%s%8s %12s %7s %10s %10s %9s %9s%s\n", style(&d, TEXT_DIM), "range",
		   "sum", "sum%", "mean", "std-dev", "min", "max", style(&d, TEXT_PLAIN));
	put_row(&d, &s->total);
	for (size_t i = 0; i < shown; i++) {
		if (!s->rows[i].varies && (!i || s->rows[i - 1].varies))
			buf_printf(out, "%sno more than sampling explains:%s\n",
				   style(&d, TEXT_DIM), style(&d, TEXT_PLAIN));
		put_row(&d, &s->rows[i]);
	}
	if (shown < s->count || s->hidden)
		buf_puts(out, "\n");
	buf_puts(out, style(&d, TEXT_DIM));
	if (shown < s->count)
		buf_printf(out, "%zu more rows: --limit shows more\n", s->count - shown);
	if (s->hidden)
		buf_printf(out, "%zu row%s with fewer samples: --min 0 shows all\n", s->hidden,
			   s->hidden == 1 ? "" : "s");
	buf_puts(out, style(&d, TEXT_PLAIN));
}

static void put_json_row(struct json *j, const struct stats_row *r, size_t runs)
{
	json_begin_object(j);
	if (r->row)
		text_row_json(r->row, j);
	json_put_double(j, "range", r->range);
	json_put_double(j, "sum", r->moments.sum);
	json_put_double(j, "share", r->share);
	json_put_double(j, "mean", r->moments.mean);
	json_put_double(j, "deviation", r->moments.deviation);
	json_put_double(j, "sampling_deviation", r->expected);
	json_put_double(j, "p", r->p);
	json_put_bool(j, "varies", r->varies);
	json_put_double(j, "min", r->moments.min);
	json_put_double(j, "max", r->moments.max);
	json_key(j, "samples");
	json_begin_array(j);
	for (size_t i = 0; i < runs; i++)
		json_u64(j, r->counts[i]);
	json_end_array(j);
	json_end_object(j);
}

void stats_json(const struct stats *s, const struct runs *runs, uint64_t limit, struct json *j)
{
	json_key(j, "metric");
	json_string(j, runs->metric);
	json_key(j, "unit");
	json_string(j, runs->unit);
	json_key(j, "runs");
	json_begin_array(j);
	for (size_t i = 0; i < runs->count; i++) {
		json_begin_object(j);
		json_key(j, "path");
		json_string(j, runs->all[i].path);
		json_key(j, "samples");
		json_u64(j, runs->all[i].samples);
		json_key(j, "period");
		json_u64(j, runs->all[i].period);
		json_put_double(j, "counted", coverage_share(runs->all[i].coverage));
		json_end_object(j);
	}
	json_end_array(j);
	json_key(j, "total");
	put_json_row(j, &s->total, runs->count);
	json_key(j, "rows");
	json_begin_array(j);
	for (size_t i = 0; i < s->count && (!limit || i < limit); i++)
		put_json_row(j, &s->rows[i], runs->count);
	json_end_array(j);
}
