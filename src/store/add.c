/* SPDX-License-Identifier: Apache-2.0 */
/* Epochs begin, intervals are added. */
#include <stdlib.h>

#include "base/err.h"
#include "profile/profile.h"
#include "store/covered.h"

/* ---- epochs ---- */

static struct err *insert_epoch(struct store *s, const struct store_epoch *x, int64_t *id)
{
	struct err *e = sql_do(
		s,
		"INSERT INTO epoch (start, host, kernel, machine, cpu, version, note,"
		" cpus, hz, continues, interval, joined, nodes, compact)"
		" VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 1, 0, 0)",
		"dssssssdud", x->start_ms, x->host, x->kernel, x->machine, x->cpu, x->version,
		x->note, (int64_t)x->cpus, x->hz, (int64_t)x->continues);
	*id = sqlite3_last_insert_rowid(s->db);
	for (size_t i = 0; !e && i < x->event_count; i++) {
		int64_t event;
		e = intern_event(s, &x->events[i], &event);
		if (!e)
			e = sql_do(s,
				   "INSERT INTO epoch_event (epoch, position, event)"
				   " VALUES (?, ?, ?)",
				   "ddd", *id, (int64_t)i, event);
	}
	return e;
}

struct err *store_begin_epoch(struct store *s, const struct store_epoch *x, int64_t *id)
{
	s->trouble = STORE_FINE;
	if (x->event_count > STORE_EVENT_MAX) {
		s->trouble = STORE_OTHER;
		return err_new("an epoch has at most %d events", STORE_EVENT_MAX);
	}
	struct err *e = sql_begin(s);
	if (e)
		return e;
	return sql_end(s, insert_epoch(s, x, id));
}

struct err *store_last_interval(struct store *s, int64_t epoch, uint64_t *number)
{
	int64_t found;
	struct err *e = sql_number(s, &found, 0, "SELECT interval FROM epoch WHERE id = ?", "d",
				   epoch);
	*number = (uint64_t)found;
	return e;
}

struct err *store_newest(struct store *s, int64_t *end_ms)
{
	return sql_number(s, end_ms, INT64_MIN, "SELECT max(end) FROM segment", "");
}

static struct err *load_events(struct store *s, int64_t epoch)
{
	sqlite3_stmt *rows;
	bool row = true;
	s->events.epoch = 0;
	s->events.count = 0;
	struct err *e = sql_prepare(
		s, &rows, "SELECT event FROM epoch_event WHERE epoch = ? ORDER BY position", "d",
		epoch);
	while (!e && row) {
		e = sql_step(s, rows, &row);
		if (!e && row && s->events.count < STORE_EVENT_MAX)
			s->events.ids[s->events.count++] = sqlite3_column_int64(rows, 0);
	}
	sql_done(s, rows);
	if (!e)
		s->events.epoch = epoch;
	return e;
}

/* ---- is an interval sound in itself? ---- */

static bool good_images(const struct store_interval *v)
{
	for (size_t i = 0; i < v->image_count; i++)
		if (v->images[i].process > v->process_count)
			return false;
	for (size_t i = 0; i < v->symbol_count; i++)
		if (!v->symbols[i].image || v->symbols[i].image > v->image_count)
			return false;
	return true;
}

static bool good_rows(const struct store_interval *v, size_t events)
{
	for (size_t i = 0; i < v->node_count; i++)
		if (v->nodes[i].parent > i || v->nodes[i].image > v->image_count ||
		    v->nodes[i].kind == PROFILE_ROOT || v->nodes[i].kind > PROFILE_PARTIAL)
			return false;
	for (size_t i = 0; i < v->count_count; i++)
		if (v->counts[i].process > v->process_count ||
		    v->counts[i].image > v->image_count || v->counts[i].event >= events)
			return false;
	for (size_t i = 0; i < v->path_count; i++)
		if (v->paths[i].node > v->node_count || v->paths[i].process > v->process_count ||
		    v->paths[i].event >= events)
			return false;
	return true;
}

static struct err *check(struct store *s, const struct store_interval *v)
{
	const size_t sizes[] = {v->image_count, v->symbol_count, v->process_count,
				v->node_count,  v->count_count,  v->path_count};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		if (sizes[i] > s->rows_max) {
			s->trouble = STORE_OTHER;
			return err_new("interval %llu has more than %u rows",
				       (unsigned long long)v->number, s->rows_max);
		}
	if (good_images(v) && good_rows(v, s->events.count))
		return NULL;
	s->trouble = STORE_OTHER;
	return err_new("interval %llu refers to what it does not have",
		       (unsigned long long)v->number);
}

/* ---- its rows, with the numbers of the database ---- */

