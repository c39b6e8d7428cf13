/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows are collected for each table, and go when there are many; the rows of
 * sent_spans go last, after the server has confirmed all others. An attempt that
 * fails is forgotten altogether: numbers of batch and tree are never used again,
 * so that what may still come of it on the server's side disturbs nothing.
 */
#include "fleet/send.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "fleet/numbers.h"
#include "fleet/rowbinary.h"
#include "fleet/server.h"
#include "profile/profile.h"
#include "store/calltree.h"
#include "store/unsent.h"

#define BODY_MAX (4u << 20) /* bytes of rows that are sent at once */
#define KNOWN_MAX 200000u   /* names that are remembered as sent */
#define TREE_MAX 100000u    /* nodes, likewise */
#define DAY_MS INT64_C(86400000)

enum table { SPANS, COUNTS, PATHS, NODES, IMAGES, SYMBOLS, PROCESSES, TABLES };

static const char *const names[TABLES] = {"sent_spans",    "sent_counts", "sent_paths",
					  "sent_nodes",    "sent_images", "sent_symbols",
					  "sent_processes"};

struct sender {
	struct server *server;
	uint64_t source, batch, tree_number;
	bool prepared; /* the server has our tables */
	bool stale;    /* what was noted of it may not be so */
	uint16_t day;
	struct buf bodies[TABLES];
	struct calltree tree;
	struct numbers known; /* images, processes and functions that the server has of this day */
};

uint16_t sender_day(int64_t start_ms)
{
	int64_t day = start_ms / DAY_MS;
	return day < 0 ? 0 : day > UINT16_MAX ? UINT16_MAX : (uint16_t)day;
}

/* ---- what is known ---- */

/* Was it there before? Without memory nothing is. */
static bool known_note(struct sender *s, enum table table, uint64_t first, uint64_t second)
{
	uint32_t *known = numbers_at(&s->known, (uint64_t)table, first, second);
	bool before = known && *known;
	if (known)
		*known = 1;
	return before;
}

static struct err *random_number(uint64_t *out)
{
	return getrandom(out, sizeof *out, 0) == sizeof *out ? NULL
							     : err_errno("no random numbers");
}

/* Another tree, and all names once more. */
static struct err *forget(struct sender *s)
{
	numbers_free(&s->known);
	if (!calltree_clear(&s->tree))
		return err_new("out of memory");
	return random_number(&s->tree_number);
}

/* ---- rows ---- */

static struct err *flush(struct sender *s, enum table table)
{
	struct buf sql = {0}, *body = &s->bodies[table];
	if (body->failed)
		return err_new("out of memory");
	if (!body->size)
		return NULL;
	buf_printf(&sql, "INSERT INTO %s.%s FORMAT RowBinary", server_database(s->server),
		   names[table]);
	struct err *e = sql.failed
				? err_new("out of memory")
				: server_insert(s->server, buf_text(&sql), body->data, body->size);
	buf_free(&sql);
	buf_free(body);
	return e;
}

/* After each row: the rows of spans wait for all others. */
static struct err *row_ends(struct sender *s, enum table table)
{
	return table != SPANS && s->bodies[table].size >= BODY_MAX ? flush(s, table) : NULL;
}

static struct buf *row_begins(struct sender *s, enum table table)
{
	struct buf *b = &s->bodies[table];
	rowbinary_put(b, s->day, 2);
	rowbinary_put(b, s->source, 8);
	return b;
}

/* What rows of counts and paths say of their span. */
static struct buf *span_row_begins(struct sender *s, enum table table, const struct unsent *x)
{
	struct buf *b = row_begins(s, table);
	rowbinary_put(b, (uint64_t)x->id, 8);
	rowbinary_put(b, s->batch, 8);
	rowbinary_put_text(b, x->epoch.host);
	rowbinary_put(b, (uint64_t)x->epoch.id, 8);
	rowbinary_put(b, (uint64_t)x->start_ms, 8);
	rowbinary_put(b, (uint64_t)x->end_ms, 8);
	return b;
}

/* ---- names ---- */

static struct err *put_process(struct sender *s, const struct unsent *x, uint32_t place)
{
	const struct read_process *p = &x->names.processes[place];
	if (!p->id || known_note(s, PROCESSES, (uint64_t)p->id, 0))
		return NULL;
	struct buf *b = row_begins(s, PROCESSES);
	rowbinary_put(b, (uint64_t)p->id, 8);
	rowbinary_put(b, (uint32_t)p->pid, 4);
	rowbinary_put(b, (uint64_t)p->start_ms, 8);
	rowbinary_put_text(b, p->name);
	rowbinary_put(b, p->user, 4);
	rowbinary_put_text(b, p->container);
	rowbinary_put_text(b, p->command);
	return row_ends(s, PROCESSES);
}

