/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of a while, by place. */
#include <stdlib.h>

#include "base/err.h"
#include "profile/profile.h"
#include "store/covered.h"
#include "store/reading.h"

#define UNSETTLED_MAX 65536 /* rows that are added before equal ones are joined */

/* ?4 is a host, or "" for any. */
#define OF_HOST " AND (?4 = '' OR epoch IN (SELECT id FROM epoch WHERE host = ?4))"

/* ---- spans ---- */

struct err *spans_list(struct store *s, const struct read_choice *c, struct span_list *out)
{
	sqlite3_stmt *r;
	bool row = true;
	*out = (struct span_list){0};
	struct err *e = sql_prepare(s, &r,
				    "SELECT id, epoch, start, end FROM segment"
				    " WHERE start / 2 + end / 2 >= ?1 AND start / 2 + end / 2 < ?2"
				    " AND start < ?2 AND (?3 = 0 OR epoch = ?3)" OF_HOST
				    " ORDER BY epoch, start",
				    "ddds", c->from_ms, c->to_ms, c->epoch, c->host ? c->host : "");
	while (!e) {
		e = sql_step(s, r, &row);
		if (e || !row)
			break;
		struct span_item x = {sqlite3_column_int64(r, 0), sqlite3_column_int64(r, 1),
				      sqlite3_column_int64(r, 2), sqlite3_column_int64(r, 3)};
		if (!(out->count & (out->count - 1))) {
			struct span_item *moved = reallocarray(
				out->items, out->count ? out->count * 2 : 1, sizeof *moved);
			if (!moved) {
				e = err_new("out of memory");
				break;
			}
			out->items = moved;
		}
		if (!out->count || x.start_ms < out->from_ms)
			out->from_ms = x.start_ms;
		if (!out->count || x.end_ms > out->to_ms)
			out->to_ms = x.end_ms;
		if (x.end_ms - x.start_ms > out->longest_ms)
			out->longest_ms = x.end_ms - x.start_ms;
		out->items[out->count++] = x;
	}
	sql_done(s, r);
	return e;
}

/* Mostly no span says anything of it, and so need not be asked. */
struct err *covered_spans(struct store *s, const struct span_list *list, struct covered *out)
{
	bool any;
	struct err *e = covered_any(s, &any);
	for (size_t i = 0; !e && any && i < list->count; i++)
		e = covered_add(s, list->items[i].id, out);
	return e;
}

/* By place of the events that were met; those that were never counted become known here. */
static struct err *add_coverage(struct store *s, const struct span_list *list, struct names *n,
				struct read_samples *out)
{
	struct covered covered = {0};
	uint32_t place;
	struct err *e = covered_spans(s, list, &covered);
	for (size_t i = 0; !e && i < covered.count; i++)
		if (coverage_share(covered.items[i].coverage) < 1)
			e = names_event(n, (uint64_t)covered.items[i].event, &place);
	out->coverage = e ? NULL : calloc(n->event_count + 1, sizeof *out->coverage);
	if (!e && !out->coverage)
		e = err_new("out of memory");
	for (size_t i = 0; !e && i < covered.count; i++)
		if (coverage_share(covered.items[i].coverage) < 1) {
			e = names_event(n, (uint64_t)covered.items[i].event, &place);
			if (!e)
				out->coverage[place] = covered.items[i].coverage;
		}
	return e;
}

/* ---- counts ---- */

struct gather {
	struct pack_count *rows;
	size_t count, settled;
};

static struct err *gather_add(struct gather *g, const struct segment *x)
{
	struct pack_count *moved = reallocarray(g->rows, g->count + x->count_count + 1,
						sizeof *moved);
	if (!moved)
		return err_new("out of memory");
	g->rows = moved;
	for (size_t i = 0; i < x->count_count; i++)
		g->rows[g->count++] = x->counts[i];
	if (g->count - g->settled > UNSETTLED_MAX + g->settled)
		g->settled = g->count = pack_settle_counts(g->rows, g->count);
	return NULL;
}

/* Those of one host. */
static struct err *gather_spans(struct store *s, const struct span_list *list,
				const uint32_t *hosts, uint32_t host, struct gather *g)
{
	struct err *e = NULL;
	g->count = g->settled = 0;
	for (size_t i = 0; !e && i < list->count; i++) {
		struct segment x;
		if (hosts[i] != host)
			continue;
		e = segment_read(s, list->items[i].id, SEGMENT_COUNTS, &x);
		if (!e)
			e = gather_add(g, &x);
		segment_free(&x);
	}
	if (!e && g->count)
		g->count = pack_settle_counts(g->rows, g->count);
	return e;
}

static int compare(const void *a, const void *b)
{
	const struct read_count *x = a, *y = b;
	if (x->image != y->image)
		return x->image < y->image ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->event != y->event)
		return x->event < y->event ? -1 : 1;
	return x->host < y->host ? -1 : x->host > y->host;
}

