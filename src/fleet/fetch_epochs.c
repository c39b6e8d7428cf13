/* SPDX-License-Identifier: Apache-2.0 */
/* The epochs that a server has, with their sums. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "fleet/fetching.h"
#include "fleet/server.h"
#include "profile/profile.h"

void *fetch_room(void *items, size_t count, size_t size)
{
	if (count & (count - 1))
		return items;
	return reallocarray(items, count ? count * 2 : 1, size);
}

void fetch_put_named(struct buf *sql, struct server *s, const char *where)
{
	buf_printf(sql,
		   " (batch, span) IN (SELECT min(batch), span FROM %s.sent_spans%s%s GROUP BY"
		   " source, span)",
		   server_database(s), *where ? " WHERE " : "", where);
}

struct err *fetch_rows(struct server *s, struct buf *sql, struct buf *answer,
		       struct rowbinary *rows)
{
	buf_puts(sql, " FORMAT RowBinary");
	struct err *e = sql->failed ? err_new("out of memory")
				    : server_ask_rows(s, buf_text(sql), answer);
	buf_free(sql);
	*rows = rowbinary_read(answer);
	return e;
}

struct err *fetch_end(struct server *s, struct err *e, struct buf *answer,
		      const struct rowbinary *rows)
{
	if (!e && rows->damaged)
		e = err_new("%s: the answer makes no sense", server_name(s));
	buf_free(answer);
	return e;
}

/* ---- sums ---- */

static const char sums[] =
	"SELECT source, epoch, min(epoch_start_ms) AS began, any(host) AS its_host, any(kernel), any(machine),"
	" any(cpu), any(version), any(note), any(cpus), any(hz), count(), min(start_ms),"
	" max(end_ms), min(end_ms - start_ms), max(end_ms - start_ms), sum(end_ms - start_ms),"
	" sum(cpu_ns), max(memory), sum(kernel_ns), sum(kernel_runs), any(event), any(unit),"
	" any(period), any(every), any(user_only), sumForEach(samples), sumForEach(walked)"
	" FROM %s.sent_spans WHERE";

/* Lists of the same length; 0 events where they are not. */
static struct err *read_events(struct rowbinary *r, struct profile *strings, struct read_epoch *x)
{
	uint64_t n = rowbinary_length(r, 1);
	if (r->damaged || n > STORE_EVENT_MAX) {
		r->damaged = true;
		return NULL;
	}
	x->totals = calloc(n + 1, sizeof *x->totals);
	if (!x->totals)
		return err_new("out of memory");
	x->total_count = n;
	for (uint64_t i = 0; i < n; i++)
		x->totals[i].event.name = rowbinary_text(r, strings);
	for (int list = 0; list < 6; list++) {
		r->damaged = r->damaged || rowbinary_length(r, 1) != n;
		for (uint64_t i = 0; i < n; i++) {
			struct read_total *t = &x->totals[i];
			if (list == 0)
				t->event.unit = rowbinary_text(r, strings);
			else if (list == 1)
				t->event.period = rowbinary_get(r, 8);
			else if (list == 2)
				t->event.every = rowbinary_get(r, 8);
			else if (list == 3)
				t->event.user_only = rowbinary_get(r, 1) != 0;
			else if (list == 4)
				t->samples = rowbinary_get(r, 8);
			else
				t->walked = rowbinary_get(r, 8);
		}
	}
	return NULL;
}

struct err *fetch_read_epoch(struct rowbinary *r, struct profile *strings, struct read_epoch *x,
			     struct fetched_key *key)
{
	*x = (struct read_epoch){.joined = 1};
	key->source = rowbinary_get(r, 8);
	key->epoch = rowbinary_get(r, 8);
	rowbinary_get(r, 8);
	x->host = rowbinary_text(r, strings);
	x->kernel = rowbinary_text(r, strings);
	x->machine = rowbinary_text(r, strings);
	x->cpu = rowbinary_text(r, strings);
	x->version = rowbinary_text(r, strings);
	x->note = rowbinary_text(r, strings);
	x->cpus = (uint32_t)rowbinary_get(r, 4);
	x->hz = rowbinary_get(r, 8);
	x->spans = rowbinary_get(r, 8);
	x->start_ms = (int64_t)rowbinary_get(r, 8);
	x->end_ms = (int64_t)rowbinary_get(r, 8);
	x->finest_ms = (int64_t)rowbinary_get(r, 8);
	x->coarsest_ms = (int64_t)rowbinary_get(r, 8);
	x->busy_ms = rowbinary_get(r, 8);
	x->cost.cpu_ns = rowbinary_get(r, 8);
	x->cost.memory = rowbinary_get(r, 8);
	x->cost.kernel_ns = rowbinary_get(r, 8);
	x->cost.kernel_runs = rowbinary_get(r, 8);
	return read_events(r, strings, x);
}