static struct err *add_nodes(struct store *s, const struct store_interval *v,
			     const struct numbers *n, uint32_t *nodes)
{
	nodes[0] = 0;
	for (size_t i = 0; i < v->node_count; i++) {
		const struct store_node *x = &v->nodes[i];
		struct pack_node node = pack_node(nodes[x->parent], (uint64_t)n->images[x->image],
						  x->kind, x->address);
		nodes[i + 1] = calltree_child(&s->tree, &node);
		if (nodes[i + 1] == UINT32_MAX)
			return err_new("out of memory");
		if (s->tree.count > s->nodes_max + 1) {
			s->trouble = STORE_EPOCH_FULL;
			return err_new("the epoch has %u call paths, which is all that it can have",
				       s->nodes_max);
		}
	}
	return NULL;
}

static void translate_counts(const struct store *s, const struct store_interval *v,
			     const struct numbers *n, struct segment *out)
{
	for (size_t i = 0; i < v->count_count; i++) {
		const struct store_count *x = &v->counts[i];
		out->counts[i] = (struct pack_count){
			(uint64_t)n->processes[x->process], (uint64_t)n->images[x->image],
			(uint64_t)s->events.ids[x->event], x->address, x->count};
	}
	out->count_count = pack_settle_counts(out->counts, v->count_count);
}

static void translate_paths(const struct store *s, const struct store_interval *v,
			    const struct numbers *n, const uint32_t *nodes, struct segment *out)
{
	for (size_t i = 0; i < v->path_count; i++) {
		const struct store_path *x = &v->paths[i];
		out->paths[i] = (struct pack_path){nodes[x->node],
						   (uint64_t)n->processes[x->process],
						   (uint64_t)s->events.ids[x->event], x->count};
	}
	out->path_count = pack_settle_paths(out->paths, v->path_count);
}

static struct err *cover(struct store *s, const struct store_interval *v, int64_t segment)
{
	struct covered covered = {0};
	for (size_t i = 0; i < s->events.count && i < v->coverage_count; i++)
		covered.items[covered.count++] = (struct covered_event){.event = s->events.ids[i],
									.coverage = v->coverage[i]};
	return covered_write(s, segment, &covered);
}

static struct err *write_interval(struct store *s, const struct store_interval *v,
				  struct segment *x)
{
	struct err *e = segment_write(s, x, LEVEL_QUICK);
	if (!e)
		e = cover(s, v, x->id);
	for (size_t i = 0; !e && i < v->loss_count; i++)
		e = segment_add_loss(s, x->id, (int)v->losses[i].kind, v->losses[i].reason,
				     v->losses[i].samples);
	if (!e)
		e = sql_do(s, "UPDATE epoch SET interval = ? WHERE id = ?", "ud", v->number,
			   x->epoch);
	return e;
}

static struct err *add_rows(struct store *s, int64_t epoch, const struct store_interval *v)
{
	struct numbers n = {0};
	uint32_t before = s->tree.count;
	uint32_t *nodes = malloc((v->node_count + 1) * sizeof *nodes);
	struct segment x = {
		.epoch = epoch,
		.start_ms = v->start_ms,
		.end_ms = v->end_ms > v->start_ms ? v->end_ms : v->start_ms,
		.intervals = 1,
		.cost = v->cost,
		.counts = calloc(v->count_count + 1, sizeof *x.counts),
		.paths = calloc(v->path_count + 1, sizeof *x.paths),
	};
	struct err *e = nodes && x.counts && x.paths ? NULL : err_new("out of memory");
	if (!e)
		e = intern_all(s, v, &n);
	if (!e)
		e = add_nodes(s, v, &n, nodes);
	if (!e)
		e = trees_append(s, epoch, &s->tree, before);
	if (!e) {
		translate_counts(s, v, &n, &x);
		translate_paths(s, v, &n, nodes, &x);
		e = write_interval(s, v, &x);
	}
	segment_free(&x);
	free(nodes);
	free(n.images);
	free(n.processes);
	return e;
}

/* Within the transaction. */
static struct err *add(struct store *s, int64_t epoch, const struct store_interval *v, bool *added)
{
	int64_t last;
	struct err *e = intern_refresh(s);
	if (!e)
		e = sql_number(s, &last, -1, "SELECT interval FROM epoch WHERE id = ?", "d", epoch);
	if (!e && last < 0) { /* nobody removes the newest one */
		s->trouble = STORE_DAMAGED;
		e = err_new("%s: damaged: there is no epoch %lld", s->path, (long long)epoch);
	}
	if (e || v->number <= (uint64_t)last)
		return e;
	if (s->events.epoch != epoch)
		e = load_events(s, epoch);
	if (!e && s->tree_epoch != epoch)
		e = trees_load(s, epoch);
	if (!e)
		e = check(s, v);
	if (!e)
		e = add_rows(s, epoch, v);
	*added = !e;
	return e;
}

struct err *store_add(struct store *s, int64_t epoch, const struct store_interval *v, bool *added)
{
	*added = false;
	s->trouble = STORE_FINE;
	struct err *e = sql_begin(s);
	if (e)
		return e;
	e = sql_end(s, add(s, epoch, v, added));
	if (!e)
		return NULL;
	*added = false;
	if (s->trouble == STORE_FINE)
		s->trouble = STORE_OTHER;
	intern_forget(s); /* what was noted may have been undone */
	return e;
}
