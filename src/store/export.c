/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A while of a database as an ordinary recording. Each process, or group of
 * them, is a process with one thread. Of an event whose samples do not all have
 * a call path there are two metrics: "cycles", those that have one, each of which
 * stands for `every` periods; and "cycles:all", all of them, as frames without
 * callers.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "profile/profile.h"
#include "store/ahead.h"
#include "store/covered.h"
#include "store/reading.h"

#define NOT_YET UINT32_MAX

struct maker {
	struct names names;
	struct wanted wanted;
	struct profile_spare spare;
	struct profile *p;
	uint32_t *modules, *threads; /* of the profile, by place of names; NOT_YET */
	size_t module_room, thread_room;
	uint32_t *groups; /* shorten: the first process of each, by place of names */
	size_t group_count, group_room;
	uint32_t walked[STORE_EVENT_MAX], all[STORE_EVENT_MAX]; /* metrics by place of the event */
	struct covered covered;
	bool shorten;
	const struct calltree *tree; /* of the epoch */
	uint32_t *nodes;             /* of the profile, by node of the tree */
	uint32_t *way;               /* has room for as many */
	uint32_t node_room;
	bool added_up; /* rows belong to no process */
};

static bool widen(uint32_t **list, size_t *room, size_t place)
{
	if (place < *room)
		return true;
	size_t wider = (place + 1) * 2;
	uint32_t *moved = reallocarray(*list, wider, sizeof *moved);
	if (!moved)
		return false;
	for (size_t i = *room; i < wider; i++)
		moved[i] = NOT_YET;
	*list = moved;
	*room = wider;
	return true;
}

/* ---- processes ---- */

static struct err *add_thread(struct maker *m, const struct read_process *x, uint32_t *thread)
{
	struct profile_process process = {.pid = x->pid,
					  .name = x->name,
					  .command = *x->command ? x->command : x->name,
					  .rank = -1,
					  .status = -1};
	struct profile_thread t = {.tid = x->pid, .name = x->name};
	struct err *e = profile_add_process(m->p, &process, &t.process);
	return e ? e : profile_add_thread(m->p, &t, thread);
}

/* Processes of the same name, user and container, as in long spans. There are few groups. */
static struct err *find_group(struct maker *m, uint32_t place)
{
	const struct read_process *x = &m->names.processes[place];
	for (size_t i = 0; i < m->group_count; i++) {
		const struct read_process *first = &m->names.processes[m->groups[i]];
		if (first->name == x->name && first->container == x->container &&
		    first->user == x->user) {
			m->threads[place] = m->threads[m->groups[i]];
			return NULL;
		}
	}
	struct read_process group = {.name = x->name, .command = ""};
	if (!ARRAY_ROOM(m->groups, m->group_count, m->group_room))
		return err_new("out of memory");
	m->groups[m->group_count++] = place;
	return add_thread(m, &group, &m->threads[place]);
}

static struct err *find_thread(struct maker *m, uint64_t id, uint32_t *place, uint32_t *thread)
{
	struct err *e = names_process(&m->names, id, place);
	if (e)
		return e;
	if (!widen(&m->threads, &m->thread_room, *place))
		return err_new("out of memory");
	if (m->threads[*place] == NOT_YET && m->shorten && !m->spare.threads)
		e = find_group(m, *place);
	else if (m->threads[*place] == NOT_YET)
		e = add_thread(m, &m->names.processes[*place], &m->threads[*place]);
	*thread = m->threads[*place];
	return e;
}

/* ---- modules ---- */

static struct err *copy_names(const struct read_image *x, struct profile_module *out)
{
	out->names = calloc(x->symbol_count + 1, sizeof *out->names);
	if (!out->names)
		return err_new("out of memory");
	for (size_t i = 0; i < x->symbol_count; i++)
		out->names[i] = (struct profile_name){x->symbols[i].start, x->symbols[i].size,
						      x->symbols[i].name};
	out->name_count = x->symbol_count;
	return NULL;
}

static struct err *add_module(struct maker *m, uint32_t place)
{
	const struct read_image *x = &m->names.images[place];
	struct profile_module module = {
		.kind = x->kind, .path = x->path, .build_id = x->build_id, .problem = ""};
	uint32_t process, thread;
	struct err *e = NULL;
	if (x->kind == PROFILE_JIT) {
		e = find_thread(m, (uint64_t)x->process, &process, &thread);
		if (!e)
			module.process = m->p->threads[thread].process;
	}
	if (!e)
		e = copy_names(x, &module);
	if (!e)
		e = profile_add_module(m->p, &module, &m->modules[place]);
	free(module.names);
	return e;
}

