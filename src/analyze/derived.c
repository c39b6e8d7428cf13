/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/derived.h"

#include <stdio.h>
#include <string.h>

#include "analyze/tree.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/term.h"
#include "profile/profile.h"

/* Names of metrics stand without ":u". */
static const struct row {
	const char *name, *title, *unit;
	const char *over, *under, *beside;
} table[] = {
	{"alloc.size", "each", "bytes", "alloc.bytes", "alloc.calls", "alloc.bytes"},
	{"alloc.churn", "temp.", "share", "alloc.temporary", "alloc.calls", "alloc.calls"},
	{"alloc.age", "each", "ns", "alloc.lifetime", "alloc.freed", "alloc.lifetime"},
	{"alloc.slack", "slack", "share", "alloc.wasted", "alloc.bytes", "alloc.wasted"},
	{"io.size", "per call", "bytes", "io.bytes", "io.calls", "io.bytes"},
	{"io.time", "per call", "ns", "io.ns", "io.calls", "io.ns"},
	{"lock.wait", "per wait", "ns", "lock.ns", "lock", "lock.ns"},
	{"mpi.time", "per call", "ns", "mpi.ns", "mpi", "mpi.ns"},
	{"probe.time", "per call", "ns", "probe.ns", "probe", "probe.ns"},
	{"calls.time", "per call", "ns", "cpu-clock", "calls", "cpu-clock"},
	{"calls.time", "per call", "ns", "task-clock", "calls", "task-clock"},
	{"calls.cycles", "per call", "cycles", "cycles", "calls", "cycles"},
	{"ipc", "ipc", "ratio", "instructions", "cycles", "cycles"},
	{"cache-miss-rate", "missed", "share", "cache-misses", "cache-references", "cache-misses"},
	{"branch-miss-rate", "missed", "share", "branch-misses", "branches", "branch-misses"},
	{"frontend-stalls", "stalled", "share", "stalled-cycles-frontend", "cycles",
	 "stalled-cycles-frontend"},
	{"backend-stalls", "stalled", "share", "stalled-cycles-backend", "cycles",
	 "stalled-cycles-backend"},
};
_Static_assert(sizeof table / sizeof *table <= DERIVED_MAX, "there is room for all");

static bool find_metric(const struct profile *p, const char *name, uint32_t *out)
{
	for (uint32_t i = 0; i < p->metric_count; i++) {
		size_t length = strcspn(p->metrics[i].name, ":");
		if (length == strlen(name) && !memcmp(p->metrics[i].name, name, length)) {
			*out = i;
			return true;
		}
	}
	return false;
}

static bool fill(const struct profile *p, const struct row *row, struct derived *out)
{
	*out = (struct derived){.name = row->name,
				.title = row->title,
				.unit = row->unit,
				.of_calls = !strcmp(row->under, "calls")};
	return find_metric(p, row->over, &out->over) && find_metric(p, row->under, &out->under) &&
	       find_metric(p, row->beside, &out->beside);
}

size_t derived_find(const struct profile *p, struct derived out[DERIVED_MAX])
{
	size_t count = 0;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		count += fill(p, &table[i], &out[count]);
	return count;
}

bool derived_is_known(const char *name)
{
	size_t i = 0;
	while (i < sizeof table / sizeof *table && strcmp(table[i].name, name))
		i++;
	return i < sizeof table / sizeof *table;
}

bool derived_choose(const struct profile *p, const char *name, uint32_t metric, struct derived *out)
{
	struct derived all[DERIVED_MAX];
	size_t count = derived_find(p, all);
	for (size_t i = 0; i < count; i++) {
		if (name ? strcmp(all[i].name, name) : all[i].beside != metric)
			continue;
		*out = all[i];
		return true;
	}
	return false;
}

bool derived_value(const struct derived *d, const struct profile *p, const struct tree *t,
		   uint32_t node, bool self, double *out)
{
	bool all = d->of_calls || !self;
	double over = (double)(all ? tree_total : tree_self)(t, node, d->over);
	double under = (double)(d->of_calls || self ? tree_self : tree_total)(t, node, d->under);
	if (under <= 0)
		return false;
	*out = over * (double)profile_period(p, d->over) /
	       (under * (double)profile_period(p, d->under));
	return true;
}

void derived_print(const struct derived *d, double value, struct buf *out)
{
	char text[TERM_UNIT_MAX];
	if (!strcmp(d->unit, "bytes"))
		buf_puts(out, term_size(text, (uint64_t)(value + 0.5)));
	else if (!strcmp(d->unit, "ns"))
		buf_puts(out, term_time(text, value / 1e9));
	else if (!strcmp(d->unit, "share"))
		buf_printf(out, "%.1f%%", value * 100);
	else
		buf_printf(out, value < 100 ? "%.2f" : "%.0f", value);
}

void derived_json(const struct derived *all, size_t count, const struct profile *p, struct json *j)
{
	if (!count)
		return;
	json_key(j, "derived");
	json_begin_array(j);
	for (size_t i = 0; i < count; i++) {
		json_begin_object(j);
		json_key(j, "name");
		json_string(j, all[i].name);
		json_key(j, "unit");
		json_string(j, all[i].unit);
		json_key(j, "over");
		json_string(j, p->metrics[all[i].over].name);
		json_key(j, "under");
		json_string(j, p->metrics[all[i].under].name);
		json_end_object(j);
	}
	json_end_array(j);
}

void derived_json_values(const struct derived *all, size_t count, const struct profile *p,
			 const struct tree *t, uint32_t node, struct json *j)
{
	double value;
	if (!count)
		return;
	json_key(j, "derived");
	json_begin_array(j);
	for (size_t i = 0; i < count; i++)
		if (derived_value(&all[i], p, t, node, false, &value))
			json_double(j, value);
		else
			json_null(j);
	json_end_array(j);
}
