/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is read by the caller's thread alone: it takes the packed bytes of the next epoch out of it, gives
 * them to the thread, and waits for those that the thread has unpacked meanwhile. If no thread can be had,
 * the caller unpacks them itself.
 */
#include "store/ahead.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "store/shorten.h"

struct packed {
	void *bytes;
	size_t size;
	int64_t nodes; /* that a piece of the tree must have */
};

struct job {
	struct ahead_epoch out;
	struct packed *pieces; /* of the tree, then those of the spans */
	size_t piece_count, count, room;
	int64_t epoch;
	struct err *e;
	bool damaged; /* what `e` says is that */
};

struct ahead {
	struct store *store;
	const struct span_list *list;
	size_t next; /* span */
	bool shorten, add_up;
	struct job jobs[2]; /* in turns */
	unsigned turn;      /* the one that is unpacked now */
	bool given;         /* there is one */
	bool threaded;
	pthread_t thread;
};

/* ---- out of the file ---- */

static bool add_packed(struct job *j, sqlite3_stmt *row, int column, int64_t nodes)
{
	struct packed x = {.size = (size_t)sqlite3_column_bytes(row, column), .nodes = nodes};
	if (j->count == j->room) {
		size_t room = j->room ? j->room * 2 : 8;
		struct packed *moved = reallocarray(j->pieces, room, sizeof *moved);
		if (!moved)
			return false;
		j->pieces = moved;
		j->room = room;
	}
	x.bytes = malloc(x.size + 1);
	if (!x.bytes)
		return false;
	if (x.size)
		memcpy(x.bytes, sqlite3_column_blob(row, column), x.size);
	j->pieces[j->count++] = x;
	return true;
}

static struct err *damaged(struct store *s, const struct job *j)
{
	s->trouble = STORE_DAMAGED;
	return err_new("%s: the call paths of epoch %lld are damaged", s->path,
		       (long long)j->epoch);
}

/* A piece must begin where the one before ends. */
static struct err *fetch_tree(struct store *s, struct job *j)
{
	sqlite3_stmt *r;
	bool row = true;
	int64_t next = 1;
	struct err *e = sql_prepare(
		s, &r, "SELECT first, count, data FROM node WHERE epoch = ? ORDER BY first", "d",
		j->epoch);
	while (!e) {
		e = sql_step(s, r, &row);
		if (e || !row)
			break;
		int64_t count = sqlite3_column_int64(r, 1);
		if (sqlite3_column_int64(r, 0) != next || count < 0 || count > TREE_NODES_MAX)
			e = damaged(s, j);
		else if (!add_packed(j, r, 2, count))
			e = err_new("out of memory");
		next += e ? 0 : count;
	}
	sql_done(s, r);
	j->piece_count = j->count;
	return e;
}

static struct err *fetch_span(struct store *s, struct job *j, int64_t id)
{
	sqlite3_stmt *r;
	bool row = false;
	struct err *e = sql_prepare(s, &r, "SELECT paths FROM segment WHERE id = ?", "d", id);
	if (!e)
		e = sql_step(s, r, &row);
	if (!e && !row)
		e = err_new("%s: span %lld is gone", s->path, (long long)id);
	if (!e && !add_packed(j, r, 0, 0))
		e = err_new("out of memory");
	sql_done(s, r);
	return e;
}

static void empty(struct job *j)
{
	for (size_t i = 0; i < j->count; i++)
		free(j->pieces[i].bytes);
	j->count = j->piece_count = 0;
	free(j->out.rows);
	free(j->out.processes);
	j->out.rows = NULL;
	j->out.processes = NULL;
	j->out.count = j->out.process_count = 0;
	err_free(j->e);
	j->e = NULL;
	j->damaged = false;
}

/* The spans of the next epoch. */
static struct err *fetch(struct ahead *a, struct job *j)
{
	empty(j);
	j->epoch = a->list->items[a->next].epoch;
	struct err *e = fetch_tree(a->store, j);
	for (; !e && a->next < a->list->count && a->list->items[a->next].epoch == j->epoch;
	     a->next++)
		e = fetch_span(a->store, j, a->list->items[a->next].id);
	return e;
}

/* ---- unpacking ---- */

static struct err *unpack_tree(struct job *j)
{
	struct err *e = calltree_clear(&j->out.tree) ? NULL : err_new("out of memory");
	for (size_t i = 0; !e && i < j->piece_count; i++) {
		struct pack_node *nodes;
		size_t count;
		e = unpack_nodes(j->pieces[i].bytes, j->pieces[i].size, j->out.tree.count, &nodes,
				 &count);
		if (!e && (count != (size_t)j->pieces[i].nodes ||
			   j->out.tree.count + count > TREE_NODES_MAX))
			e = err_new("there must be others");
		j->damaged = e != NULL;
		if (!e && !calltree_append(&j->out.tree, nodes, count))
			e = err_new("out of memory");
		free(nodes);
	}
	return e;
}

