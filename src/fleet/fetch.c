/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A choice of a server's samples as a database in memory. The server adds up what
 * is equal within an epoch, so what comes is as large as the answer, not as the
 * time that was asked for. Filters by image, procedure and process are left to
 * whoever reads the database: they are the same there as for a file.
 */
#include "fleet/fetch.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "fleet/fetching.h"
#include "fleet/numbers.h"
#include "fleet/server.h"
#include "profile/profile.h"

#define DAY_MS INT64_C(86400000)
#define DAYS_MAX 65535
#define SPAN_DAYS 32 /* no span is longer */
#define ROWS_MAX STORE_MEMORY_ROWS_MAX

struct fetch {
	struct fetched all;
	struct server *server;
	const struct read_choice *choice;
	struct buf where;  /* which spans */
	struct buf picked; /* rows of these */
	struct buf days;   /* names of theirs */
	struct numbers epoch_places, image_places, process_places, node_places;
};

/* ---- the question ---- */

static int64_t day_of(int64_t ms)
{
	int64_t day = ms / DAY_MS;
	return day < 0 ? 0 : day > DAYS_MAX ? DAYS_MAX : day;
}

static struct err *say_which(struct fetch *f)
{
	const struct read_choice *c = f->choice;
	const char *database = server_database(f->server);
	int64_t first = day_of(c->from_ms) > SPAN_DAYS ? day_of(c->from_ms) - SPAN_DAYS : 0;
	buf_printf(&f->where,
		   "toUInt16(day) >= %lld AND toUInt16(day) <= %lld"
		   " AND intDiv(start_ms, 2) + intDiv(end_ms, 2) >= %lld"
		   " AND intDiv(start_ms, 2) + intDiv(end_ms, 2) < %lld AND start_ms < %lld",
		   (long long)first, (long long)day_of(c->to_ms), (long long)c->from_ms,
		   (long long)c->to_ms, (long long)c->to_ms);
	if (c->host) {
		buf_puts(&f->where, " AND host = ");
		server_quote(&f->where, c->host);
	}
	if (c->epoch > 0 && (uint64_t)c->epoch <= f->all.epochs.count)
		buf_printf(&f->where, " AND source = %llu AND epoch = %llu",
			   (unsigned long long)f->all.keys[c->epoch - 1].source,
			   (unsigned long long)f->all.keys[c->epoch - 1].epoch);
	fetch_put_named(&f->picked, f->server, buf_text(&f->where));
	buf_printf(&f->days,
		   " source IN (SELECT source FROM %s.sent_spans WHERE %s) AND day IN"
		   " (SELECT day FROM %s.sent_spans WHERE %s)",
		   database, buf_text(&f->where), database, buf_text(&f->where));
	return f->where.failed || f->picked.failed || f->days.failed ? err_new("out of memory")
								     : NULL;
}

static struct err *ask(struct fetch *f, const char *columns, const char *table, const char *which,
		       const char *rest, struct buf *answer, struct rowbinary *rows)
{
	struct buf sql = {0};
	*answer = (struct buf){0};
	buf_printf(&sql, "SELECT %s FROM %s.%s WHERE%s %s", columns, server_database(f->server),
		   table, which, rest);
	return fetch_rows(f->server, &sql, answer, rows);
}

static struct err *too_much(void)
{
	return err_new("that is more than %u rows: ask for a shorter time, or one --host",
		       ROWS_MAX);
}

/* Makes room for one more of `count`. */
#define GROW(items, count)                                                \
	({                                                                \
		void *moved_ = fetch_room(items, count, sizeof *(items)); \
		if (moved_)                                               \
			(items) = moved_;                                 \
		moved_ != NULL;                                           \
	})

/* ---- names ---- */