static struct err *put_image(struct sender *s, const struct unsent *x, uint32_t place)
{
	const struct read_image *m = &x->names.images[place];
	struct err *e = NULL;
	if (!m->id || known_note(s, IMAGES, (uint64_t)m->id, 0))
		return NULL;
	for (uint32_t i = 0; !e && m->process && i < x->names.process_count; i++)
		if (x->names.processes[i].id == m->process)
			e = put_process(s, x, i);
	if (e)
		return e;
	struct buf *b = row_begins(s, IMAGES);
	rowbinary_put(b, (uint64_t)m->id, 8);
	rowbinary_put(b, m->kind, 1);
	rowbinary_put_text(b, m->path);
	rowbinary_put_text(b, m->build_id);
	rowbinary_put(b, (uint64_t)m->process, 8);
	return row_ends(s, IMAGES);
}

/* The function with an address. Where it has none, the one that begins last before it: so what is
   found there is what is found here. Code made at run time may change its name. */
static struct err *put_symbol(struct sender *s, const struct unsent *x, uint32_t image,
			      uint64_t address)
{
	const struct read_image *m = &x->names.images[image];
	const struct store_symbol *y = read_symbol(m, address);
	if (!y)
		y = read_symbol_before(m, address);
	if (!y)
		return NULL;
	uint64_t image_id = (uint64_t)m->id;
	if (m->kind == PROFILE_JIT)
		image_id = hash_number(hash_text(HASH_START, y->name), image_id);
	if (known_note(s, SYMBOLS, image_id, y->start))
		return NULL;
	struct buf *b = row_begins(s, SYMBOLS);
	rowbinary_put(b, (uint64_t)m->id, 8);
	rowbinary_put(b, y->start, 8);
	rowbinary_put(b, y->size, 8);
	rowbinary_put_text(b, y->name);
	rowbinary_put(b, (uint64_t)x->id, 8);
	return row_ends(s, SYMBOLS);
}

/* ---- counts ---- */

static struct err *put_count(struct sender *s, const struct unsent *x, const struct read_count *c)
{
	const struct read_image *m = &x->names.images[c->image];
	const struct read_process *p = &x->names.processes[c->process];
	const struct store_symbol *y = read_symbol(m, c->address);
	struct err *e = put_process(s, x, c->process);
	if (!e)
		e = put_image(s, x, c->image);
	if (!e)
		e = put_symbol(s, x, c->image, c->address);
	if (e)
		return e;
	struct buf *b = span_row_begins(s, COUNTS, x);
	rowbinary_put(b, (uint64_t)p->id, 8);
	rowbinary_put(b, (uint64_t)m->id, 8);
	rowbinary_put(b, c->event, 1);
	rowbinary_put(b, c->address, 8);
	rowbinary_put(b, c->count, 8);
	rowbinary_put_text(b, x->epoch.totals[c->event].event.name);
	rowbinary_put_text(b, m->path);
	rowbinary_put_text(b, y ? y->name : "");
	rowbinary_put_text(b, p->name);
	return row_ends(s, COUNTS);
}

/* ---- paths ---- */

static struct err *put_node(struct sender *s, const struct unsent *x, const struct unsent_node *n,
			    uint32_t parent, uint32_t *number)
{
	uint32_t known = s->tree.count;
	struct pack_node node = pack_node(parent, (uint64_t)x->names.images[n->image].id, n->kind,
					  n->address);
	*number = calltree_child(&s->tree, &node);
	if (*number == UINT32_MAX)
		return err_new("out of memory");
	if (*number < known)
		return NULL;
	struct err *e = put_image(s, x, n->image);
	if (!e)
		e = put_symbol(s, x, n->image, n->address - (n->kind == PROFILE_CALL));
	if (!e)
		e = put_symbol(s, x, n->image, n->address);
	if (e)
		return e;
	struct buf *b = row_begins(s, NODES);
	rowbinary_put(b, s->tree_number, 8);
	rowbinary_put(b, *number, 4);
	rowbinary_put(b, parent, 4);
	rowbinary_put(b, node.image, 8);
	rowbinary_put(b, n->kind, 1);
	rowbinary_put(b, n->address, 8);
	return row_ends(s, NODES);
}

/* Nodes that paths of the span lead to, parents first; numbers[] becomes theirs on the server. */
static struct err *put_nodes(struct sender *s, const struct unsent *x, uint32_t *numbers)
{
	struct err *e = NULL;
	for (size_t i = 0; i < x->path_count; i++)
		for (uint32_t at = x->paths[i].node; at && !numbers[at]; at = x->nodes[at].parent)
			numbers[at] = 1;
	for (size_t i = 1; !e && i < x->node_count; i++)
		if (numbers[i])
			e = put_node(s, x, &x->nodes[i], numbers[x->nodes[i].parent], &numbers[i]);
	return e;
}

