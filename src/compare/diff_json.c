/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/json.h"
#include "compare/diff.h"
#include "compare/runs.h"
#include "compare/text.h"

static void put_runs(struct json *j, const char *key, const struct runs *runs, size_t from,
		     size_t to)
{
	json_key(j, key);
	json_begin_array(j);
	for (size_t i = from; i < to; i++) {
		json_begin_object(j);
		json_put_string(j, "path", runs->all[i].path);
		json_put_u64(j, "samples", runs->all[i].samples);
		json_put_u64(j, "period", runs->all[i].period);
		json_put_double(j, "counted", coverage_share(runs->all[i].coverage));
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_test(struct json *j, const struct diff *d)
{
	json_key(j, "test");
	json_begin_object(j);
	json_put_string(j, "compared", d->options.shares ? "share" : "cost");
	json_put_string(j, "statistic",
			d->untestable       ? "none"
			: d->has_replicates ? "welch"
					    : "poisson");
	json_put_string(j, "correction", "bonferroni");
	json_put_double(j, "alpha", d->options.alpha);
	json_put_double(j, "confidence", d->confidence);
	json_put_double(j, "noise", d->has_replicates || d->amounts ? NAN : d->options.noise);
	json_put_double(j, "min", d->options.min);
	json_put_u64(j, "tests", d->tests);
	json_end_object(j);
}

static void put_side(struct json *j, const char *key, uint64_t samples, double cost, double share)
{
	json_key(j, key);
	json_begin_object(j);
	json_put_u64(j, "samples", samples);
	json_put_double(j, "cost", cost);
	json_put_double(j, "share", share);
	json_end_object(j);
}

static void put_change(struct json *j, const struct diff *d, const struct diff_row *r)
{
	double old = d->options.shares ? r->old_share : r->old_cost,
	       new = d->options.shares ? r->new_share : r->new_cost;
	json_put_double(j, "difference", r->new_cost - r->old_cost);
	json_put_double(j, "share_difference", r->new_share - r->old_share);
	json_put_double(j, "ratio", old > 0 ? new / old : NAN);
	json_key(j, "interval");
	json_begin_array(j);
	json_double(j, r->tested ? r->test.low : NAN);
	json_double(j, r->tested ? r->test.high : NAN);
	json_end_array(j);
	json_put_double(j, "error", r->tested ? r->test.error : NAN);
	json_put_double(j, "p", r->tested ? r->test.p : NAN);
	json_put_double(j, "p_corrected", r->p >= 0 ? r->p : NAN);
	json_put_bool(j, "tested", r->tested);
	json_put_bool(j, "changed", r->changed);
	json_put_string(j, "verdict", diff_verdict(d, r));
	if (d->options.fail_above >= 0)
		json_put_bool(j, "too_slow", r->too_slow);
}

static void put_row(struct json *j, const struct diff *d, const struct diff_row *r)
{
	json_begin_object(j);
	if (r->row)
		text_row_json(r->row, j);
	put_side(j, "old", r->old_samples, r->old_cost, r->old_share);
	put_side(j, "new", r->new_samples, r->new_cost, r->new_share);
	put_change(j, d, r);
	json_end_object(j);
}

void diff_json(const struct diff *d, const struct runs *runs, uint64_t limit, struct json *j)
{
	json_put_string(j, "metric", d->metric);
	json_put_string(j, "unit", d->unit);
	put_runs(j, "old", runs, 0, d->options.old_runs);
	put_runs(j, "new", runs, d->options.old_runs, runs->count);
	put_test(j, d);
	if (d->options.fail_above >= 0) {
		json_put_double(j, "fail_above", 100 * d->options.fail_above);
		json_put_bool(j, "too_slow", d->too_slow);
	}
	json_put_u64(j, "changed", d->changed);
	json_key(j, "total");
	put_row(j, d, &d->total);
	json_key(j, "rows");
	json_begin_array(j);
	for (size_t i = 0; i < d->count && (!limit || i < limit); i++)
		put_row(j, d, &d->rows[i]);
	json_end_array(j);
}
