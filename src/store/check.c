/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a database is sound: its pages, what is packed, and what refers to what. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "store/internal.h"

static struct err *bad(struct store *s, const char *what, int64_t number)
{
	s->trouble = STORE_DAMAGED;
	return err_new("%s: damaged: %s (%lld)", s->path, what, (long long)number);
}

static struct err *check_pages(struct store *s)
{
	sqlite3_stmt *r;
	bool row = false;
	struct err *e = sql_prepare(s, &r, "PRAGMA integrity_check(1)", "");
	if (!e)
		e = sql_step(s, r, &row);
	if (!e && (!row || strcmp(sql_text(r, 0), "ok") != 0)) {
		s->trouble = STORE_DAMAGED;
		e = err_new("%s: damaged: %s", s->path, sql_text(r, 0));
	}
	sql_done(s, r);
	return e;
}

/* A question that must have no answer. */
static struct err *check_none(struct store *s, const char *what, const char *sql)
{
	int64_t number;
	struct err *e = sql_number(s, &number, 0, sql, "");
	return e || !number ? e : bad(s, what, number);
}

static struct err *check_references(struct store *s)
{
	static const struct {
		const char *what, *sql;
	} all[] = {
		{"a span of no epoch",
		 "SELECT id FROM segment WHERE epoch NOT IN (SELECT id FROM epoch) LIMIT 1"},
		{"a span that ends before it starts",
		 "SELECT id FROM segment WHERE end < start LIMIT 1"},
		{"a sum of no span",
		 "SELECT segment FROM total WHERE segment NOT IN (SELECT id FROM segment) LIMIT 1"},
		{"a loss of no span",
		 "SELECT segment FROM loss WHERE segment NOT IN (SELECT id FROM segment) LIMIT 1"},
		{"call paths of no epoch",
		 "SELECT epoch FROM node WHERE epoch NOT IN (SELECT id FROM epoch) LIMIT 1"},
		{"an event of an epoch that is not there",
		 "SELECT epoch FROM epoch_event WHERE event NOT IN (SELECT id FROM event) LIMIT 1"},
		{"a function of no image",
		 "SELECT image FROM symbol WHERE image NOT IN (SELECT id FROM image) LIMIT 1"},
	};
	struct err *e = NULL;
	for (size_t i = 0; !e && i < sizeof all / sizeof *all; i++)
		e = check_none(s, all[i].what, all[i].sql);
	return e;
}

static struct err *exists(struct store *s, sqlite3_stmt *find, uint64_t id, const char *what)
{
	bool row = false;
	if (!id)
		return NULL;
	sqlite3_bind_int64(find, 1, (int64_t)id);
	struct err *e = sql_step(s, find, &row);
	sqlite3_reset(find);
	return e || row ? e : bad(s, what, (int64_t)id);
}

/* Counts come ordered by image, so each is asked for once. */
static struct err *check_rows(struct store *s, const struct segment *x, sqlite3_stmt *image,
			      sqlite3_stmt *process)
{
	struct err *e = NULL;
	for (size_t i = 0; !e && i < x->count_count; i++)
		if (!i || x->counts[i].image != x->counts[i - 1].image)
			e = exists(s, image, x->counts[i].image, "samples of an unknown image");
	for (size_t i = 0; !e && i < x->count_count; i++)
		if (!i || x->counts[i].process != x->counts[i - 1].process)
			e = exists(s, process, x->counts[i].process,
				   "samples of an unknown process");
	for (size_t i = 0; !e && i < x->path_count; i++)
		if (x->paths[i].node >= s->tree.count)
			e = bad(s, "samples of an unknown call path", x->id);
	return e;
}

static struct err *check_totals(struct store *s, const struct segment *x)
{
	int64_t samples, walked;
	uint64_t counted = 0, paths = 0;
	for (size_t i = 0; i < x->count_count; i++)
		counted += x->counts[i].count;
	for (size_t i = 0; i < x->path_count; i++)
		paths += x->paths[i].count;
	struct err *e = sql_number(s, &samples, 0,
				   "SELECT sum(samples) FROM total WHERE segment = ?", "d", x->id);
	if (!e)
		e = sql_number(s, &walked, 0, "SELECT sum(walked) FROM total WHERE segment = ?",
			       "d", x->id);
	if (!e && ((uint64_t)samples != counted || (uint64_t)walked != paths))
		e = bad(s, "a span whose sums are wrong", x->id);
	return e;
}

static struct err *check_spans(struct store *s)
{
	sqlite3_stmt *ids, *image = NULL, *process = NULL;
	bool row = true;
	struct err *e = sql_prepare(s, &ids, "SELECT id, epoch FROM segment ORDER BY epoch, start",
				    "");
	if (!e)
		e = sql_prepare(s, &image, "SELECT 1 FROM image WHERE id = ?", "");
	if (!e)
		e = sql_prepare(s, &process, "SELECT 1 FROM process WHERE id = ?", "");
	while (!e) {
		struct segment x;
		e = sql_step(s, ids, &row);
		if (e || !row)
			break;
		if (s->tree_epoch != sqlite3_column_int64(ids, 1))
			e = trees_load(s, sqlite3_column_int64(ids, 1));
		if (e)
			break;
		e = segment_read(s, sqlite3_column_int64(ids, 0), SEGMENT_ALL, &x);
		if (!e)
			e = check_rows(s, &x, image, process);
		if (!e)
			e = check_totals(s, &x);
		segment_free(&x);
	}
	sql_done(s, ids);
	sql_done(s, image);
	sql_done(s, process);
	return e;
}

struct err *store_check(struct store *s)
{
	s->trouble = STORE_FINE;
	struct err *e = check_pages(s);
	if (!e)
		e = sql_run(s, "BEGIN");
	if (e)
		return e;
	e = check_references(s);
	if (!e)
		e = check_spans(s);
	sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	return e;
}