static struct err *find_module(struct maker *m, uint64_t id, uint32_t *place, uint32_t *module)
{
	*module = 0;
	*place = 0;
	struct err *e = names_image(&m->names, id, place);
	if (e || !*place)
		return e;
	if (!widen(&m->modules, &m->module_room, *place))
		return err_new("out of memory");
	if (m->modules[*place] == NOT_YET)
		e = add_module(m, *place);
	*module = m->modules[*place];
	return e;
}

/* ---- metrics ---- */

static struct err *find_metric(struct maker *m, uint64_t id, bool walked, uint32_t *metric)
{
	uint32_t place;
	struct err *e = names_event(&m->names, id, &place);
	if (e)
		return e;
	if (place >= STORE_EVENT_MAX)
		return err_new("more than %d events", STORE_EVENT_MAX);
	uint32_t *known = walked ? &m->walked[place] : &m->all[place];
	if (*known == NOT_YET) {
		const struct store_event *v = &m->names.events[place];
		struct buf name = {0};
		buf_printf(&name, "%s%s", v->name, walked || !v->every ? "" : ":all");
		struct profile_metric x = {
			.name = buf_text(&name),
			.unit = v->unit,
			.period = walked && v->every ? v->period * v->every : v->period,
			.user_only = v->user_only,
			.coverage = covered_find(&m->covered, id),
		};
		e = profile_add_metric(m->p, &x, known);
		buf_free(&name);
	}
	*metric = *known;
	return e;
}

/* ---- call paths ---- */

static struct err *use_tree(struct maker *m, const struct calltree *tree)
{
	m->tree = tree;
	if (tree->count > m->node_room) {
		free(m->nodes);
		free(m->way);
		m->nodes = malloc(tree->count * sizeof *m->nodes);
		m->way = malloc(tree->count * sizeof *m->way);
		m->node_room = m->nodes && m->way ? tree->count : 0;
		if (!m->node_room)
			return err_new("out of memory");
	}
	for (uint32_t i = 0; i < tree->count; i++)
		m->nodes[i] = i ? NOT_YET : 0;
	return NULL;
}

/* From the node up to one that the profile has, and back. */
static struct err *find_node(struct maker *m, uint32_t node, uint32_t *out)
{
	size_t steps = 0;
	struct err *e = NULL;
	for (uint32_t at = node; m->nodes[at] == NOT_YET; at = m->tree->nodes[at].parent)
		m->way[steps++] = at;
	while (!e && steps) {
		uint32_t at = m->way[--steps], place, module;
		const struct pack_node *x = &m->tree->nodes[at];
		e = find_module(m, x->image, &place, &module);
		if (!e)
			e = profile_child(m->p, m->nodes[x->parent], x->kind, module, x->address,
					  &m->nodes[at]);
	}
	*out = m->nodes[node];
	return e;
}

static struct err *count_at(struct maker *m, uint32_t node, uint32_t thread, uint32_t metric,
			    uint64_t count)
{
	return profile_count(m->p, node, m->spare.threads ? 0 : thread, metric, count);
}

static struct err *add_path(struct maker *m, const struct pack_path *x)
{
	uint32_t process, thread = 0, place, module, metric, node = 0;
	const struct pack_node *leaf = &m->tree->nodes[x->node];
	struct err *e = names_process(&m->names, x->process, &process);
	if (!e)
		e = names_image(&m->names, leaf->image, &place);
	if (e || !wanted_sample(&m->wanted, &m->names, process, place, leaf->address))
		return e;
	if (!m->added_up)
		e = find_thread(m, x->process, &process, &thread);
	if (!e)
		e = find_module(m, leaf->image, &place, &module);
	if (!e)
		e = find_metric(m, x->event, true, &metric);
	if (!e)
		e = find_node(m, (uint32_t)x->node, &node);
	return e ? e : count_at(m, node, thread, metric, x->count);
}

/* ---- samples by instruction alone ---- */

