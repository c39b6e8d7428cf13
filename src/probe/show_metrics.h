/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What was measured of calls, and the slowest of them, as text and as JSON. show.c uses it. */
#include <stdint.h>

struct buf;
struct json;
struct modules;
struct probe_function;
struct probe_measure;
struct probe_metric;
struct probes;
struct profile;

/* Appends the title of a column, and what stands in it: the sum of times and events, the mean of other values. */
void metrics_show_title(const struct probe_metric *metric, struct buf *out);
void metrics_show_column(const struct probe_metric *metric, const struct probe_measure *measure,
			 struct buf *out);
/* Appends a table of all metrics by function. */
void metrics_show_table(const struct probes *probes, struct buf *out);
/* Appends the slowest calls of all functions. */
void metrics_show_slowest(const struct probes *probes, const struct profile *profile,
			  struct modules *modules, struct buf *out);

/* Writes a member for each metric into the object that is open; `measures`: one for each, or NULL. */
void metrics_show_json(const struct probes *probes, const struct probe_measure *measures,
		       struct json *out);
/* Writes "slowest" into the object that is open. */
void metrics_show_slowest_json(const struct probes *probes, const struct probe_function *function,
			       const struct profile *profile, struct modules *modules,
			       struct json *out);
