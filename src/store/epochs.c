/* SPDX-License-Identifier: Apache-2.0 */
/* The epochs of a database, with their sums. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "profile/profile.h"
#include "store/covered.h"
#include "store/reading.h"

static const char all_epochs[] =
	"SELECT e.id, e.start, e.host, e.kernel, e.machine, e.cpu, e.version, e.note, e.cpus, e.hz,"
	" e.joined, count(s.id), min(s.start), max(s.end), min(s.end - s.start),"
	" max(s.end - s.start), sum(s.end - s.start), sum(s.cpu_ns), max(s.memory),"
	" sum(s.kernel_ns), sum(s.kernel_runs)"
	" FROM epoch e LEFT JOIN segment s ON s.epoch = e.id GROUP BY e.id ORDER BY e.start, e.id";

static void fill(struct profile *strings, sqlite3_stmt *r, struct read_epoch *x)
{
	*x = (struct read_epoch){
		.id = sqlite3_column_int64(r, 0),
		.start_ms = sqlite3_column_int64(r, 1),
		.host = profile_string(strings, sql_text(r, 2)),
		.kernel = profile_string(strings, sql_text(r, 3)),
		.machine = profile_string(strings, sql_text(r, 4)),
		.cpu = profile_string(strings, sql_text(r, 5)),
		.version = profile_string(strings, sql_text(r, 6)),
		.note = profile_string(strings, sql_text(r, 7)),
		.cpus = (uint32_t)sqlite3_column_int64(r, 8),
		.hz = (uint64_t)sqlite3_column_int64(r, 9),
		.joined = (uint64_t)sqlite3_column_int64(r, 10),
		.spans = (uint64_t)sqlite3_column_int64(r, 11),
		.end_ms = sqlite3_column_int64(r, 13),
		.finest_ms = sqlite3_column_int64(r, 14),
		.coarsest_ms = sqlite3_column_int64(r, 15),
		.busy_ms = (uint64_t)sqlite3_column_int64(r, 16),
		.cost = {(uint64_t)sqlite3_column_int64(r, 17),
			 (uint64_t)sqlite3_column_int64(r, 18),
			 (uint64_t)sqlite3_column_int64(r, 19),
			 (uint64_t)sqlite3_column_int64(r, 20)},
	};
	if (x->spans)
		x->start_ms = sqlite3_column_int64(r, 12); /* what was removed is not in it */
	else
		x->end_ms = x->start_ms;
}

/* `items` with room for one more; NULL without memory. */
static void *grow(void *items, size_t count, size_t size)
{
	if (count & (count - 1))
		return items;
	return reallocarray(items, count ? count * 2 : 1, size);
}

static struct err *list_epochs(struct store *s, struct read_epochs *out)
{
	sqlite3_stmt *rows;
	bool row = true;
	struct err *e = sql_prepare(s, &rows, all_epochs, "");
	while (!e) {
		e = sql_step(s, rows, &row);
		if (e || !row)
			break;
		struct read_epoch *moved = grow(out->items, out->count, sizeof *moved);
		if (!moved) {
			e = err_new("out of memory");
			break;
		}
		out->items = moved;
		fill(out->strings, rows, &out->items[out->count++]);
	}
	sql_done(s, rows);
	return e;
}

/* Over all spans of an epoch. */
static struct err *read_covered(struct store *s, int64_t epoch, struct covered *out)
{
	struct read_choice all = {.from_ms = INT64_MIN, .to_ms = INT64_MAX, .epoch = epoch};
	struct span_list list = {0};
	struct err *e = spans_list(s, &all, &list);
	if (!e)
		e = covered_spans(s, &list, out);
	free(list.items);
	return e;
}

