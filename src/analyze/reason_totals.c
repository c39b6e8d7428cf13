/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/reason_totals.h"

#include <stdlib.h>

#include "analyze/attribution.h"
#include "analyze/reasons.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "profile/profile.h"

#define LEAST_SHOWN 0.5 /* per cent */
#define MOST_SHOWN 8u   /* reasons on a line */

struct err *reason_totals_make(const struct attribution *a, const bool *threads,
			       struct reason_totals *out)
{
	const struct profile *p = a->profile;
	*out = (struct reason_totals){.metric_count = (uint32_t)p->metric_count, .any = a->reasons};
	out->counts = calloc(REASON_COUNT * (p->metric_count + 1), sizeof *out->counts);
	if (!out->counts)
		return err_new("out of memory");
	for (size_t i = 0; i < p->value_count; i++) {
		const struct profile_value *v = &p->values[i];
		if (!a->dropped[v->node] && (!threads || threads[v->thread]))
			out->counts[reason_of(p, a->reasons, v) * p->metric_count + v->metric] +=
				v->count;
	}
	return NULL;
}

void reason_totals_free(struct reason_totals *t)
{
	free(t->counts);
	*t = (struct reason_totals){0};
}

struct part {
	enum reason reason;
	double share; /* per cent */
};

static int compare_parts(const void *a, const void *b)
{
	const struct part *x = a, *y = b;
	if (x->share != y->share)
		return x->share < y->share ? 1 : -1;
	return x->reason < y->reason ? -1 : x->reason > y->reason;
}

/* The reasons of a metric, the largest first. */
static size_t find_parts(const struct reason_totals *t, uint32_t metric, struct part *out)
{
	uint64_t sum = 0;
	size_t count = 0;
	for (size_t i = 0; i < REASON_COUNT; i++)
		sum += t->counts[i * t->metric_count + metric];
	for (size_t i = 0; i < REASON_COUNT; i++) {
		uint64_t samples = t->counts[i * t->metric_count + metric];
		if (samples)
			out[count++] = (struct part){(enum reason)i,
						     100 * (double)samples / (double)sum};
	}
	qsort(out, count, sizeof *out, compare_parts);
	return count;
}

void reason_totals_print(const struct reason_totals *t, const struct profile *p, uint32_t metric,
			 struct buf *out)
{
	struct part parts[REASON_COUNT];
	if (metric >= t->metric_count || !reason_is_told(&p->metrics[metric]))
		return;
	size_t count = find_parts(t, metric, parts), shown = 0, more = 0;
	double rest = 0;
	const char *before = "waited for: ";
	for (size_t i = 0; i < count; i++)
		if (parts[i].reason == REASON_ON_CPU)
			buf_printf(out, "on a CPU: %.0f%%, ", parts[i].share);
	for (size_t i = 0; i < count; i++) {
		if (parts[i].reason == REASON_ON_CPU)
			continue;
		if (parts[i].share < LEAST_SHOWN || shown == MOST_SHOWN) {
			rest += parts[i].share;
			more++;
			continue;
		}
		shown++;
		buf_printf(out, "%s%s %.0f%%", before, reason_name(parts[i].reason),
			   parts[i].share);
		before = ", ";
	}
	if (more)
		buf_printf(out, "%s%zu more %.*f%%", before, more, rest < 1 ? 1 : 0, rest);
	if (count)
		buf_puts(out, "\n");
}

void reason_totals_json(const struct reason_totals *t, struct json *j)
{
	if (!t->any)
		return;
	json_key(j, "reasons");
	json_begin_array(j);
	for (size_t i = 0; i < REASON_COUNT; i++) {
		const uint64_t *counts = t->counts + i * t->metric_count;
		uint64_t sum = 0;
		for (size_t m = 0; m < t->metric_count; m++)
			sum |= counts[m];
		if (!sum)
			continue;
		json_begin_object(j);
		json_put_string(j, "name", reason_name((enum reason)i));
		json_key(j, "total");
		json_begin_array(j);
		for (size_t m = 0; m < t->metric_count; m++)
			json_u64(j, counts[m]);
		json_end_array(j);
		json_end_object(j);
	}
	json_end_array(j);
}
