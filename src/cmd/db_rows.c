/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/db_rows.h"

#include "base/err.h"
#include "base/json.h"

struct err *db_nothing(const char *file, const struct read_samples *x)
{
	if (!x->spans)
		return err_new("%s has nothing in that time: culprit db list shows what there is",
			       file);
	return x->count_count ? NULL : err_new("%s has no such samples in that time", file);
}

void db_head_json(const char *file, const struct read_samples *x, const struct read_sums *rows,
		  struct json *j)
{
	json_begin_object(j);
	json_put_u64(j, "culprit", 1);
	json_put_string(j, "database", file);
	json_put_double(j, "start", (double)x->from_ms / 1000);
	json_put_double(j, "end", (double)x->to_ms / 1000);
	json_put_u64(j, "spans", x->spans);
	json_key(j, "events");
	json_begin_array(j);
	for (size_t i = 0; i < x->event_count; i++) {
		json_begin_object(j);
		json_put_string(j, "name", x->events[i].name);
		json_put_string(j, "unit", x->events[i].unit);
		json_put_u64(j, "period", coverage_period(x->coverage[i], x->events[i].period));
		json_put_double(j, "counted", coverage_share(x->coverage[i]));
		json_put_u64(j, "samples", rows->totals[i]);
		json_end_object(j);
	}
	json_end_array(j);
	db_losses_json(x->losses, x->loss_count, j);
}

void db_samples_json(const struct read_samples *x, const struct read_sum *row, struct json *j)
{
	json_key(j, "samples");
	json_begin_array(j);
	for (size_t i = 0; i < x->event_count; i++)
		json_u64(j, row->counts[i]);
	json_end_array(j);
}