static struct err *add_totals(struct store *s, struct profile *strings,
			      const struct covered *covered, struct read_epoch *x)
{
	sqlite3_stmt *r;
	bool row = true;
	struct err *e = sql_prepare(
		s, &r,
		"SELECT v.name, v.unit, v.period, v.every, v.user_only, sum(t.samples),"
		" sum(t.walked), v.id FROM epoch_event p JOIN event v ON v.id = p.event"
		" LEFT JOIN (SELECT event, samples, walked FROM total JOIN segment ON"
		" segment.id = total.segment WHERE segment.epoch = ?1) t ON t.event = v.id"
		" WHERE p.epoch = ?1 GROUP BY p.position ORDER BY p.position",
		"d", x->id);
	while (!e) {
		e = sql_step(s, r, &row);
		if (e || !row)
			break;
		struct read_total *moved = grow(x->totals, x->total_count, sizeof *moved);
		if (!moved) {
			e = err_new("out of memory");
			break;
		}
		x->totals = moved;
		x->totals[x->total_count++] = (struct read_total){
			{profile_string(strings, sql_text(r, 0)),
			 profile_string(strings, sql_text(r, 1)),
			 (uint64_t)sqlite3_column_int64(r, 2), (uint64_t)sqlite3_column_int64(r, 3),
			 sqlite3_column_int64(r, 4) != 0},
			(uint64_t)sqlite3_column_int64(r, 5),
			(uint64_t)sqlite3_column_int64(r, 6),
			covered_find(covered, (uint64_t)sqlite3_column_int64(r, 7))};
	}
	sql_done(s, r);
	return e;
}

struct err *losses_read(struct store *s, struct profile *strings, sqlite3_stmt *r,
			struct store_loss **list, size_t *count)
{
	struct err *e = NULL;
	bool row = true;
	while (!e) {
		e = sql_step(s, r, &row);
		if (e || !row)
			break;
		struct store_loss *moved = grow(*list, *count, sizeof *moved);
		if (!moved)
			return err_new("out of memory");
		*list = moved;
		(*list)[(*count)++] = (struct store_loss){sqlite3_column_int64(r, 0) ? STORE_UNKNOWN
										     : STORE_LOST,
							  profile_string(strings, sql_text(r, 1)),
							  (uint64_t)sqlite3_column_int64(r, 2)};
	}
	return e;
}

static struct err *add_losses(struct store *s, struct profile *strings, struct read_epoch *x)
{
	sqlite3_stmt *r;
	struct err *e = sql_prepare(s, &r,
				    "SELECT l.kind, l.reason, sum(l.samples) FROM loss l"
				    " JOIN segment s ON s.id = l.segment WHERE s.epoch = ?"
				    " GROUP BY l.kind, l.reason ORDER BY 1, 3 DESC",
				    "d", x->id);
	if (!e)
		e = losses_read(s, strings, r, &x->losses, &x->loss_count);
	sql_done(s, r);
	return e;
}

static struct err *add_size(struct store *s, struct read_epochs *out)
{
	int64_t pages, size;
	struct err *e = sql_number(s, &pages, 0, "PRAGMA page_count", "");
	if (!e)
		e = sql_number(s, &size, 0, "PRAGMA page_size", "");
	if (!e)
		out->bytes = (uint64_t)(pages * size);
	return e;
}

struct err *read_epochs(struct store *s, struct read_epochs *out)
{
	bool any = false;
	*out = (struct read_epochs){0};
	struct err *e = profile_new(&out->strings);
	if (!e)
		e = sql_run(s, "BEGIN"); /* all of it as it was at one moment */
	if (!e)
		e = list_epochs(s, out);
	if (!e)
		e = covered_any(s, &any);
	for (size_t i = 0; !e && i < out->count; i++) {
		struct covered covered = {0};
		if (any)
			e = read_covered(s, out->items[i].id, &covered);
		if (!e)
			e = add_totals(s, out->strings, &covered, &out->items[i]);
		if (!e)
			e = add_losses(s, out->strings, &out->items[i]);
	}
	if (!e)
		e = add_size(s, out);
	sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	if (e)
		read_epochs_free(out);
	return e;
}

void read_epochs_free(struct read_epochs *epochs)
{
	for (size_t i = 0; i < epochs->count; i++) {
		free(epochs->items[i].totals);
		free(epochs->items[i].losses);
	}
	free(epochs->items);
	profile_free(epochs->strings);
	*epochs = (struct read_epochs){0};
}