static struct err *add_count(struct maker *m, const struct pack_count *x)
{
	uint32_t process, thread, place, module, metric, node, event;
	struct err *e = names_event(&m->names, x->event, &event);
	uint64_t every = e ? 0 : m->names.events[event].every;
	if (e || every == 1 || (every && (m->spare.pathless || m->shorten)))
		return e; /* their call paths tell */
	e = names_process(&m->names, x->process, &process);
	if (!e)
		e = names_image(&m->names, x->image, &place);
	if (e || !wanted_sample(&m->wanted, &m->names, process, place, x->address))
		return e;
	e = find_thread(m, x->process, &process, &thread);
	if (!e)
		e = find_module(m, x->image, &place, &module);
	if (!e)
		e = find_metric(m, x->event, false, &metric);
	if (!e)
		e = profile_child(m->p, 0, PROFILE_EXACT, module, x->address, &node);
	return e ? e : count_at(m, node, thread, metric, x->count);
}

/* Events without any call path have nothing else. */
static struct err *wants_counts(const struct maker *m, bool *wants)
{
	sqlite3_stmt *r;
	*wants = true;
	if (!m->spare.pathless && !m->shorten)
		return NULL;
	struct err *e = sql_prepare(m->names.store, &r, "SELECT 1 FROM event WHERE every = 0", "");
	if (!e)
		e = sql_step(m->names.store, r, wants);
	sql_done(m->names.store, r);
	return e;
}

static struct err *add_counts(struct maker *m, const struct span_list *list)
{
	struct err *e = NULL;
	for (size_t i = 0; !e && i < list->count; i++) {
		struct segment x;
		e = segment_read(m->names.store, list->items[i].id, SEGMENT_COUNTS, &x);
		for (size_t k = 0; !e && k < x.count_count; k++)
			e = add_count(m, &x.counts[k]);
		segment_free(&x);
	}
	return e ? e : profile_settle(m->p);
}

/* Each node of a tree that was shortened has samples: all of them at once, if all are wanted. */
static struct err *add_tree(struct maker *m)
{
	struct profile_node *nodes = malloc(m->tree->count * sizeof *nodes);
	struct err *e = nodes ? NULL : err_new("out of memory");
	for (uint32_t i = 1; !e && i < m->tree->count; i++) {
		const struct pack_node *x = &m->tree->nodes[i];
		uint32_t place, module;
		e = find_module(m, x->image, &place, &module);
		nodes[i] = (struct profile_node){x->parent, module, x->address, x->kind};
	}
	if (!e)
		e = profile_add_tree(m->p, nodes, m->tree->count, m->nodes);
	free(nodes);
	return e;
}

/* Whether every sample is wanted. */
static bool wants_all(const struct read_choice *c)
{
	return !c->image && !c->procedure && !c->process && !c->container && c->user < 0;
}

/* The rows of a tree that is in the profile: those of one process come one after the other. */
static struct err *add_rows(struct maker *m, const struct ahead_epoch *x)
{
	uint32_t place, thread = 0, metric = 0;
	struct err *e = NULL;
	for (size_t i = 0; !e && i < x->count; i++) {
		const struct pack_path *r = &x->rows[i], *before = i ? r - 1 : NULL;
		if (!m->added_up && (!before || before->process != r->process))
			e = find_thread(m, r->process, &place, &thread);
		if (!e && (!before || before->event != r->event))
			e = find_metric(m, r->event, true, &metric);
		if (!e)
			e = count_at(m, m->nodes[r->node], thread, metric, r->count);
	}
	return e;
}

static struct err *add_epoch(struct maker *m, const struct ahead_epoch *x)
{
	bool at_once = m->shorten && wants_all(m->wanted.choice);
	uint32_t place, thread;
	struct err *e = use_tree(m, &x->tree);
	for (size_t i = 0; !e && i < x->process_count; i++)
		e = find_thread(m, x->processes[i], &place, &thread);
	if (!e && at_once)
		e = add_tree(m);
	if (!e && at_once)
		return add_rows(m, x);
	for (size_t i = 0; !e && i < x->count; i++)
		e = add_path(m, &x->rows[i]);
	return e;
}

static struct err *add_paths(struct maker *m, const struct span_list *list)
{
	struct ahead *ahead;
	const struct ahead_epoch *x;
	m->added_up = m->spare.threads && wants_all(m->wanted.choice);
	struct err *e = ahead_open(m->names.store, list, m->shorten, m->added_up, &ahead);
	do {
		if (!e)
			e = ahead_next(ahead, &x);
		if (!e && x)
			e = add_epoch(m, x);
	} while (!e && x);
	ahead_close(ahead);
	return e ? e : profile_settle(m->p);
}

