/* SPDX-License-Identifier: Apache-2.0 */
#include "export/moments.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/err.h"
#include "export/job.h"
#include "profile/profile.h"

#define SINGLE_MAX (1u << 20) /* samples of a thread that are listed one by one */

struct part { /* of the time line: that of a thread and metric */
	const struct profile_span *spans;
	size_t count;
	uint32_t metric;
	uint64_t samples;
};

static struct part find_part(const struct profile *p, uint32_t thread, uint32_t metric)
{
	size_t found = FIRST_NOT(i, p->span_count, p->spans[i].thread < thread);
	struct part part = {p->span_count ? p->spans + found : NULL, 0, metric, 0};
	for (; found < p->span_count && p->spans[found].thread == thread; found++) {
		part.count++;
		part.samples += p->spans[found].metric == metric ? p->spans[found].samples : 0;
	}
	return part;
}

/* Whether the time line has as many samples in each context as were counted. */
static struct err *is_whole(const struct profile *p, const struct part *part, const size_t *values,
			    size_t value_count, bool *out)
{
	uint64_t *left = part->count ? calloc(p->node_count, sizeof *left) : NULL;
	*out = left;
	if (!left)
		return part->count ? err_new("out of memory") : NULL;
	for (size_t i = 0; i < value_count; i++)
		left[p->values[values[i]].node] += p->values[values[i]].count;
	for (size_t i = 0; i < part->count; i++)
		if (part->spans[i].metric == part->metric)
			left[part->spans[i].node] -= part->spans[i].samples;
	for (size_t i = 0; i < value_count; i++)
		*out &= !left[p->values[values[i]].node];
	for (size_t i = 0; i < part->count; i++)
		*out &= !left[part->spans[i].node];
	free(left);
	return NULL;
}

/* Spans as their single samples, unless those are too many. */
static void fill_from_line(const struct part *part, struct moments *out)
{
	bool single = part->samples <= SINGLE_MAX;
	for (size_t i = 0; i < part->count; i++) {
		const struct profile_span *s = &part->spans[i];
		uint32_t parts = s->metric != part->metric ? 0 : single ? s->samples : 1;
		for (uint32_t k = 0; k < parts; k++)
			out->all[out->count++] = (struct moment){
				s->node, single ? 1 : s->samples,
				((double)s->start_us + (double)s->duration_us * k / parts) / 1000};
	}
}

static void fill_in_turn(const struct profile *p, uint32_t thread, const size_t *values,
			 size_t value_count, double step_ms, struct moments *out)
{
	double ms = (double)p->threads[thread].start_ns / 1e6;
	for (size_t i = 0; i < value_count; i++) {
		const struct profile_value *v = &p->values[values[i]];
		out->all[out->count++] = (struct moment){v->node, v->count, ms};
		ms += (double)v->count * step_ms;
	}
}

struct err *moments_make(const struct job *j, uint32_t thread, const size_t *values,
			 size_t value_count, double step_ms, struct moments *out)
{
	struct part part = find_part(j->p, thread, j->metric_count ? j->metrics[0] : 0);
	size_t room = part.samples <= SINGLE_MAX ? (size_t)part.samples : part.count;
	bool whole;
	*out = (struct moments){0};
	struct err *e = is_whole(j->p, &part, values, value_count, &whole);
	if (!e)
		out->all = calloc((whole ? room : value_count) + 1, sizeof *out->all);
	if (!e && !out->all)
		e = err_new("out of memory");
	if (!e && whole)
		fill_from_line(&part, out);
	else if (!e)
		fill_in_turn(j->p, thread, values, value_count, step_ms, out);
	return e;
}

void moments_free(struct moments *moments)
{
	free(moments->all);
	*moments = (struct moments){0};
}
