/* SPDX-License-Identifier: Apache-2.0 */
/* One profile into another: every index of `from` gets its counterpart in `into`. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/sum.h"
#include "profile/own.h"

struct key { /* what makes modules equal; the strings are of one profile: pointers tell */
	uint8_t kind;
	const char *path, *build_id;
	uint32_t module;
};

struct merge {
	struct profile *into;
	const struct profile *from;
	uint32_t *modules, *nodes; /* by index in `from` */
	uint32_t metrics[PROFILE_METRIC_MAX];
	uint32_t first_process, first_thread;
	struct key *keys; /* of the modules that `into` had, ordered */
	size_t key_count;
};

static int compare_pointers(const char *a, const char *b)
{
	return ((uintptr_t)a > (uintptr_t)b) - ((uintptr_t)a < (uintptr_t)b);
}

static int compare_keys(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	int order = (x->kind > y->kind) - (x->kind < y->kind);
	if (order == 0)
		order = compare_pointers(x->path, y->path);
	return order ? order : compare_pointers(x->build_id, y->build_id);
}

/* JIT modules are of one process; of what stands in for a lost one nothing is known. */
static bool can_be_equal(uint8_t kind)
{
	return kind != PROFILE_JIT && kind != PROFILE_NONE;
}

static struct err *make_keys(struct merge *m)
{
	struct profile *p = m->into;
	m->keys = calloc(p->module_count, sizeof *m->keys);
	if (!m->keys)
		return err_new("out of memory");
	for (size_t i = 0; i < p->module_count; i++) {
		const struct profile_module *x = &p->modules[i];
		struct key key = {x->kind, x->path, x->build_id, (uint32_t)i};
		if (!can_be_equal(x->kind))
			continue;
		if (!own_keep(p, &key.path) || !own_keep(p, &key.build_id))
			return err_new("out of memory");
		m->keys[m->key_count++] = key;
	}
	qsort(m->keys, m->key_count, sizeof *m->keys, compare_keys);
	return NULL;
}

static struct profile_module *find_module(struct merge *m, const struct profile_module *x)
{
	struct key key = {.kind = x->kind, .path = x->path, .build_id = x->build_id};
	const struct key *found = NULL;
	if (can_be_equal(x->kind) && own_keep(m->into, &key.path) &&
	    own_keep(m->into, &key.build_id))
		found = bsearch(&key, m->keys, m->key_count, sizeof key, compare_keys);
	return found ? &m->into->modules[found->module] : NULL;
}

static uint64_t end_of(const struct profile *p, const struct profile_module *m)
{
	return m->until ? m->until : profile_end(p);
}

static struct err *merge_modules(struct merge *m)
{
	struct profile *into = m->into;
	struct err *e = make_keys(m);
	for (size_t i = 1; i < into->module_count; i++)
		into->modules[i].until = end_of(into, &into->modules[i]);
	for (size_t i = 1; i < m->from->module_count && !e; i++) { /* 0 is 0 */
		struct profile_module copy = m->from->modules[i];
		struct profile_module *equal = find_module(m, &copy);
		copy.until = end_of(m->from, &copy);
		if (copy.kind == PROFILE_JIT)
			copy.process += m->first_process;
		if (!equal) {
			e = profile_add_module(into, &copy, &m->modules[i]);
			continue;
		}
		m->modules[i] = (uint32_t)(equal - into->modules);
		if (copy.until && copy.until < equal->until)
			equal->until = copy.until;
		if (!*equal->problem)
			equal->problem = profile_string(into, copy.problem);
		e = own_merge_names(into, equal, &copy);
	}
	return e;
}

static bool same_metric(const struct profile_metric *a, const struct profile_metric *b)
{
	return a->period == b->period && !strcmp(a->name, b->name) && !strcmp(a->unit, b->unit);
}

/* Before the values are. They need to be looked at only where somebody was short of counters. */
static void merge_coverage(struct merge *m, size_t into, size_t from)
{
	struct coverage *a = &m->into->metrics[into].coverage, b = m->from->metrics[from].coverage;
	bool weigh = coverage_share(*a) < 1 || coverage_share(b) < 1;
	coverage_add(a, weigh ? profile_samples(m->into, (uint32_t)into) : 0, b,
		     weigh ? profile_samples(m->from, (uint32_t)from) : 0);
}

static struct err *merge_metrics(struct merge *m)
{
	struct profile *into = m->into;
	size_t had = into->metric_count;
	struct err *e = NULL;
	for (size_t i = 0; i < m->from->metric_count && !e; i++) {
		const struct profile_metric *x = &m->from->metrics[i];
		size_t k = 0;
		while (k < had && !same_metric(&into->metrics[k], x))
			k++;
		if (k == had) {
			e = profile_add_metric(into, x, &m->metrics[i]);
			continue;
		}
		m->metrics[i] = (uint32_t)k;
		into->metrics[k].user_only |= x->user_only; /* of a part at least */
		merge_coverage(m, k, i);
	}
	return e;
}

static struct err *merge_processes(struct merge *m)
{
	struct err *e = NULL;
	uint32_t index;
	m->first_process = (uint32_t)m->into->process_count;
	m->first_thread = (uint32_t)m->into->thread_count;
	for (size_t i = 0; i < m->from->process_count && !e; i++)
		e = profile_add_process(m->into, &m->from->processes[i], &index);
	for (size_t i = 0; i < m->from->thread_count && !e; i++) {
		struct profile_thread copy = m->from->threads[i];
		copy.process += m->first_process;
		e = profile_add_thread(m->into, &copy, &index);
	}
	return e;
}