static struct err *fetch_processes(struct fetch *f)
{
	struct buf answer;
	struct rowbinary r;
	struct err *e = ask(f,
			    "source, process, any(pid), any(start_ms), any(name), any(user),"
			    " any(container), any(command)",
			    "sent_processes", buf_text(&f->days), "GROUP BY source, process",
			    &answer, &r);
	while (!e && rowbinary_more(&r)) {
		uint64_t source = rowbinary_get(&r, 8), id = rowbinary_get(&r, 8);
		uint32_t *place = numbers_at(&f->process_places, source, id, 0);
		if (!place || !GROW(f->all.processes, f->all.process_count)) {
			e = err_new("out of memory");
			break;
		}
		struct store_process *p = &f->all.processes[f->all.process_count++];
		p->pid = (int32_t)rowbinary_get(&r, 4);
		p->start_ms = (int64_t)rowbinary_get(&r, 8);
		p->name = rowbinary_text(&r, f->all.strings);
		p->user = (uint32_t)rowbinary_get(&r, 4);
		p->container = rowbinary_text(&r, f->all.strings);
		p->command = rowbinary_text(&r, f->all.strings);
		*place = (uint32_t)f->all.process_count;
	}
	return fetch_end(f->server, e, &answer, &r);
}

static struct err *fetch_images(struct fetch *f)
{
	struct buf answer;
	struct rowbinary r;
	struct err *e = ask(f, "source, image, any(kind), any(path), any(build_id), any(process)",
			    "sent_images", buf_text(&f->days), "GROUP BY source, image", &answer,
			    &r);
	while (!e && rowbinary_more(&r)) {
		uint64_t source = rowbinary_get(&r, 8), id = rowbinary_get(&r, 8);
		uint32_t *place = numbers_at(&f->image_places, source, id, 0);
		if (!place || !GROW(f->all.images, f->all.image_count)) {
			e = err_new("out of memory");
			break;
		}
		struct store_image *m = &f->all.images[f->all.image_count++];
		uint64_t kind = rowbinary_get(&r, 1);
		m->kind = kind >= PROFILE_KINDS ? PROFILE_NONE : (uint8_t)kind;
		m->path = rowbinary_text(&r, f->all.strings);
		m->build_id = rowbinary_text(&r, f->all.strings);
		m->process = numbers_find(&f->process_places, source, rowbinary_get(&r, 8), 0);
		*place = (uint32_t)f->all.image_count;
	}
	return fetch_end(f->server, e, &answer, &r);
}

static struct err *fetch_symbols(struct fetch *f)
{
	struct buf answer;
	struct rowbinary r;
	struct err *e = ask(f, "source, image, start, argMax(size, span), argMax(name, span)",
			    "sent_symbols", buf_text(&f->days), "GROUP BY source, image, start",
			    &answer, &r);
	while (!e && rowbinary_more(&r)) {
		uint64_t source = rowbinary_get(&r, 8), id = rowbinary_get(&r, 8);
		if (!GROW(f->all.symbols, f->all.symbol_count)) {
			e = err_new("out of memory");
			break;
		}
		struct store_symbol *y = &f->all.symbols[f->all.symbol_count];
		y->image = numbers_find(&f->image_places, source, id, 0);
		y->start = rowbinary_get(&r, 8);
		y->size = rowbinary_get(&r, 8);
		y->name = rowbinary_text(&r, f->all.strings);
		f->all.symbol_count += y->image != 0;
	}
	return fetch_end(f->server, e, &answer, &r);
}

/* ---- samples ---- */

static struct err *ask_counts(struct fetch *f, struct buf *answer)
{
	struct rowbinary r;
	return ask(f, "source, epoch, process, image, event, address, sum(samples)", "sent_counts",
		   buf_text(&f->picked), "GROUP BY source, epoch, process, image, event, address",
		   answer, &r);
}

/* The place of a row's epoch; what came after we asked for epochs is left out. */
static bool find_epoch(const struct fetch *f, uint64_t source, uint64_t id, uint32_t *place)
{
	uint32_t number = numbers_find(&f->epoch_places, source, id, 0);
	*place = number - 1;
	return number != 0;
}

static struct err *read_counts(struct fetch *f, struct buf *answer)
{
	struct rowbinary r = rowbinary_read(answer);
	struct err *e = NULL;
	while (!e && rowbinary_more(&r)) {
		if (f->all.count_count >= ROWS_MAX)
			e = too_much();
		else if (!GROW(f->all.counts, f->all.count_count))
			e = err_new("out of memory");
		if (e)
			break;
		struct fetched_count *x = &f->all.counts[f->all.count_count];
		uint64_t source = rowbinary_get(&r, 8), epoch = rowbinary_get(&r, 8);
		x->row.process = numbers_find(&f->process_places, source, rowbinary_get(&r, 8), 0);
		x->row.image = numbers_find(&f->image_places, source, rowbinary_get(&r, 8), 0);
		x->row.event = (uint32_t)rowbinary_get(&r, 1);
		x->row.address = rowbinary_get(&r, 8);
		x->row.count = rowbinary_get(&r, 8);
		f->all.count_count += find_epoch(f, source, epoch, &x->epoch);
	}
	return fetch_end(f->server, e, answer, &r);
}