static struct err *read_sums(struct server *s, struct read_epochs *out, struct fetched_key **keys)
{
	struct buf sql = {0}, answer = {0};
	struct rowbinary rows;
	buf_printf(&sql, sums, server_database(s));
	fetch_put_named(&sql, s, "");
	buf_puts(&sql, " GROUP BY source, epoch ORDER BY began, its_host, source, epoch");
	struct err *e = fetch_rows(s, &sql, &answer, &rows);
	while (!e && rowbinary_more(&rows)) {
		struct read_epoch *items = fetch_room(out->items, out->count, sizeof *items);
		if (items)
			out->items = items;
		struct fetched_key *more = fetch_room(*keys, out->count, sizeof *more);
		if (more)
			*keys = more;
		if (!items || !more) {
			e = err_new("out of memory");
			break;
		}
		e = fetch_read_epoch(&rows, out->strings, &items[out->count], &more[out->count]);
		items[out->count].id = (int64_t)out->count + 1;
		out->count++;
	}
	return fetch_end(s, e, &answer, &rows);
}

/* ---- losses ---- */

struct err *fetch_losses(struct rowbinary *r, struct profile *strings, struct store_loss **list,
			 size_t *count)
{
	uint64_t n = rowbinary_length(r, 1);
	size_t first = *count;
	struct store_loss *moved = n ? reallocarray(*list, first + n, sizeof *moved) : *list;
	if (n && !moved)
		return err_new("out of memory");
	*list = moved;
	for (uint64_t i = 0; i < n; i++)
		moved[first + i] = (struct store_loss){
			rowbinary_get(r, 1) ? STORE_UNKNOWN : STORE_LOST, "", 0};
	r->damaged = r->damaged || rowbinary_length(r, 1) != n;
	for (uint64_t i = 0; i < n; i++)
		moved[first + i].reason = rowbinary_text(r, strings);
	r->damaged = r->damaged || rowbinary_length(r, 8) != n;
	for (uint64_t i = 0; i < n; i++)
		moved[first + i].samples = rowbinary_get(r, 8);
	*count = first + n;
	return NULL;
}

static struct err *read_losses(struct server *s, struct read_epochs *out,
			       const struct fetched_key *keys)
{
	struct buf sql = {0}, answer = {0};
	struct rowbinary rows;
	buf_printf(&sql,
		   "SELECT source, epoch, groupArray(kind), groupArray(reason), groupArray(n) FROM"
		   " (SELECT source, epoch, kind, reason, sum(lost) AS n FROM %s.sent_spans"
		   " ARRAY JOIN loss_kind AS kind, loss_reason AS reason, loss_samples AS lost"
		   " WHERE",
		   server_database(s));
	fetch_put_named(&sql, s, "");
	buf_puts(&sql, " GROUP BY source, epoch, kind, reason ORDER BY kind, n DESC)"
		       " GROUP BY source, epoch");
	struct err *e = fetch_rows(s, &sql, &answer, &rows);
	while (!e && rowbinary_more(&rows)) {
		uint64_t source = rowbinary_get(&rows, 8), epoch = rowbinary_get(&rows, 8);
		struct store_loss *losses = NULL;
		size_t count = 0, i = 0;
		e = fetch_losses(&rows, out->strings, &losses, &count);
		while (i < out->count && (keys[i].source != source || keys[i].epoch != epoch))
			i++;
		if (i == out->count || out->items[i].losses) {
			free(losses); /* of an epoch that came meanwhile */
			continue;
		}
		out->items[i].losses = losses;
		out->items[i].loss_count = count;
	}
	return fetch_end(s, e, &answer, &rows);
}