static struct err *place_rows(struct names *n, const struct read_choice *choice,
			      const struct gather *g, uint32_t host, struct read_samples *out)
{
	struct wanted w = {.choice = choice};
	struct err *e = NULL;
	struct read_count *moved = reallocarray(out->counts, out->count_count + g->count + 1,
						sizeof *moved);
	if (!moved)
		return err_new("out of memory");
	out->counts = moved;
	for (size_t i = 0; !e && i < g->count; i++) {
		const struct pack_count *x = &g->rows[i];
		struct read_count y = {.host = host, .address = x->address, .count = x->count};
		e = names_image(n, x->image, &y.image);
		if (!e)
			e = names_process(n, x->process, &y.process);
		if (!e)
			e = names_event(n, x->event, &y.event);
		if (!e && wanted_sample(&w, n, y.process, y.image, y.address))
			out->counts[out->count_count++] = y;
	}
	wanted_free(&w);
	return e;
}

/* ---- hosts ---- */

static struct err *find_host(struct store *s, struct profile *strings, int64_t epoch,
			     struct read_samples *out, uint32_t *place)
{
	sqlite3_stmt *r;
	bool row = false;
	struct err *e = sql_prepare(s, &r, "SELECT host FROM epoch WHERE id = ?", "d", epoch);
	if (!e)
		e = sql_step(s, r, &row);
	const char *host = profile_string(strings, !e && row ? sql_text(r, 0) : "");
	sql_done(s, r);
	for (*place = 0; *place < out->host_count; ++*place)
		if (out->hosts[*place] == host)
			return e;
	const char **moved = e ? NULL
			       : reallocarray(out->hosts, out->host_count + 1, sizeof *moved);
	if (!moved)
		return e ? e : err_new("out of memory");
	out->hosts = moved;
	out->hosts[out->host_count++] = host;
	return NULL;
}

/* The place of each span's; spans are ordered by epoch. */
static struct err *find_hosts(struct store *s, struct profile *strings,
			      const struct span_list *list, struct read_samples *out,
			      uint32_t *places)
{
	struct err *e = NULL;
	for (size_t i = 0; !e && i < list->count; i++) {
		if (i && list->items[i].epoch == list->items[i - 1].epoch)
			places[i] = places[i - 1];
		else
			e = find_host(s, strings, list->items[i].epoch, out, &places[i]);
	}
	return e;
}

static struct err *read_counts(struct store *s, const struct read_choice *choice,
			       const struct span_list *list, struct names *n,
			       struct read_samples *out)
{
	struct gather g = {0};
	uint32_t *hosts = calloc(list->count + 1, sizeof *hosts);
	struct err *e = hosts ? find_hosts(s, n->strings, list, out, hosts)
			      : err_new("out of memory");
	for (uint32_t host = 0; !e && host < out->host_count; host++) {
		e = gather_spans(s, list, hosts, host, &g);
		if (!e)
			e = place_rows(n, choice, &g, host, out);
	}
	if (!e && out->count_count)
		qsort(out->counts, out->count_count, sizeof *out->counts, compare);
	free(hosts);
	free(g.rows);
	return e;
}

/* ---- losses ---- */

static struct err *add_losses(struct store *s, const struct read_choice *c, struct profile *strings,
			      struct read_samples *out)
{
	sqlite3_stmt *r;
	struct err *e = sql_prepare(
		s, &r,
		"SELECT l.kind, l.reason, sum(l.samples) FROM loss l JOIN segment s"
		" ON s.id = l.segment WHERE s.start / 2 + s.end / 2 >= ?1"
		" AND s.start / 2 + s.end / 2 < ?2 AND (?3 = 0 OR s.epoch = ?3)" OF_HOST
		" GROUP BY l.kind, l.reason ORDER BY 1, 3 DESC",
		"ddds", c->from_ms, c->to_ms, c->epoch, c->host ? c->host : "");
	if (!e)
		e = losses_read(s, strings, r, &out->losses, &out->loss_count);
	sql_done(s, r);
	return e;
}

void names_hand_over(struct names *n, struct read_samples *out)
{
	out->strings = n->strings;
	out->images = n->images;
	out->image_count = n->image_count;
	out->processes = n->processes;
	out->process_count = n->process_count;
	out->events = n->events;
	out->event_count = n->event_count;
	n->strings = NULL;
	n->images = NULL;
	n->image_count = 0;
	n->processes = NULL;
	n->events = NULL;
	names_close(n);
}

struct err *read_samples(struct store *s, const struct read_choice *choice,
			 struct read_samples *out)
{
	struct span_list list = {0};
	struct names n = {0};
	*out = (struct read_samples){0};
	struct err *e = sql_run(s, "BEGIN"); /* all of it as it was at one moment */
	if (!e)
		e = names_open(&n, s);
	if (!e)
		e = spans_list(s, choice, &list);
	if (!e)
		e = read_counts(s, choice, &list, &n, out);
	if (!e)
		e = add_coverage(s, &list, &n, out);
	if (!e)
		e = add_losses(s, choice, n.strings, out);
	sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	out->from_ms = list.from_ms;
	out->to_ms = list.to_ms;
	out->longest_ms = list.longest_ms;
	out->spans = list.count;
	names_hand_over(&n, out);
	free(list.items);
	if (e)
		read_samples_free(out);
	return e;
}

void read_samples_free(struct read_samples *x)
{
	for (size_t i = 0; i < x->image_count; i++)
		free(x->images[i].symbols);
	free(x->images);
	free(x->processes);
	free(x->events);
	free(x->coverage);
	free(x->counts);
	free(x->hosts);
	free(x->losses);
	profile_free(x->strings);
	*x = (struct read_samples){0};
}