/* Parents come first, within a tree. */
static struct err *fetch_nodes(struct fetch *f)
{
	struct buf answer, which = {0};
	struct rowbinary r;
	buf_printf(&which, "%s AND tree IN (SELECT tree FROM %s.sent_paths WHERE%s)",
		   buf_text(&f->days), server_database(f->server), buf_text(&f->picked));
	struct err *e = ask(f,
			    "source, tree, node, any(parent), any(image), any(kind), any(address)",
			    "sent_nodes", buf_text(&which),
			    "GROUP BY source, tree, node ORDER BY source, tree, node", &answer, &r);
	buf_free(&which);
	while (!e && rowbinary_more(&r)) {
		uint64_t source = rowbinary_get(&r, 8), tree = rowbinary_get(&r, 8);
		uint64_t node = rowbinary_get(&r, 4), parent = rowbinary_get(&r, 4);
		uint32_t above = numbers_find(&f->node_places, source, tree, parent);
		uint32_t *place = numbers_at(&f->node_places, source, tree, node);
		if (f->all.node_count >= ROWS_MAX)
			e = too_much();
		else if (!place || !GROW(f->all.nodes, f->all.node_count))
			e = err_new("out of memory");
		if (e)
			break;
		struct store_node *n = &f->all.nodes[f->all.node_count++];
		n->parent = above;
		n->image = numbers_find(&f->image_places, source, rowbinary_get(&r, 8), 0);
		uint64_t kind = rowbinary_get(&r, 1);
		n->kind = kind == PROFILE_ROOT || kind > PROFILE_PARTIAL ? PROFILE_PARTIAL
									 : (uint8_t)kind;
		n->address = rowbinary_get(&r, 8);
		*place = (uint32_t)f->all.node_count;
		r.damaged = r.damaged || (parent && !above);
	}
	return fetch_end(f->server, e, &answer, &r);
}

static struct err *ask_paths(struct fetch *f, struct buf *answer)
{
	struct rowbinary r;
	return ask(f, "source, epoch, tree, node, process, event, sum(samples)", "sent_paths",
		   buf_text(&f->picked), "GROUP BY source, epoch, tree, node, process, event",
		   answer, &r);
}

static struct err *read_paths(struct fetch *f, struct buf *answer)
{
	struct rowbinary r = rowbinary_read(answer);
	struct err *e = NULL;
	while (!e && rowbinary_more(&r)) {
		if (f->all.path_count >= ROWS_MAX)
			e = too_much();
		else if (!GROW(f->all.paths, f->all.path_count))
			e = err_new("out of memory");
		if (e)
			break;
		struct fetched_path *x = &f->all.paths[f->all.path_count];
		uint64_t source = rowbinary_get(&r, 8), epoch = rowbinary_get(&r, 8);
		uint64_t tree = rowbinary_get(&r, 8), node = rowbinary_get(&r, 4);
		x->row.node = numbers_find(&f->node_places, source, tree, node);
		x->row.process = numbers_find(&f->process_places, source, rowbinary_get(&r, 8), 0);
		x->row.event = (uint32_t)rowbinary_get(&r, 1);
		x->row.count = rowbinary_get(&r, 8);
		f->all.path_count += find_epoch(f, source, epoch, &x->epoch);
	}
	return fetch_end(f->server, e, answer, &r);
}

