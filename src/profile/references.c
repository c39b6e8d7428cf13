/* SPDX-License-Identifier: Apache-2.0 */
/* After decode.c: references that hold, whatever is missing. */
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/sum.h"
#include "profile/contexts.h"
#include "profile/decode.h"
#include "profile/own.h"
#include "profile/sampled.h"

static int compare_numbers(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* In order, each once. */
static void order_missing(struct index_map *m)
{
	size_t kept = 0;
	if (!m->stand_in_count)
		return;
	qsort(m->stand_ins, m->stand_in_count, sizeof *m->stand_ins, compare_numbers);
	for (size_t i = 0; i < m->stand_in_count; i++)
		if (!kept || m->stand_ins[kept - 1] != m->stand_ins[i])
			m->stand_ins[kept++] = m->stand_ins[i];
	m->stand_in_count = kept;
}

/* Notes that something refers to a row which is not there. Most are referred to again and again:
   the list grows only where they really are many. */
static void miss(struct decoder *d, struct index_map *m, uint32_t old)
{
	uint32_t *moved;
	size_t filled;
	if (m->stand_in_count && m->stand_ins[m->stand_in_count - 1] == old)
		return;
	if (m->stand_in_count == m->stand_in_room) {
		order_missing(m);
		filled = m->stand_in_count > m->stand_in_room / 2 ? m->stand_in_room : 0;
		moved = own_grow(m->stand_ins, &m->stand_in_room, filled, sizeof *moved);
		if (!moved) {
			d->error = err_new("out of memory");
			return;
		}
		m->stand_ins = moved;
	}
	m->stand_ins[m->stand_in_count++] = old;
}

static bool is_missing(const struct index_map *m, uint32_t old)
{
	const struct index_map known = {.old = m->old, .count = m->count};
	return map_find(&known, old) == INDEX_NONE;
}

static void refer(struct decoder *d, struct index_map *m, uint32_t old)
{
	if (!d->error && is_missing(m, old))
		miss(d, m, old);
}

/* Now all are known that are missing: so many get a stand-in that the table stays within its
   limit. */
static void limit_missing(struct decoder *d, struct index_map *m, unsigned type, size_t limit)
{
	if (!m->stand_in_count)
		return;
	order_missing(m);
	if (m->stand_in_count > limit - m->count)
		m->stand_in_count = limit - m->count;
	decode_complain(d, type, "missing");
}

static void add_modules(struct decoder *d)
{
	const struct profile_module lost = {.kind = PROFILE_NONE, .path = PROFILE_LOST_NAME};
	uint32_t index;
	for (size_t i = 1; i < d->p->node_count; i++)
		refer(d, &d->modules, d->p->nodes[i].module);
	for (size_t i = 0; i < d->p->edge_count; i++) {
		refer(d, &d->modules, d->p->edges[i].begin_module);
		refer(d, &d->modules, d->p->edges[i].module);
	}
	for (size_t i = 0; i < d->p->counted_count; i++)
		refer(d, &d->modules, d->p->counted[i].module);
	for (size_t i = 0; i < d->p->context_count; i++)
		refer(d, &d->modules, d->p->contexts[i].module);
	limit_missing(d, &d->modules, FORMAT_MODULES, PROFILE_TABLE_MAX);
	for (size_t i = 0; i < d->modules.stand_in_count && !d->error; i++)
		d->error = profile_add_module(d->p, &lost, &index);
}

static void add_metrics(struct decoder *d)
{
	struct profile_metric lost = {.unit = "samples", .period = 1};
	uint32_t index;
	char name[32];
	for (size_t i = 0; i < d->p->value_count; i++)
		refer(d, &d->metrics, d->p->values[i].metric);
	for (size_t i = 0; i < d->p->span_count; i++)
		refer(d, &d->metrics, d->p->spans[i].metric);
	for (size_t i = 0; i < d->p->wake_count; i++)
		refer(d, &d->metrics, d->p->wakes[i].metric);
	limit_missing(d, &d->metrics, FORMAT_METRICS, PROFILE_METRIC_MAX);
	for (size_t i = 0; i < d->metrics.stand_in_count && !d->error; i++) {
		snprintf(name, sizeof name, "(lost) %u", d->metrics.stand_ins[i]);
		lost.name = name;
		d->error = profile_add_metric(d->p, &lost, &index);
	}
}

/* Their process is one that no file has: nothing is known of it. */
static void add_threads(struct decoder *d)
{
	struct profile *p = d->p;
	const struct profile_thread lost = {
		.process = INDEX_NONE, .tid = -1, .name = PROFILE_LOST_NAME};
	for (size_t i = 0; i < p->value_count; i++)
		refer(d, &d->threads, p->values[i].thread);
	for (size_t i = 0; i < p->span_count; i++) {
		refer(d, &d->threads, p->spans[i].thread);
		if (p->spans[i].waker > PROFILE_WAKERS)
			refer(d, &d->threads, p->spans[i].waker - 1 - PROFILE_WAKERS);
	}
	for (size_t i = 0; i < p->wake_count; i++) {
		refer(d, &d->threads, p->wakes[i].thread);
		if (p->wakes[i].waker >= PROFILE_WAKERS)
			refer(d, &d->threads, p->wakes[i].waker - PROFILE_WAKERS);
	}
	limit_missing(d, &d->threads, FORMAT_THREADS, PROFILE_TABLE_MAX);
	for (size_t i = 0; i < d->threads.stand_in_count && !d->error; i++) {
		struct profile_thread *moved = own_grow(p->threads, &p->own->thread_room,
							p->thread_count, sizeof lost);
		if (!moved) {
			d->error = err_new("out of memory");
			return;
		}
		p->threads = moved;
		p->threads[p->thread_count] = lost;
		p->threads[p->thread_count++].name = profile_string(p, lost.name);
	}
}

static void add_processes(struct decoder *d)
{
	struct profile *p = d->p;
	const struct profile_process lost = {.pid = -1,
					     .parent = -1,
					     .name = PROFILE_LOST_NAME,
					     .command = PROFILE_LOST_NAME,
					     .rank = -1,
					     .status = -1};
	uint32_t index;
	for (size_t i = 0; i < p->thread_count; i++)
		refer(d, &d->processes, p->threads[i].process);
	for (size_t i = 0; i < p->module_count; i++)
		if (p->modules[i].kind == PROFILE_JIT)
			refer(d, &d->processes, p->modules[i].process);
	limit_missing(d, &d->processes, FORMAT_PROCESSES, PROFILE_TABLE_MAX);
	for (size_t i = 0; i < d->processes.stand_in_count && !d->error; i++)
		d->error = profile_add_process(p, &lost, &index);
}

static bool renumber(const struct index_map *m, uint32_t *index)
{
	*index = map_find(m, *index);
	return *index != INDEX_NONE;
}

static void renumber_values(struct decoder *d)
{
	struct profile *p = d->p;
	size_t kept = 0;
	for (size_t i = 0; i < p->value_count; i++) {
		struct profile_value v = p->values[i];
		if (renumber(&d->threads, &v.thread) && renumber(&d->metrics, &v.metric)) {
			p->values[kept++] = v;
			continue;
		}
		d->dropped = sum_add(d->dropped, v.count);
		d->tables[FORMAT_VALUES].got--;
		decode_complain(d, FORMAT_VALUES, "malformed");
	}
	p->value_count = kept;
}

static bool renumber_waker(const struct decoder *d, uint32_t *waker)
{
	uint32_t thread = *waker - PROFILE_WAKERS;
	if (*waker < PROFILE_WAKERS)
		return true;
	bool good = renumber(&d->threads, &thread) && thread < INDEX_NONE - PROFILE_WAKERS;
	*waker = thread + PROFILE_WAKERS;
	return good;
}

/* 0: not known; else one more. */
static bool renumber_span_waker(const struct decoder *d, uint32_t *waker)
{
	uint32_t known = *waker - 1;
	if (!*waker)
		return true;
	bool good = renumber_waker(d, &known);
	*waker = known + 1;
	return good;
}

static void renumber_spans(struct decoder *d)
{
	struct profile *p = d->p;
	size_t kept = 0;
	for (size_t i = 0; i < p->span_count; i++) {
		struct profile_span r = p->spans[i];
		if (renumber(&d->threads, &r.thread) && renumber(&d->metrics, &r.metric) &&
		    renumber_span_waker(d, &r.waker)) {
			p->spans[kept++] = r;
			continue;
		}
		d->tables[FORMAT_SPANS].got--;
		decode_complain(d, FORMAT_SPANS, "malformed");
	}
	p->span_count = kept;
}

static void renumber_wakes(struct decoder *d)
{
	struct profile *p = d->p;
	size_t kept = 0;
	for (size_t i = 0; i < p->wake_count; i++) {
		struct profile_wake w = p->wakes[i];
		if (renumber(&d->threads, &w.thread) && renumber(&d->metrics, &w.metric) &&
		    renumber_waker(d, &w.waker)) {
			p->wakes[kept++] = w;
			continue;
		}
		d->tables[FORMAT_WAKES].got--;
		decode_complain(d, FORMAT_WAKES, "malformed");
	}
	p->wake_count = kept;
}

static void renumber_edges(struct decoder *d)
{
	struct profile *p = d->p;
	size_t kept = 0;
	for (size_t i = 0; i < p->edge_count; i++) {
		struct profile_edge x = p->edges[i];
		if (renumber(&d->modules, &x.begin_module) && renumber(&d->modules, &x.module)) {
			p->edges[kept++] = x;
			continue;
		}
		d->tables[FORMAT_EDGES].got--;
		decode_complain(d, FORMAT_EDGES, "malformed");
	}
	p->edge_count = kept;
}

static void renumber_counted(struct decoder *d)
{
	struct profile *p = d->p;
	size_t kept = 0;
	for (size_t i = 0; i < p->counted_count; i++) {
		struct profile_counted f = p->counted[i];
		if (renumber(&d->modules, &f.module)) {
			p->counted[kept++] = f;
			continue;
		}
		free(f.graph);
		free(f.paths);
		sampled_free(&f);
		d->tables[FORMAT_PATHS].got--;
		decode_complain(d, FORMAT_PATHS, "malformed");
	}
	p->counted_count = kept;
}

static bool renumber_rest(struct decoder *d)
{
	struct profile *p = d->p;
	bool good = true;
	for (size_t i = 1; i < p->node_count; i++)
		good &= renumber(&d->modules, &p->nodes[i].module);
	for (size_t i = 0; i < p->thread_count; i++)
		good &= renumber(&d->processes, &p->threads[i].process);
	for (size_t i = 0; i < p->module_count; i++)
		if (p->modules[i].kind == PROFILE_JIT)
			good &= renumber(&d->processes, &p->modules[i].process);
	return good;
}

bool decode_references(struct decoder *d)
{
	add_modules(d);
	add_metrics(d);
	add_threads(d);
	add_processes(d);
	if (d->error)
		return false;
	renumber_values(d);
	renumber_spans(d);
	renumber_wakes(d);
	renumber_edges(d);
	renumber_counted(d);
	contexts_renumber(d);
	if (!renumber_rest(d))
		d->error = err_new("more is missing than can be made up for");
	else
		d->error = profile_settle(d->p);
	return !d->error;
}