static struct err *merge_tree(struct merge *m)
{
	const struct profile *from = m->from;
	struct err *e = NULL;
	for (size_t i = 1; i < from->node_count && !e; i++) {
		const struct profile_node *n = &from->nodes[i];
		e = profile_child(m->into, m->nodes[n->parent], n->kind, m->modules[n->module],
				  n->address, &m->nodes[i]);
	}
	for (size_t i = 0; i < from->value_count && !e; i++) {
		const struct profile_value *v = &from->values[i];
		e = profile_count(m->into, m->nodes[v->node], v->thread + m->first_thread,
				  m->metrics[v->metric], v->count);
	}
	for (size_t i = 0; i < from->span_count && !e; i++) {
		struct profile_span r = from->spans[i];
		r.node = m->nodes[r.node];
		r.thread += m->first_thread;
		r.metric = m->metrics[r.metric];
		r.waker += r.waker > PROFILE_WAKERS ? m->first_thread : 0;
		e = own_append_span(m->into, &r);
	}
	for (size_t i = 0; i < from->wake_count && !e; i++) {
		struct profile_wake w = from->wakes[i];
		w.node = m->nodes[w.node];
		w.thread += m->first_thread;
		w.metric = m->metrics[w.metric];
		w.waker += w.waker >= PROFILE_WAKERS ? m->first_thread : 0;
		e = profile_wake(m->into, &w);
	}
	for (size_t i = 0; i < from->edge_count && !e; i++) {
		struct profile_edge x = from->edges[i];
		x.begin_module = m->modules[x.begin_module];
		x.module = m->modules[x.module];
		e = profile_edge(m->into, &x);
	}
	for (size_t i = 0; i < from->counted_count && !e; i++) {
		struct profile_counted f = from->counted[i];
		f.module = m->modules[f.module];
		e = profile_count_paths(m->into, &f);
	}
	const uint32_t before = (uint32_t)m->into->context_count;
	for (size_t i = 0; i < from->context_count && !e; i++) {
		struct profile_context c = from->contexts[i];
		c.module = m->modules[c.module];
		c.parent += c.parent >= PROFILE_CONTEXT_FIRST ? before : 0;
		e = profile_add_context(m->into, &c);
	}
	for (size_t i = 0; i < from->lost_count && !e; i++)
		e = profile_lose(m->into, from->lost[i].reason, from->lost[i].count);
	return e;
}

/* What `into` does not say yet. */
static void fill(struct profile *into, const char **text, const char *other)
{
	if (!**text)
		*text = profile_string(into, other);
}

/* Both, each once. */
static void join_notes(struct profile *into, const char *other)
{
	size_t size = strlen(into->note) + strlen(other) + 3;
	char *both;
	fill(into, &into->note, other);
	if (strstr(into->note, other))
		return;
	both = malloc(size);
	if (!both)
		return;
	strcpy(stpcpy(stpcpy(both, into->note), "; "), other);
	into->note = profile_string(into, both);
	free(both);
}

static bool is_empty(const struct profile *p)
{
	return p->node_count == 1 && p->process_count == 0 && !*p->command && !*p->version;
}

static void merge_info(struct profile *into, const struct profile *from, bool first)
{
	fill(into, &into->command, from->command);
	fill(into, &into->directory, from->directory);
	fill(into, &into->host, from->host);
	fill(into, &into->kernel, from->kernel);
	fill(into, &into->machine, from->machine);
	fill(into, &into->cpu, from->cpu);
	fill(into, &into->version, from->version);
	join_notes(into, from->note);
	if (!into->start_time || (from->start_time && from->start_time < into->start_time))
		into->start_time = from->start_time;
	if (from->duration_ns > into->duration_ns)
		into->duration_ns = from->duration_ns;
	if (from->delivery_ns > into->delivery_ns)
		into->delivery_ns = from->delivery_ns;
	if (!into->hz)
		into->hz = from->hz;
	into->timed |= from->timed;
	into->untimed = sum_add(into->untimed, from->untimed);
	into->stolen_ns = sum_add(into->stolen_ns, from->stolen_ns);
	into->forks = sum_add(into->forks, from->forks);
	if (first)
		into->unwind = from->unwind;
	into->complete = (first || into->complete) && from->complete;
}

struct err *profile_append(struct profile *into, const struct profile *from)
{
	struct merge m = {.into = into, .from = from};
	bool first = is_empty(into);
	struct err *e = NULL;
	/* So that what was joined is not taken for a single sample's. */
	if (into->coarse_us < from->coarse_us)
		into->coarse_us = from->coarse_us;
	if (into == from)
		return err_new("a profile cannot be merged with itself");
	m.modules = calloc(from->module_count, sizeof *m.modules);
	m.nodes = calloc(from->node_count, sizeof *m.nodes);
	if (!m.modules || !m.nodes)
		e = err_new("out of memory");
	if (!e)
		e = merge_processes(&m);
	if (!e)
		e = merge_modules(&m);
	if (!e)
		e = merge_metrics(&m);
	if (!e)
		e = merge_tree(&m);
	if (!e)
		merge_info(into, from, first);
	free(m.modules);
	free(m.nodes);
	free(m.keys);
	return err_context(e, "cannot merge");
}

struct err *profile_merge(struct profile *into, const struct profile *from)
{
	struct err *e = profile_append(into, from);
	return e ? e : profile_settle(into);
}