static struct err *unpack_rows(struct job *j)
{
	struct err *e = NULL;
	for (size_t i = j->piece_count; !e && i < j->count; i++) {
		struct pack_path *rows;
		size_t count;
		e = unpack_paths(j->pieces[i].bytes, j->pieces[i].size, &rows, &count);
		j->damaged = e != NULL;
		struct pack_path *moved = e ? NULL
					    : reallocarray(j->out.rows, j->out.count + count + 1,
							   sizeof *moved);
		if (!e && !moved)
			e = err_new("out of memory");
		for (size_t k = 0; !e && k < count; k++)
			if (rows[k].node >= j->out.tree.count) {
				j->damaged = true;
				e = err_new("no such path");
			}
		if (moved)
			j->out.rows = moved;
		if (!e && count)
			memcpy(j->out.rows + j->out.count, rows, count * sizeof *rows);
		j->out.count += e ? 0 : count;
		free(rows);
	}
	return e;
}

/* Each process once for a span: rows of a span are ordered by it. */
static struct err *list_processes(struct ahead_epoch *x)
{
	x->processes = malloc((x->count + 1) * sizeof *x->processes);
	if (!x->processes)
		return err_new("out of memory");
	for (size_t i = 0; i < x->count; i++)
		if (!i || x->rows[i].process != x->rows[i - 1].process)
			x->processes[x->process_count++] = x->rows[i].process;
	return NULL;
}

/* Where each event has its own sums by node. Others stay as they are. */
static struct err *add_up(struct ahead_epoch *x)
{
	size_t kept = 0, left = 0;
	uint64_t event = x->count ? x->rows[0].event : 0;
	uint64_t *sums = calloc(x->tree.count, sizeof *sums);
	struct err *e = sums ? list_processes(x) : err_new("out of memory");
	for (size_t i = 0; !e && i < x->count; i++) {
		x->rows[i].process = 0;
		if (x->rows[i].event == event)
			sums[x->rows[i].node] += x->rows[i].count;
		else
			x->rows[left++] = x->rows[i];
	}
	/* There are as many rows as nodes with a sum, or more. */
	for (uint32_t i = 0; !e && i < x->tree.count; i++)
		kept += sums[i] != 0;
	if (!e && left)
		memmove(x->rows + kept, x->rows, left * sizeof *x->rows);
	kept = 0;
	for (uint32_t i = 0; !e && i < x->tree.count; i++)
		if (sums[i])
			x->rows[kept++] = (struct pack_path){i, 0, event, sums[i]};
	x->count = e ? x->count : kept + left;
	free(sums);
	return e;
}

static struct err *shorten(struct ahead_epoch *x)
{
	struct calltree less = {0};
	struct err *e = shorten_paths(&x->tree, x->rows, x->count, &less);
	if (e) {
		calltree_free(&less);
		return e;
	}
	calltree_free(&x->tree);
	x->tree = less;
	return NULL;
}

static void unpack(const struct ahead *a, struct job *j)
{
	j->e = unpack_tree(j);
	if (!j->e)
		j->e = unpack_rows(j);
	if (!j->e && a->shorten)
		j->e = shorten(&j->out);
	if (!j->e && a->add_up)
		j->e = add_up(&j->out);
}

static void *run(void *self)
{
	struct ahead *a = self;
	unpack(a, &a->jobs[a->turn]);
	return NULL;
}

/* ---- one after the other ---- */

/* Gives the next epoch to the thread, if there is one. */
static struct err *give(struct ahead *a)
{
	a->given = a->threaded = false;
	if (a->next >= a->list->count)
		return NULL;
	struct err *e = fetch(a, &a->jobs[a->turn]);
	if (e)
		return e;
	a->given = true;
	a->threaded = !pthread_create(&a->thread, NULL, run, a);
	if (!a->threaded)
		unpack(a, &a->jobs[a->turn]);
	return NULL;
}

static void wait_for_it(struct ahead *a)
{
	if (a->threaded)
		pthread_join(a->thread, NULL);
	a->threaded = false;
}

struct err *ahead_open(struct store *s, const struct span_list *list, bool shorten, bool add_up,
		       struct ahead **out)
{
	*out = calloc(1, sizeof **out);
	if (!*out)
		return err_new("out of memory");
	**out = (struct ahead){.store = s, .list = list, .shorten = shorten, .add_up = add_up};
	return NULL;
}

struct err *ahead_next(struct ahead *a, const struct ahead_epoch **out)
{
	*out = NULL;
	struct err *e = a->given ? NULL : give(a); /* the first one */
	if (e || !a->given)
		return e;
	wait_for_it(a);
	struct job *j = &a->jobs[a->turn];
	a->turn ^= 1;
	e = j->e;
	j->e = NULL;
	if (e && j->damaged) {
		err_free(e);
		e = damaged(a->store, j);
	}
	if (!e)
		e = give(a);
	*out = e ? NULL : &j->out;
	return e;
}

void ahead_close(struct ahead *a)
{
	if (!a)
		return;
	wait_for_it(a);
	for (size_t i = 0; i < 2; i++) {
		empty(&a->jobs[i]);
		free(a->jobs[i].pieces);
		calltree_free(&a->jobs[i].out.tree);
	}
	free(a);
}