static struct err *put_path(struct sender *s, const struct unsent *x, const struct unsent_path *p,
			    const uint32_t *numbers)
{
	struct err *e = put_process(s, x, p->process);
	if (e)
		return e;
	struct buf *b = span_row_begins(s, PATHS, x);
	rowbinary_put(b, s->tree_number, 8);
	rowbinary_put(b, numbers[p->node], 4);
	rowbinary_put(b, (uint64_t)x->names.processes[p->process].id, 8);
	rowbinary_put(b, p->event, 1);
	rowbinary_put(b, p->count, 8);
	return row_ends(s, PATHS);
}

static struct err *put_paths(struct sender *s, const struct unsent *x)
{
	uint32_t *numbers = calloc(x->node_count + 1, sizeof *numbers);
	struct err *e = numbers ? put_nodes(s, x, numbers) : err_new("out of memory");
	for (size_t i = 0; !e && i < x->path_count; i++)
		e = put_path(s, x, &x->paths[i], numbers);
	free(numbers);
	return e;
}

/* ---- the span itself ---- */

static void put_events(struct buf *b, const struct read_epoch *x)
{
	size_t n = x->total_count;
	rowbinary_put_length(b, n);
	for (size_t i = 0; i < n; i++)
		rowbinary_put_text(b, x->totals[i].event.name);
	rowbinary_put_length(b, n);
	for (size_t i = 0; i < n; i++)
		rowbinary_put_text(b, x->totals[i].event.unit);
	rowbinary_put_length(b, n);
	for (size_t i = 0; i < n; i++)
		rowbinary_put(b, x->totals[i].event.period, 8);
	rowbinary_put_length(b, n);
	for (size_t i = 0; i < n; i++)
		rowbinary_put(b, x->totals[i].event.every, 8);
	rowbinary_put_length(b, n);
	for (size_t i = 0; i < n; i++)
		rowbinary_put(b, x->totals[i].event.user_only, 1);
	rowbinary_put_length(b, n);
	for (size_t i = 0; i < n; i++)
		rowbinary_put(b, x->totals[i].samples, 8);
	rowbinary_put_length(b, n);
	for (size_t i = 0; i < n; i++)
		rowbinary_put(b, x->totals[i].walked, 8);
}

static void put_losses(struct buf *b, const struct read_samples *x, uint64_t given_up)
{
	size_t n = x->loss_count, more = given_up ? 1 : 0;
	rowbinary_put_length(b, n + more);
	for (size_t i = 0; i < n; i++)
		rowbinary_put(b, x->losses[i].kind, 1);
	if (more)
		rowbinary_put(b, STORE_LOST, 1);
	rowbinary_put_length(b, n + more);
	for (size_t i = 0; i < n; i++)
		rowbinary_put_text(b, x->losses[i].reason);
	if (more)
		rowbinary_put_text(b, "the server was away for too long");
	rowbinary_put_length(b, n + more);
	for (size_t i = 0; i < n; i++)
		rowbinary_put(b, x->losses[i].samples, 8);
	if (more)
		rowbinary_put(b, given_up, 8);
}

/* Nothing where all were counted all of the time, as mostly. */
static void put_coverage(struct buf *b, const struct read_epoch *x)
{
	size_t n = 0;
	for (size_t i = 0; i < x->total_count; i++)
		if (coverage_share(x->totals[i].coverage) < 1)
			n = x->total_count;
	rowbinary_put_length(b, n);
	for (size_t i = 0; i < n; i++)
		rowbinary_put(b, x->totals[i].coverage.enabled_ns, 8);
	rowbinary_put_length(b, n);
	for (size_t i = 0; i < n; i++)
		rowbinary_put(b, x->totals[i].coverage.running_ns, 8);
}

static void put_span(struct sender *s, const struct unsent *x, uint64_t given_up)
{
	struct buf *b = span_row_begins(s, SPANS, x);
	const struct read_epoch *v = &x->epoch;
	rowbinary_put(b, (uint64_t)x->intervals, 8);
	rowbinary_put(b, x->cost.cpu_ns, 8);
	rowbinary_put(b, x->cost.memory, 8);
	rowbinary_put(b, x->cost.kernel_ns, 8);
	rowbinary_put(b, x->cost.kernel_runs, 8);
	rowbinary_put(b, (uint64_t)v->start_ms, 8);
	rowbinary_put_text(b, v->kernel);
	rowbinary_put_text(b, v->machine);
	rowbinary_put_text(b, v->cpu);
	rowbinary_put_text(b, v->version);
	rowbinary_put_text(b, v->note);
	rowbinary_put(b, v->cpus, 4);
	rowbinary_put(b, v->hz, 8);
	put_events(b, v);
	put_losses(b, &x->names, given_up);
	put_coverage(b, v);
}

