/* SPDX-License-Identifier: Apache-2.0 */
#include "export/moments.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "export/job.h"
#include "profile/profile.h"

#define SINGLE_MAX (1u << 20) /* samples of a thread that are listed one by one */

/* ---- values by thread ---- */

static bool is_wanted(const struct timing *t, const struct profile_value *v)
{
	return v->metric == t->metric && job_has(t->job, v);
}

struct err *moments_open(const struct job *j, uint32_t metric, struct timing *t)
{
	const struct profile *p = j->p;
	*t = (struct timing){.job = j, .metric = metric, .step_ms = 1};
	t->is_time = metric < p->metric_count && p->metrics[metric].period &&
		     !strcmp(p->metrics[metric].unit, "ns");
	if (t->is_time)
		t->step_ms = (double)profile_period(p, metric) / 1e6;
	t->first = calloc(p->thread_count + 2, sizeof *t->first);
	t->order = calloc(p->value_count + 1, sizeof *t->order);
	if (!t->first || !t->order)
		return err_new("out of memory");
	for (size_t i = 0; i < p->value_count; i++)
		t->first[p->values[i].thread + 2] += is_wanted(t, &p->values[i]);
	for (size_t i = 2; i < p->thread_count + 2; i++)
		t->first[i] += t->first[i - 1];
	for (size_t i = 0; i < p->value_count; i++)
		if (is_wanted(t, &p->values[i]))
			t->order[t->first[p->values[i].thread + 1]++] = i;
	return NULL;
}

void moments_close(struct timing *t)
{
	free(t->order);
	free(t->first);
	*t = (struct timing){0};
}

bool moments_any(const struct timing *t, uint32_t thread)
{
	return t->first[thread] < t->first[thread + 1];
}

/* ---- one thread ---- */

struct part { /* of the time line: that of a thread */
	const struct timing *timing;
	const struct profile_span *spans;
	size_t count, used; /* used: those that are exported */
	uint64_t samples;
	const size_t *values; /* of the thread */
	size_t value_count;
};

static bool is_in(const struct part *part, const struct profile_span *s)
{
	return is_wanted(
		part->timing,
		&(struct profile_value){.thread = s->thread, .node = s->node, .metric = s->metric});
}

static struct part find_part(const struct timing *t, uint32_t thread)
{
	const struct profile *p = t->job->p;
	size_t found = FIRST_NOT(i, p->span_count, p->spans[i].thread < thread);
	struct part part = {.timing = t,
			    .spans = p->span_count ? p->spans + found : NULL,
			    .values = t->order + t->first[thread],
			    .value_count = t->first[thread + 1] - t->first[thread]};
	for (; found < p->span_count && p->spans[found].thread == thread; found++) {
		bool in = is_in(&part, &p->spans[found]);
		part.count++;
		part.used += in;
		part.samples += in ? p->spans[found].samples : 0;
	}
	return part;
}

/* Whether the time line has as many samples in each context as were counted. */
static struct err *is_whole(const struct part *part, bool *out)
{
	const struct profile *p = part->timing->job->p;
	uint64_t *left = part->used ? calloc(p->node_count, sizeof *left) : NULL;
	*out = left;
	if (!left)
		return part->used ? err_new("out of memory") : NULL;
	for (size_t i = 0; i < part->value_count; i++)
		left[p->values[part->values[i]].node] += p->values[part->values[i]].count;
	for (size_t i = 0; i < part->count; i++)
		if (is_in(part, &part->spans[i]))
			left[part->spans[i].node] -= part->spans[i].samples;
	for (size_t i = 0; i < part->value_count; i++)
		*out &= !left[p->values[part->values[i]].node];
	for (size_t i = 0; i < part->count; i++)
		*out &= !left[part->spans[i].node];
	free(left);
	return NULL;
}

/* Spans as their single samples, unless those are too many. */
static void fill_from_line(const struct part *part, struct moments *out)
{
	bool single = part->samples <= SINGLE_MAX;
	out->timed = true;
	for (size_t i = 0; i < part->count; i++) {
		const struct profile_span *s = &part->spans[i];
		uint32_t parts = !is_in(part, s) ? 0 : single ? s->samples : 1;
		double length_ms = parts ? (double)s->duration_us / 1000 / parts : 0;
		for (uint32_t k = 0; k < parts; k++)
			out->all[out->count++] = (struct moment){
				s->node, single ? 1 : s->samples,
				(double)s->start_us / 1000 + length_ms * k, length_ms};
	}
}

static void fill_in_turn(const struct part *part, uint32_t thread, struct moments *out)
{
	const struct profile *p = part->timing->job->p;
	double ms = (double)p->threads[thread].start_ns / 1e6;
	for (size_t i = 0; i < part->value_count; i++) {
		const struct profile_value *v = &p->values[part->values[i]];
		double length_ms = (double)v->count * part->timing->step_ms;
		out->all[out->count++] = (struct moment){v->node, v->count, ms, length_ms};
		ms += length_ms;
	}
}

struct err *moments_make(const struct timing *t, uint32_t thread, struct moments *out)
{
	struct part part = find_part(t, thread);
	size_t room = part.samples <= SINGLE_MAX ? (size_t)part.samples : part.used;
	bool whole;
	*out = (struct moments){0};
	struct err *e = is_whole(&part, &whole);
	if (!e)
		out->all = calloc((whole ? room : part.value_count) + 1, sizeof *out->all);
	if (!e && !out->all)
		e = err_new("out of memory");
	if (!e && whole)
		fill_from_line(&part, out);
	else if (!e)
		fill_in_turn(&part, thread, out);
	return e;
}

void moments_free(struct moments *moments)
{
	free(moments->all);
	*moments = (struct moments){0};
}
