/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How much of the samples each reason to wait has (reasons.h). */
#include <stdbool.h>
#include <stdint.h>

struct attribution;
struct buf;
struct err;
struct json;
struct profile;

struct reason_totals {
	uint64_t *counts; /* [reason * metric_count + metric] */
	uint32_t metric_count;
	bool any; /* one of the metrics tells of waiting */
};
/* `threads`: which count; NULL: all. Paths that focus and ignore leave out do not count. */
struct err *reason_totals_make(const struct attribution *attribution, const bool *threads,
			       struct reason_totals *out);
void reason_totals_free(struct reason_totals *totals);

/* Appends "waited for: lock 61%, sleep 20%, pipe 12%" with a line end, if the metric tells of waiting and has
   samples. */
void reason_totals_print(const struct reason_totals *totals, const struct profile *profile,
			 uint32_t metric, struct buf *out);
/* The member "reasons" of the JSON object that is open: [{"name","total":[by metric]}]; nothing if no metric tells
   of waiting. */
void reason_totals_json(const struct reason_totals *totals, struct json *out);