static struct err *put_all(struct sender *s, struct store *store, int64_t id, uint64_t given_up)
{
	struct unsent x;
	struct err *e = unsent_read(store, id, &x);
	if (e)
		return e;
	for (size_t i = 0; !e && i < x.names.count_count; i++)
		e = put_count(s, &x, &x.names.counts[i]);
	if (!e)
		e = put_paths(s, &x);
	if (!e)
		put_span(s, &x, given_up);
	unsent_free(&x);
	return e;
}

/* ---- an attempt ---- */

/* has[i]: the server has span i already. *count becomes the place of the first of which it has another one of
   the same number. */
static struct err *ask_which(struct sender *s, const struct unsent_span *spans, size_t *count,
			     bool *has)
{
	struct buf sql = {0}, answer = {0};
	buf_printf(&sql,
		   "SELECT span, start_ms FROM %s.sent_spans WHERE source = %llu AND span IN (",
		   server_database(s->server), (unsigned long long)s->source);
	for (size_t i = 0; i < *count; i++)
		buf_printf(&sql, "%s%lld", i ? ", " : "", (long long)spans[i].id);
	buf_puts(&sql, ") FORMAT RowBinary");
	struct err *e = sql.failed ? err_new("out of memory")
				   : server_ask(s->server, buf_text(&sql), &answer);
	struct rowbinary rows = rowbinary_read(&answer);
	while (!e && rowbinary_more(&rows)) {
		uint64_t span = rowbinary_get(&rows, 8);
		int64_t start_ms = (int64_t)rowbinary_get(&rows, 8);
		for (size_t i = 0; i < *count; i++)
			if ((uint64_t)spans[i].id == span && spans[i].start_ms == start_ms)
				has[i] = true;
			else if ((uint64_t)spans[i].id == span)
				*count = i;
	}
	if (!e && rows.damaged)
		e = err_new("%s: the answer makes no sense", server_name(s->server));
	buf_free(&sql);
	buf_free(&answer);
	return e;
}

/* A server that is away is asked something small first, so that no rows are left in its queue. */
static struct err *attempt(struct sender *s, struct store *store, const struct unsent_span *spans,
			   size_t *asked, uint64_t given_up, bool *has)
{
	struct err *e = s->prepared ? NULL : server_prepare(s->server);
	if (!e)
		e = ask_which(s, spans, asked, has);
	s->prepared = !e;
	size_t count = *asked;
	if (!e && !count)
		return NULL;
	if (!e)
		e = random_number(&s->batch);
	uint16_t day = count ? sender_day(spans[0].start_ms) : s->day;
	if (!e &&
	    (s->stale || day != s->day || s->known.count > KNOWN_MAX || s->tree.count > TREE_MAX))
		e = forget(s);
	s->stale = e != NULL;
	s->day = day;
	for (size_t i = 0; !e && i < count; i++)
		if (!has[i])
			e = put_all(s, store, spans[i].id, i ? 0 : given_up);
	for (int table = TABLES; !e && table-- > 0;)
		e = flush(s, (enum table)table); /* SPANS is the last */
	return e;
}

struct err *sender_send(struct sender *s, struct store *store, const struct unsent_span *spans,
			size_t *count, uint64_t given_up)
{
	bool *has = calloc(*count + 1, sizeof *has);
	if (!has)
		return err_new("out of memory");
	struct err *e = attempt(s, store, spans, count, given_up, has);
	free(has);
	if (!e)
		return NULL;
	s->prepared = false;
	s->stale = true;
	for (int i = 0; i < TABLES; i++)
		buf_free(&s->bodies[i]);
	return e;
}

struct err *sender_open(struct server *server, uint64_t source, struct sender **out)
{
	struct sender *s = calloc(1, sizeof *s);
	*out = NULL;
	if (!s)
		return err_new("out of memory");
	s->server = server;
	s->source = source;
	struct err *e = forget(s);
	if (e)
		sender_close(s);
	else
		*out = s;
	return e;
}

void sender_close(struct sender *s)
{
	if (!s)
		return;
	for (int i = 0; i < TABLES; i++)
		buf_free(&s->bodies[i]);
	calltree_free(&s->tree);
	numbers_free(&s->known);
	free(s);
}
