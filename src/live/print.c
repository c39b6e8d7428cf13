/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/summary.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/term.h"
#include "live/draw.h"

/* ---- order ---- */

static int compare(const void *a, const void *b, void *context)
{
	const struct board_row *x = *(const struct board_row *const *)a,
			       *y = *(const struct board_row *const *)b;
	const struct order *o = context;
	const uint64_t left[] = {x->now_self, x->now_total, x->all_self, x->all_total};
	const uint64_t right[] = {y->now_self, y->now_total, y->all_self, y->all_total};
	size_t first = (o->by_all ? 2 : 0) + (o->by_total ? 1 : 0);
	/* Then the other number of the same time, then the other time. */
	const size_t turns[] = {first, first ^ 1, first ^ 2, first ^ 3};
	for (size_t i = 0; i < 4; i++)
		if (left[turns[i]] != right[turns[i]])
			return left[turns[i]] > right[turns[i]] ? -1 : 1;
	int names = strcmp(x->name, y->name);
	return names ? names : x->id < y->id ? -1 : x->id > y->id;
}

const struct board_row **order_rows(const struct board *t, const struct order *o, size_t *count)
{
	const struct board_row **rows = malloc((t->count + 1) * sizeof *rows);
	struct order copy = *o;
	*count = 0;
	for (size_t i = 0; rows && i < t->count; i++)
		if (!o->filter || !regexec(o->filter, t->rows[i].name, 0, NULL, 0))
			rows[(*count)++] = &t->rows[i];
	if (t->interval <= 0)
		copy.by_all = true;
	if (rows)
		qsort_r(rows, *count, sizeof *rows, compare, &copy);
	return rows;
}

/* ---- text ---- */

static void print_row(const struct board *t, const struct board_row *r, struct buf *out)
{
	char rate[64];
	if (t->interval > 0)
		buf_printf(out, "%7.2f%% %7.2f%% %9s", share_of(r->now_self, t->now_samples),
			   share_of(r->now_total, t->now_samples),
			   rate_text(t, r->now_self, rate, sizeof rate));
	else
		buf_printf(out, "%8s %8s %9s", "-", "-", "-");
	buf_printf(out, " %7.2f%% %7.2f%%  ", share_of(r->all_self, t->all_samples),
		   share_of(r->all_total, t->all_samples));
	buf_put_clean(out, r->label, strlen(r->label));
	if (*r->where) {
		buf_puts(out, "  ");
		buf_put_clean(out, r->where, strlen(r->where));
	}
	buf_puts(out, "\n");
}

void print_board(const struct board *t, const struct order *o, const char *state, uint64_t limit,
		 struct buf *out)
{
	char count[SUMMARY_COUNT_MAX], time[TERM_UNIT_MAX], rate[64];
	size_t rows;
	const struct board_row **all = order_rows(t, o, &rows);
	buf_printf(out, "%s %s: %s samples of %s so far", state, term_time(time, t->seconds),
		   summary_count(count, t->all_samples), t->metric);
	if (t->counted > 0 && t->counted < 1)
		buf_printf(out, " (counted %.0f%% of the time)", 100 * t->counted);
	if (t->interval > 0)
		buf_printf(out, "; last %s: %s samples, %s%s", term_time(time, t->interval),
			   summary_count(count, t->now_samples),
			   rate_text(t, t->now_samples, rate, sizeof rate),
			   strcmp(t->unit, "ns") ? "" : " of a CPU");
	if (t->lost)
		buf_printf(out, "; %s lost", summary_count(count, t->lost));
	buf_printf(out, "\n%8s %8s %9s %8s %8s  %s\n", "self", "total",
		   strcmp(t->unit, "ns") ? "rate" : "CPU", "so far", "total", by_title(t->wish.by));
	for (size_t i = 0; all && i < rows && (!limit || i < limit); i++)
		print_row(t, all[i], out);
	buf_puts(out, "\n");
	out->failed |= !all;
	free(all);
}

/* ---- JSON ---- */

static void key_number(struct json *j, const char *key, uint64_t number)
{
	json_key(j, key);
	json_u64(j, number);
}

static void key_text(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	json_string(j, text);
}

static void key_place(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	if (*text)
		json_string(j, text);
	else
		json_null(j);
}

static void put_pair(struct json *j, const char *key, uint64_t self, uint64_t total)
{
	json_key(j, key);
	json_begin_object(j);
	key_number(j, "self", self);
	key_number(j, "total", total);
	json_end_object(j);
}

static void put_row(const struct board_row *r, bool now, struct json *j)
{
	json_begin_object(j);
	key_text(j, "name", r->name);
	key_text(j, "kind", scope_kind_name(r->kind));
	key_place(j, "module", r->module);
	key_place(j, "file", r->file);
	json_key(j, "line");
	if (r->line > 0)
		json_u64(j, (uint64_t)r->line);
	else
		json_null(j);
	if (now)
		put_pair(j, "now", r->now_self, r->now_total);
	put_pair(j, "all", r->all_self, r->all_total);
	json_end_object(j);
}

void print_json(const struct board *t, const struct order *o, const char *state, uint64_t limit,
		struct json *j)
{
	bool now = t->interval > 0;
	size_t rows;
	const struct board_row **all = order_rows(t, o, &rows);
	json_begin_object(j);
	key_number(j, "culprit", 1);
	key_text(j, "state", state);
	json_key(j, "seconds");
	json_double(j, t->seconds);
	json_key(j, "interval");
	if (now)
		json_double(j, t->interval);
	else
		json_null(j);
	json_key(j, "metric");
	json_begin_object(j);
	key_text(j, "name", t->metric);
	key_text(j, "unit", t->unit);
	key_number(j, "period", t->period);
	json_key(j, "counted");
	json_double(j, t->counted);
	json_end_object(j);
	json_key(j, "samples");
	json_begin_object(j);
	if (now)
		key_number(j, "now", t->now_samples);
	key_number(j, "all", t->all_samples);
	key_number(j, "partial", t->all_partial);
	key_number(j, "lost", t->lost);
	json_end_object(j);
	key_number(j, "processes", t->processes);
	key_number(j, "threads", t->threads);
	key_text(j, "by", by_title(t->wish.by));
	json_key(j, "rows");
	json_begin_array(j);
	for (size_t i = 0; all && i < rows && (!limit || i < limit); i++)
		put_row(all[i], now, j);
	json_end_array(j);
	json_end_object(j);
	free(all);
}
