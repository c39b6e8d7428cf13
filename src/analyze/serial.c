/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/serial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/reasons.h"
#include "base/err.h"
#include "profile/profile.h"

bool serial_is_wanted(const char *name)
{
	const char *dot = strrchr(name, '.');
	return !strcmp(dot ? dot + 1 : name, SERIAL_NAME);
}

static bool is_running(const struct profile *p, const struct profile_span *s)
{
	return s->duration_us && !reason_is_of_waiting(p, s->metric, s->node);
}

/* ---- where spans begin and end ---- */

struct edge {
	uint64_t us;
	uint32_t span;
	bool end;
};

static int compare_edges(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;
	if (x->us != y->us)
		return x->us < y->us ? -1 : 1;
	return (x->span > y->span) -
	       (x->span < y->span); /* the order does not matter, but is the same always */
}

/* In order of time; malloc'ed. */
static struct err *find_edges(const struct profile *p, struct edge **out, size_t *count)
{
	struct edge *edges = reallocarray(NULL, p->span_count + 1, 2 * sizeof *edges);
	*count = 0;
	*out = edges;
	if (!edges)
		return err_new("out of memory");
	for (size_t i = 0; i < p->span_count; i++) {
		const struct profile_span *s = &p->spans[i];
		if (!is_running(p, s))
			continue;
		edges[(*count)++] = (struct edge){s->start_us, (uint32_t)i, false};
		edges[(*count)++] = (struct edge){s->start_us + s->duration_us, (uint32_t)i, true};
	}
	qsort(edges, *count, sizeof *edges, compare_edges);
	return NULL;
}

bool serial_is_telling(const struct profile *p)
{
	struct edge *edges;
	size_t count, running = 0, most = 0;
	struct err *e = find_edges(p, &edges, &count);
	uint64_t beside = 0, all = 0, last = 0;
	for (size_t i = 0; !e && i < count; i++) {
		all += running ? edges[i].us - last : 0;
		beside += running > 1 ? edges[i].us - last : 0;
		last = edges[i].us;
		running += edges[i].end ? (size_t)-1 : 1;
		most = running > most ? running : most;
	}
	free(edges);
	err_free(e);
	return most > 1 && beside * 20 > all; /* else it is as good as the time itself */
}

/* ---- the metric ---- */

static struct err *add_metric(struct profile *p, uint32_t of, uint32_t *metric)
{
	char name[128];
	snprintf(name, sizeof name, "%s.%s", p->metrics[of].name, SERIAL_NAME);
	return profile_add_metric(p,
				  &(struct profile_metric){.name = name,
							   .unit = "ns",
							   .period = 1,
							   .user_only = p->metrics[of].user_only,
							   .coverage = p->metrics[of].coverage},
				  metric);
}

/* `began`: for each span, how much serial time there had been when it began. */
static struct err *count(struct profile *p, const struct edge *edges, size_t edge_count,
			 double *began, uint32_t metric)
{
	double passed = 0; /* of serial time, of one of those that run, in microseconds */
	size_t running = 0;
	struct err *e = NULL;
	for (size_t i = 0; !e && i < edge_count; i++) {
		const struct edge *at = &edges[i];
		if (running)
			passed += (double)(at->us - edges[i - 1].us) / (double)running;
		if (!at->end) {
			began[at->span] = passed;
			running++;
			continue;
		}
		const struct profile_span *s = &p->spans[at->span];
		e = profile_count(p, s->node, s->thread, metric,
				  (uint64_t)((passed - began[at->span]) * 1000 + 0.5));
		running--;
	}
	return e;
}

struct err *serial_add(struct profile *p, uint32_t *metric)
{
	struct edge *edges = NULL;
	size_t edge_count = 0;
	double *began = calloc(p->span_count + 1, sizeof *began);
	struct err *e = began ? profile_settle(p) : err_new("out of memory");
	if (!e)
		e = find_edges(p, &edges, &edge_count);
	if (!e && !edge_count)
		e = err_new(
			"serial time is told by a time line of when threads ran: culprit record "
			"--timeline, with an event of CPU time first");
	if (!e)
		e = add_metric(p, p->spans[edges[0].span].metric, metric);
	if (!e)
		e = count(p, edges, edge_count, began, *metric);
	if (!e)
		e = profile_settle(p);
	free(edges);
	free(began);
	return e;
}
