/* SPDX-License-Identifier: Apache-2.0 */
/* `culprit db show`: samples of a time by procedure, image, process, user, container or host, all events
   beside each other; and `culprit db query`: the same as plain rows, and SQL. */
#include "cmd/db_rows.h"

#include "analyze/summary.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/options.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_LIMIT 50
#define NAME_WIDTH 28

struct options {
	struct db_choice c;
	int by;
	const char *sort;
	uint64_t limit;
	bool json, no_pager;
};

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* ---- text: as the paper's list of procedures ---- */

static void put_head(const struct options *o, const struct read_samples *x,
		     const struct read_sums *rows, struct buf *out)
{
	char from[DB_TIME_MAX], to[DB_TIME_MAX], length[DB_TIME_MAX], count[SUMMARY_COUNT_MAX];
	uint64_t lost = db_losses(x->losses, x->loss_count, STORE_LOST);
	buf_printf(out, "%s: %s to %s, in %llu spans of at most %s\n", o->c.file,
		   db_time(from, x->from_ms), db_time(to, x->to_ms), (unsigned long long)x->spans,
		   db_length(length, x->longest_ms));
	buf_puts(out, "samples:");
	for (size_t i = 0; i < x->event_count; i++)
		buf_printf(out, "%s %s %s", i ? "," : "", summary_count(count, rows->totals[i]),
			   x->events[i].name);
	if (lost)
		buf_printf(out, "; %s lost", summary_count(count, lost));
	buf_puts(out, "\n");
	for (size_t i = 0; i < x->event_count; i++)
		db_coverage(&x->events[i], x->coverage[i], "", out);
	buf_puts(out, "\n");
}

static void put_columns(const struct read_samples *x, const char *what, struct buf *out)
{
	for (size_t i = 0; i < x->event_count; i++)
		buf_printf(out, i ? " %12.12s %7s" : "%12.12s %7s %7s", x->events[i].name, "%",
			   "cum%");
	buf_printf(out, "  %s\n", what);
}

static void put_row(const struct read_samples *x, const struct read_sums *rows,
		    const struct read_sum *row, uint64_t *sum, struct buf *out)
{
	for (size_t i = 0; i < x->event_count; i++) {
		uint64_t count = row->counts[i];
		buf_printf(out, i ? " %12llu %6.2f%%" : "%12llu %6.2f%%", (unsigned long long)count,
			   percent(count, rows->totals[i]));
		if (i)
			continue;
		*sum += count;
		buf_printf(out, " %6.2f%%", percent(*sum, rows->totals[0]));
	}
	buf_puts(out, "  ");
	db_name(out, row->name);
	if (*row->detail) {
		size_t width = strlen(row->name);
		buf_printf(out, "%*s  ", width < NAME_WIDTH ? NAME_WIDTH - (int)width : 0, "");
		db_name(out, row->detail);
	}
	buf_puts(out, "\n");
}

static struct err *show_text(const struct options *o, const struct read_samples *x,
			     const struct read_sums *rows)
{
	static const char *const heads[] = {"procedure                     image",
					    "image",
					    "process",
					    "user",
					    "container",
					    "host"};
	struct buf text = {0};
	uint64_t sum = 0, limit = o->limit ? o->limit : DEFAULT_LIMIT;
	put_head(o, x, rows, &text);
	put_columns(x, heads[o->by], &text);
	for (size_t i = 0; i < rows->count && i < limit; i++)
		put_row(x, rows, &rows->items[i], &sum, &text);
	if (rows->count > limit)
		buf_printf(&text, "... and %llu more: --limit shows more\n",
			   (unsigned long long)(rows->count - limit));
	return db_page(&text, o->no_pager);
}

/* ---- JSON ---- */

static void show_json(const struct options *o, const struct read_samples *x,
		      const struct read_sums *rows)
{
	static const char *const names[] = {"procedure", "image",     "process",
					    "user",      "container", "host"};
	struct json j = json_to_file(stdout);
	db_head_json(o->c.file, x, rows, &j);
	json_key(&j, "rows");
	json_begin_array(&j);
	for (size_t i = 0; i < rows->count && (!o->limit || i < o->limit); i++) {
		const struct read_sum *row = &rows->items[i];
		json_begin_object(&j);
		json_put_string(&j, names[o->by], row->name);
		if (o->by == READ_BY_PROCEDURE) {
			json_put_string(&j, "image", row->detail);
		}
		db_samples_json(x, row, &j);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
	json_newline(&j);
}

static int sort_event(const struct options *o, const struct read_samples *x, size_t *event)
{
	*event = 0;
	if (!o->sort)
		return -1;
	for (size_t i = 0; i < x->event_count; i++)
		if (!strcmp(x->events[i].name, o->sort)) {
			*event = i;
			return -1;
		}
	return cmd_fail("db show", err_new("there are no samples of '%s' in that time", o->sort));
}

static int show(const struct options *o)
{
	struct store *store;
	struct read_samples x = {0};
	struct read_sums rows = {0};
	size_t event;
	int status = -1;
	struct err *e = db_open(o->c.file, &o->c.read, false, &store);
	if (!e)
		e = read_samples(store, &o->c.read, &x);
	if (!e)
		e = db_nothing(o->c.file, &x);
	if (!e)
		status = sort_event(o, &x, &event);
	if (!e && status < 0)
		e = read_sums_make(&x, (enum read_by)o->by, event, &rows);
	if (!e && status < 0 && o->json)
		show_json(o, &x, &rows);
	else if (!e && status < 0)
		e = show_text(o, &x, &rows);
	read_sums_free(&rows);
	read_samples_free(&x);
	store_close(store);
	if (status >= 0)
		return status;
	return e ? cmd_fail("db show", e) : cmd_finish("db show", CMD_OK);
}

int db_show(int argc, char **argv)
{
	struct options o = {0};
	const struct arg options[] = {
		DB_CHOICE_OPTIONS(o.c),
		{0, "by", "procedure|image|process|user|container|host", "what rows are",
		 ARG_CHOICE, &o.by},
		{0, "sort", "EVENT", "the event that orders them; the first by default", ARG_STRING,
		 &o.sort},
		{0, "limit", "N", "no more than N rows; 50 by default, all with --json", ARG_U64,
		 &o.limit},
		OPTIONS_OF_OUTPUT(o),
		{0},
	};
	struct args args = {
		.command = "db show",
		.usage = "[options] [SPAN]",
		.summary = "Shows the samples of a time (all by default), the most first.",
		.options = options,
		.examples = "  culprit db show yesterday 14:00-15:00\n"
			    "  culprit db show --by=image today\n"
			    "  culprit db show --process=postgres -- -1h\n",
	};
	db_keep_spans(argc, argv);
	int status = cmd_parse(&args, argc, argv);
	if (status >= 0)
		return status;
	status = db_choose("db show", &o.c, &args);
	if (status < 0)
		status = show(&o);
	db_choice_free(&o.c);
	return status;
}
