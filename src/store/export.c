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

#include "base/buf.h"
#include "base/err.h"
#include "profile/profile.h"
#include "store/covered.h"
#include "store/reading.h"

#define NOT_YET UINT32_MAX

struct maker {
	struct names names;
	struct wanted wanted;
	struct profile *p;
	uint32_t *modules, *threads; /* of the profile, by place of names; NOT_YET */
	size_t module_room, thread_room;
	uint32_t walked[STORE_EVENT_MAX], all[STORE_EVENT_MAX]; /* metrics by place of the event */
	struct covered covered;
	struct calltree tree;
	int64_t tree_epoch;
	uint32_t *nodes; /* of the profile, by node of the tree */
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

static struct err *find_thread(struct maker *m, uint64_t id, uint32_t *place, uint32_t *thread)
{
	struct err *e = names_process(&m->names, id, place);
	if (e)
		return e;
	if (!widen(&m->threads, &m->thread_room, *place))
		return err_new("out of memory");
	if (m->threads[*place] == NOT_YET) {
		const struct read_process *x = &m->names.processes[*place];
		struct profile_process process = {.pid = x->pid,
						  .name = x->name,
						  .command = *x->command ? x->command : x->name,
						  .rank = -1,
						  .status = -1};
		struct profile_thread t = {.tid = x->pid, .name = x->name};
		e = profile_add_process(m->p, &process, &t.process);
		if (!e)
			e = profile_add_thread(m->p, &t, &m->threads[*place]);
	}
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

static struct err *use_tree(struct maker *m, int64_t epoch)
{
	if (m->tree_epoch == epoch)
		return NULL;
	struct err *e = trees_read(m->names.store, epoch, &m->tree);
	free(m->nodes);
	m->nodes = e ? NULL : malloc(m->tree.count * sizeof *m->nodes);
	if (!e && !m->nodes)
		e = err_new("out of memory");
	for (uint32_t i = 0; !e && i < m->tree.count; i++)
		m->nodes[i] = i ? NOT_YET : 0;
	m->tree_epoch = e ? 0 : epoch;
	return e;
}

/* From the node up to one that the profile has, and back; the way is kept in `nodes`' own terms:
   parents have smaller numbers, so the ends of the recursion are near. */
static struct err *find_node(struct maker *m, uint32_t node, uint32_t *out)
{
	uint32_t at = node, chain = 0;
	struct err *e = NULL;
	while (m->nodes[at] == NOT_YET) {
		at = m->tree.nodes[at].parent;
		chain++;
	}
	uint32_t *way = malloc((chain + 1) * sizeof *way);
	if (!way)
		return err_new("out of memory");
	at = node;
	for (uint32_t i = 0; i < chain; i++, at = m->tree.nodes[at].parent)
		way[i] = at;
	for (uint32_t i = chain; !e && i-- > 0;) {
		const struct pack_node *x = &m->tree.nodes[way[i]];
		uint32_t place, module;
		e = find_module(m, x->image, &place, &module);
		if (!e)
			e = profile_child(m->p, m->nodes[x->parent], x->kind, module, x->address,
					  &m->nodes[way[i]]);
	}
	free(way);
	*out = m->nodes[node];
	return e;
}

static struct err *add_path(struct maker *m, const struct pack_path *x)
{
	uint32_t process, thread, place, module, metric, node = 0;
	if (x->node >= m->tree.count)
		return err_new("%s: call paths are damaged", m->names.store->path);
	const struct pack_node *leaf = &m->tree.nodes[x->node];
	struct err *e = names_process(&m->names, x->process, &process);
	if (!e)
		e = names_image(&m->names, leaf->image, &place);
	if (e || !wanted_sample(&m->wanted, &m->names, process, place, leaf->address))
		return e;
	e = find_thread(m, x->process, &process, &thread);
	if (!e)
		e = find_module(m, leaf->image, &place, &module);
	if (!e)
		e = find_metric(m, x->event, true, &metric);
	if (!e)
		e = find_node(m, (uint32_t)x->node, &node);
	return e ? e : profile_count(m->p, node, thread, metric, x->count);
}

/* ---- samples by instruction alone ---- */

static struct err *add_count(struct maker *m, const struct pack_count *x)
{
	uint32_t process, thread, place, module, metric, node, event;
	struct err *e = names_event(&m->names, x->event, &event);
	if (e || m->names.events[event].every == 1)
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
	return e ? e : profile_count(m->p, node, thread, metric, x->count);
}

static struct err *add_spans(struct maker *m, const struct span_list *list, bool paths)
{
	struct err *e = NULL;
	for (size_t i = 0; !e && i < list->count; i++) {
		struct segment x;
		e = segment_read(m->names.store, list->items[i].id, true, &x);
		if (!e && paths && x.path_count)
			e = use_tree(m, x.epoch);
		for (size_t k = 0; !e && paths && k < x.path_count; k++)
			e = add_path(m, &x.paths[k]);
		for (size_t k = 0; !e && !paths && k < x.count_count; k++)
			e = add_count(m, &x.counts[k]);
		segment_free(&x);
		if (!e && !(i % 16))
			e = profile_settle(m->p);
	}
	return e ? e : profile_settle(m->p);
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
		e = add_spans(m, list, true);
	if (!e)
		e = add_spans(m, list, false);
	if (!e && !m->p->metric_count)
		e = err_new("%s: there are no such samples in that time", m->names.store->path);
	return e ? e : add_losses(m, list);
}

struct err *read_profile(struct store *s, const struct read_choice *choice, struct profile **out)
{
	struct maker m = {.wanted = {.choice = choice}};
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
	calltree_free(&m.tree);
	free(m.modules);
	free(m.threads);
	free(m.nodes);
	free(list.items);
	if (e)
		profile_free(m.p);
	else
		*out = m.p;
	return e;
}