void fetch_coverage(struct rowbinary *r, struct read_epoch *x, uint64_t *before)
{
	uint64_t samples[STORE_EVENT_MAX] = {0}, times[2][STORE_EVENT_MAX] = {{0}};
	uint64_t *const lists[] = {samples, times[0], times[1]};
	for (int list = 0; list < 3; list++) {
		uint64_t n = rowbinary_length(r, 8);
		r->damaged = r->damaged || n > STORE_EVENT_MAX;
		for (uint64_t i = 0; !r->damaged && i < n; i++)
			lists[list][i] = rowbinary_get(r, 8);
	}
	for (size_t i = 0; !r->damaged && x && i < x->total_count && i < STORE_EVENT_MAX; i++) {
		coverage_add(&x->totals[i].coverage, before[i],
			     (struct coverage){times[0][i], times[1][i]}, samples[i]);
		before[i] += samples[i];
	}
}

static struct read_epoch *find_epoch(struct read_epochs *all, const struct fetched_key *keys,
				     uint64_t source, uint64_t epoch)
{
	for (size_t i = 0; i < all->count; i++)
		if (keys[i].source == source && keys[i].epoch == epoch)
			return &all->items[i];
	return NULL;
}

/* The rest of the samples, which were counted all of the time. */
static void cover_rest(struct read_epoch *x, const uint64_t *before)
{
	for (size_t i = 0; x && i < x->total_count && i < STORE_EVENT_MAX; i++)
		if (x->totals[i].samples > before[i])
			coverage_add(&x->totals[i].coverage, before[i], (struct coverage){0, 0},
				     x->totals[i].samples - before[i]);
}

static struct err *read_coverage(struct server *s, struct read_epochs *out,
				 const struct fetched_key *keys)
{
	struct buf sql = {0}, answer = {0};
	struct rowbinary rows;
	struct read_epoch *now = NULL;
	uint64_t before[STORE_EVENT_MAX] = {0};
	buf_printf(&sql,
		   "SELECT source, epoch, samples, enabled, running FROM %s.sent_spans WHERE"
		   " notEmpty(enabled) AND",
		   server_database(s));
	fetch_put_named(&sql, s, "");
	buf_puts(&sql, " ORDER BY source, epoch");
	struct err *e = fetch_rows(s, &sql, &answer, &rows);
	while (!e && rowbinary_more(&rows)) {
		uint64_t source = rowbinary_get(&rows, 8), epoch = rowbinary_get(&rows, 8);
		struct read_epoch *x = find_epoch(out, keys, source, epoch);
		if (x != now) {
			cover_rest(now, before);
			memset(before, 0, sizeof before);
			now = x;
		}
		fetch_coverage(&rows, x, before);
	}
	cover_rest(now, before);
	return fetch_end(s, e, &answer, &rows);
}

static struct err *read_size(struct server *s, struct read_epochs *out)
{
	struct buf sql = {0}, answer = {0};
	struct rowbinary rows;
	buf_puts(&sql, "SELECT toUInt64(sum(bytes_on_disk)) FROM system.parts WHERE active AND"
		       " database = '");
	buf_append(&sql, server_database(s) + 1, strlen(server_database(s)) - 2);
	buf_puts(&sql, "'");
	struct err *e = fetch_rows(s, &sql, &answer, &rows);
	out->bytes = rowbinary_get(&rows, 8);
	return fetch_end(s, e, &answer, &rows);
}

struct err *fetch_all_epochs(struct server *s, struct read_epochs *out, struct fetched_key **keys)
{
	*out = (struct read_epochs){0};
	*keys = NULL;
	struct err *e = server_check(s);
	if (!e)
		e = profile_new(&out->strings);
	if (!e)
		e = read_sums(s, out, keys);
	if (e)
		read_epochs_free(out);
	return e;
}

struct err *fetch_epochs(struct server *s, struct read_epochs *out)
{
	struct fetched_key *keys;
	struct err *e = fetch_all_epochs(s, out, &keys);
	if (!e)
		e = read_losses(s, out, keys);
	if (!e)
		e = read_coverage(s, out, keys);
	if (!e)
		e = read_size(s, out);
	free(keys);
	if (e)
		read_epochs_free(out);
	return e;
}