/* Whether there are so many call paths that rare ones lose callers. */
static struct err *choose_shorten(struct maker *m, const struct span_list *list)
{
	uint64_t nodes = 0;
	struct err *e = NULL;
	for (size_t i = 0; m->spare.rare_above && !e && i < list->count; i++) {
		sqlite3_stmt *r;
		bool row = false;
		if (i && list->items[i].epoch == list->items[i - 1].epoch)
			continue;
		e = sql_prepare(m->names.store, &r, "SELECT nodes FROM epoch WHERE id = ?", "d",
				list->items[i].epoch);
		if (!e)
			e = sql_step(m->names.store, r, &row);
		if (!e && row)
			nodes += (uint64_t)sqlite3_column_int64(r, 0);
		sql_done(m->names.store, r);
	}
	m->shorten = m->p->shortened = m->spare.rare_above && nodes > m->spare.rare_above;
	return e;
}

/* ---- what was recorded, and where ---- */

static struct err *add_info(struct maker *m, const struct span_list *list)
{
	sqlite3_stmt *r;
	bool row = false;
	struct profile *p = m->p;
	struct err *e = sql_prepare(m->names.store, &r,
				    "SELECT host, kernel, machine, version, note, hz FROM epoch"
				    " WHERE id = ?",
				    "d", list->items[list->count - 1].epoch);
	if (!e)
		e = sql_step(m->names.store, r, &row);
	if (!e && row) {
		p->host = profile_string(p, sql_text(r, 0));
		p->kernel = profile_string(p, sql_text(r, 1));
		p->machine = profile_string(p, sql_text(r, 2));
		p->version = profile_string(p, sql_text(r, 3));
		p->note = profile_string(p, sql_text(r, 4));
		p->hz = (uint64_t)sqlite3_column_int64(r, 5);
	}
	sql_done(m->names.store, r);
	p->command = profile_string(p, m->names.store->path);
	p->start_time = (uint64_t)(list->from_ms / 1000);
	p->duration_ns = (uint64_t)(list->to_ms - list->from_ms) * 1000000;
	p->complete = true;
	return e;
}

static struct err *add_losses(struct maker *m, const struct span_list *list)
{
	struct err *e = NULL;
	for (size_t i = 0; !e && i < list->count; i++) {
		sqlite3_stmt *r;
		bool row = true;
		e = sql_prepare(m->names.store, &r,
				"SELECT reason, samples FROM loss WHERE segment = ? AND kind = ?",
				"dd", list->items[i].id, (int64_t)STORE_LOST);
		while (!e) {
			e = sql_step(m->names.store, r, &row);
			if (e || !row)
				break;
			e = profile_lose(m->p, sql_text(r, 0),
					 (uint64_t)sqlite3_column_int64(r, 1));
		}
		sql_done(m->names.store, r);
	}
	return e;
}

static struct err *make(struct maker *m, const struct read_choice *choice, struct span_list *list)
{
	struct err *e = spans_list(m->names.store, choice, list);
	if (!e && !list->count)
		e = err_new("%s: there is nothing in that time: culprit db list shows what there "
			    "is",
			    m->names.store->path);
	if (!e)
		e = covered_spans(m->names.store, list, &m->covered);
	if (!e)
		e = add_info(m, list);
	if (!e)
		e = choose_shorten(m, list);
	if (!e)
		e = add_paths(m, list);
	bool counts = true;
	if (!e)
		e = wants_counts(m, &counts);
	if (!e && counts)
		e = add_counts(m, list);
	if (!e && !m->p->metric_count)
		e = err_new("%s: there are no such samples in that time", m->names.store->path);
	return e ? e : add_losses(m, list);
}

struct err *read_profile(struct store *s, const struct read_choice *choice,
			 const struct profile_spare *spare, struct profile **out)
{
	struct maker m = {.wanted = {.choice = choice},
			  .spare = spare ? *spare : (struct profile_spare){0}};
	struct span_list list = {0};
	memset(m.walked, 0xff, sizeof m.walked);
	memset(m.all, 0xff, sizeof m.all);
	*out = NULL;
	struct err *e = sql_run(s, "BEGIN"); /* all of it as it was at one moment */
	if (!e)
		e = names_open(&m.names, s);
	if (!e)
		e = profile_new(&m.p);
	if (!e)
		e = make(&m, choice, &list);
	sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	names_close(&m.names);
	wanted_free(&m.wanted);
	free(m.modules);
	free(m.threads);
	free(m.nodes);
	free(m.way);
	free(m.groups);
	free(list.items);
	if (e)
		profile_free(m.p);
	else
		*out = m.p;
	return e;
}