static struct err *fetch_spans(struct fetch *f)
{
	struct buf answer;
	struct rowbinary r;
	struct read_epoch *now = NULL;
	uint64_t before[STORE_EVENT_MAX] = {0};
	struct err *e = ask(
		f,
		"source, epoch, start_ms, end_ms, cpu_ns, memory, kernel_ns, kernel_runs,"
		" loss_kind, loss_reason, loss_samples, samples, enabled, running",
		"sent_spans", buf_text(&f->picked), "ORDER BY source, epoch, span", &answer, &r);
	while (!e && rowbinary_more(&r)) {
		if (f->all.span_count >= ROWS_MAX)
			e = too_much();
		else if (!GROW(f->all.spans, f->all.span_count))
			e = err_new("out of memory");
		if (e)
			break;
		struct fetched_span *x = &f->all.spans[f->all.span_count];
		struct store_loss *losses = NULL;
		uint64_t source = rowbinary_get(&r, 8), epoch = rowbinary_get(&r, 8);
		*x = (struct fetched_span){0};
		x->row.start_ms = (int64_t)rowbinary_get(&r, 8);
		x->row.end_ms = (int64_t)rowbinary_get(&r, 8);
		x->row.cost.cpu_ns = rowbinary_get(&r, 8);
		x->row.cost.memory = rowbinary_get(&r, 8);
		x->row.cost.kernel_ns = rowbinary_get(&r, 8);
		x->row.cost.kernel_runs = rowbinary_get(&r, 8);
		e = fetch_losses(&r, f->all.strings, &losses, &x->row.loss_count);
		x->row.losses = losses;
		bool known = find_epoch(f, source, epoch, &x->epoch);
		struct read_epoch *its = known ? &f->all.epochs.items[x->epoch] : NULL;
		if (its != now)
			memset(before, 0, sizeof before);
		now = its;
		fetch_coverage(&r, its, before);
		if (known)
			f->all.span_count++;
		else
			free(losses);
	}
	return fetch_end(f->server, e, &answer, &r);
}

/* ---- all of it ---- */

static struct err *number_epochs(struct fetch *f)
{
	for (size_t i = 0; i < f->all.epochs.count; i++) {
		uint32_t *place = numbers_at(&f->epoch_places, f->all.keys[i].source,
					     f->all.keys[i].epoch, 0);
		if (!place)
			return err_new("out of memory");
		*place = (uint32_t)i + 1;
	}
	return NULL;
}

/* Rows before names: the server has got the names of a row before it counts the row. */
static struct err *fetch_all(struct fetch *f, bool paths)
{
	struct buf counts = {0}, ends = {0};
	struct err *e = fetch_spans(f);
	if (!e)
		e = ask_counts(f, &counts);
	if (!e && paths)
		e = ask_paths(f, &ends);
	if (!e)
		e = fetch_processes(f);
	if (!e)
		e = fetch_images(f);
	if (!e)
		e = fetch_symbols(f);
	if (!e && paths)
		e = fetch_nodes(f);
	if (!e)
		e = read_counts(f, &counts);
	if (!e)
		e = read_paths(f, &ends);
	buf_free(&counts);
	buf_free(&ends);
	return e;
}

static void fetch_free(struct fetch *f)
{
	struct fetched *x = &f->all;
	for (size_t i = 0; i < x->span_count; i++)
		free((void *)x->spans[i].row.losses);
	read_epochs_free(&x->epochs);
	free(x->keys);
	free(x->images);
	free(x->processes);
	free(x->symbols);
	free(x->nodes);
	free(x->counts);
	free(x->paths);
	free(x->spans);
	numbers_free(&f->epoch_places);
	numbers_free(&f->image_places);
	numbers_free(&f->process_places);
	numbers_free(&f->node_places);
	buf_free(&f->where);
	buf_free(&f->picked);
	buf_free(&f->days);
}

struct err *fetch_store(struct server *server, const struct read_choice *choice, bool paths,
			struct store **out)
{
	struct fetch f = {.server = server, .choice = choice};
	*out = NULL;
	struct err *e = fetch_all_epochs(server, &f.all.epochs, &f.all.keys);
	f.all.strings = f.all.epochs.strings;
	if (!e)
		e = number_epochs(&f);
	if (!e)
		e = say_which(&f);
	if (!e)
		e = fetch_all(&f, paths);
	if (!e)
		e = store_open_memory(server_name(server), out);
	if (!e)
		e = fetched_add(&f.all, *out);
	if (e) {
		store_close(*out);
		*out = NULL;
	}
	fetch_free(&f);
	return e;
}
