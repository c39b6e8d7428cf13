/* SPDX-License-Identifier: Apache-2.0 */
/*
 *    culprit: 3 functions counted, 2 of them called; 1 refused: 1 unresolved jump (vm_run)
 *
 *              calls      instructions  share          paths  hottest  top 3  function
 *              1 000         1 230 000    98%        5 of 12      93%    99%  solve
 *
 *    solve (app, main.c): 1 000 calls, 5 of 12 paths taken
 *              count  share  length  path
 *              9 990    93%      12  loop 21: 21-25, goes round  [by vector.h:77]
 *              1 000     4%      30  12-18 -> 21-25, goes round loop 21
 *
 * Shares are of instructions: a path that is short costs little, however often it is taken.
 */
#include "paths/show.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "paths/ranking.h"
#include "paths/result.h"
#include "paths/show_parts.h"

#define FUNCTIONS_LISTED 20u  /* in the table */
#define FUNCTIONS_DETAILED 5u /* with their paths */
#define NAMES_OF_REASON 3u
#define PROBLEMS_SHOWN 10u
#define TOP 3u
#define METRIC_COLUMNS 12

/* ---- what is wrong ---- */

static void put_problems(const struct ranking *r, const char *name, struct buf *out)
{
	size_t shown = 0, all = 0;
	if (!r->wrong)
		return;
	buf_printf(out, "%s%zu function%s counts that do not add up:\n", name, r->wrong,
		   r->wrong == 1 ? " has" : "s have");
	for (size_t i = 0; i < r->count; i++) {
		const struct ranked_function *f = &r->functions[i];
		for (size_t k = 0; k < f->flow.problem_count; k++) {
			if (++all > PROBLEMS_SHOWN)
				continue;
			shown++;
			buf_printf(out, "%*s", (int)strlen(name), "");
			show_put_name(f->name, out);
			buf_puts(out, ": ");
			flow_problem_print(f->function, &f->flow.problems[k], out);
			buf_puts(out, "\n");
		}
	}
	if (all > shown)
		buf_printf(out, "%*sand %zu more\n", (int)strlen(name), "", all - shown);
}

/* ---- the summary ---- */

struct reason {
	const char *text;
	size_t count;
};

static int most_first(const void *a, const void *b)
{
	const struct reason *x = a, *y = b;
	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return strcmp(x->text, y->text);
}

static const char *reason_of(const struct ranked_function *f)
{
	return f->function->reason ? f->function->reason : "unknown reason";
}

static size_t count_reasons(const struct ranking *r, struct reason *reasons)
{
	size_t count = 0;
	for (size_t i = r->count - r->refused; i < r->count; i++) {
		const char *text = reason_of(&r->functions[i]);
		size_t at = 0;
		while (at < count && strcmp(reasons[at].text, text))
			at++;
		if (at == count)
			reasons[count++] = (struct reason){.text = text};
		reasons[at].count++;
	}
	if (count)
		qsort(reasons, count, sizeof *reasons, most_first);
	return count;
}

/* Names of some functions that were refused for this reason. */
static void put_refused(const struct ranking *r, const struct reason *reason, struct buf *out)
{
	size_t named = 0;
	for (size_t i = r->count - r->refused; i < r->count && named < NAMES_OF_REASON; i++) {
		if (strcmp(reason_of(&r->functions[i]), reason->text))
			continue;
		buf_puts(out, named++ ? ", " : " (");
		show_put_name(r->functions[i].name, out);
	}
	buf_puts(out, reason->count > named ? ", ...)" : ")");
}

static struct err *put_reasons(const struct ranking *r, struct buf *out)
{
	struct reason *reasons = calloc(r->refused + 1, sizeof *reasons);
	if (!reasons)
		return err_new("out of memory");
	size_t count = count_reasons(r, reasons);
	for (size_t i = 0; i < count; i++) {
		buf_printf(out, i ? ", %zu " : "%zu ", reasons[i].count);
		buf_put_clean(out, reasons[i].text, strlen(reasons[i].text));
		put_refused(r, &reasons[i], out);
	}
	free(reasons);
	buf_puts(out, "\n");
	return NULL;
}

static void put_notes(const char *notes, const char *name, struct buf *out)
{
	while (notes && *notes) {
		size_t length = strcspn(notes, "\n");
		buf_printf(out, "%*s", (int)strlen(name), "");
		buf_put_clean(out, notes, length);
		buf_puts(out, "\n");
		notes += length + (notes[length] == '\n');
	}
}

static struct err *put_summary(const struct path_result *result, const struct ranking *r,
			       const struct path_show *show, struct buf *out)
{
	size_t counted = r->count - r->refused, called = 0;
	uint64_t unknown = 0;
	for (size_t i = 0; i < counted; i++) {
		called += r->functions[i].function->entries > 0;
		unknown += r->functions[i].function->unknown;
	}
	buf_printf(out, "%s%zu function%s counted, %zu of them called", show->name, counted,
		   counted == 1 ? "" : "s", called);
	struct err *e = NULL;
	if (r->refused) {
		buf_printf(out, "; %zu function%s refused: ", r->refused,
			   r->refused == 1 ? "" : "s");
		e = put_reasons(r, out);
	} else {
		buf_puts(out, "\n");
	}
	if (unknown)
		buf_printf(out, "%*s%" PRIu64 " paths are unknown, and are in no count\n",
			   (int)strlen(show->name), "", unknown);
	if (result->forks)
		buf_printf(out,
			   "%*s%" PRIu64 " fork%s: a call that goes on in both processes "
			   "ends twice\n",
			   (int)strlen(show->name), "", result->forks,
			   result->forks == 1 ? "" : "s");
	show_contexts_summary(r, result, show->name, out);
	show_metric_summary(r, show->name, out);
	put_notes(show->notes, show->name, out);
	return e;
}

/* ---- the functions ---- */

static void put_taken(const struct ranked_function *f, int width, struct buf *out)
{
	char text[64];
	snprintf(text, sizeof text, "%" PRIu64 " of %" PRIu64, f->flow.taken,
		 f->function->numbering.path_count);
	buf_printf(out, " %*s", width, text);
}

/* The share of the first paths. */
static void put_hottest(const struct ranking *r, const struct ranked_function *f, size_t count,
			int width, struct buf *out)
{
	if (r->metric)
		show_put_share(out, ranked_function_value(f, count), f->metered.value, width);
	else
		show_put_share(out, ranked_function_cost(f, count), f->instructions, width);
}

static void put_row(const struct ranking *r, const struct ranked_function *f, bool open,
		    struct buf *out)
{
	show_put_count(out, f->function->entries, 14);
	if (open)
		show_put_count(out, f->flow.open, 9);
	show_put_count(out, f->instructions, 18);
	show_put_share(out, f->instructions, r->instructions, 6);
	if (r->metric) {
		show_put_value(out, r->metric, f->metered.value, METRIC_COLUMNS);
		show_put_share(out, f->metered.value, r->metered.value, 6);
	}
	put_taken(f, 14, out);
	put_hottest(r, f, 1, 8, out);
	put_hottest(r, f, TOP, 6, out);
	buf_puts(out, "  ");
	show_put_name(f->name, out);
	buf_puts(out, "\n");
}

static bool is_called(const struct ranked_function *f)
{
	return f->function->state == PATH_EXACT && (f->function->entries || f->flow.taken);
}

static void put_table(const struct ranking *r, uint64_t limit, struct buf *out)
{
	size_t called = 0, shown = 0;
	bool open = false;
	for (size_t i = 0; i < r->count && is_called(&r->functions[i]); i++) {
		open |= r->functions[i].flow.open > 0;
		called++;
	}
	if (!called)
		return;
	buf_printf(out, "\n %14s", "calls");
	if (open)
		buf_printf(out, " %9s", "open");
	buf_printf(out, " %18s %6s", "instructions", "share");
	if (r->metric) {
		char name[METRIC_COLUMNS + 1];
		snprintf(name, sizeof name, "%s", r->metric->name);
		buf_printf(out, " %*s %6s", METRIC_COLUMNS, name, "share");
	}
	buf_printf(out, " %14s %8s %6s  %s\n", "paths", "hottest", "top 3", "function");
	for (; shown < called && (!limit || shown < FUNCTIONS_LISTED); shown++)
		put_row(r, &r->functions[shown], open, out);
	if (shown < called)
		buf_printf(out, " and %zu more functions that were called (--limit 0 shows all)\n",
			   called - shown);
}

/* What both begin with. `r` is to be freed in any case. */
static struct err *begin(const struct path_result *result, const struct path_show *show,
			 struct ranking *r, struct buf *out)
{
	struct err *e = ranking_make(result, r);
	if (e)
		return e;
	put_problems(r, show->name, out);
	return put_summary(result, r, show, out);
}

struct err *path_show_summary(const struct path_result *result, const struct path_show *show,
			      struct buf *out)
{
	struct ranking r;
	struct err *e = begin(result, show, &r, out);
	if (!e && out->failed)
		e = err_new("out of memory");
	ranking_free(&r);
	return e;
}

struct err *path_show_text(const struct path_result *result, const struct path_show *show,
			   struct buf *out)
{
	struct ranking r;
	struct err *e = begin(result, show, &r, out);
	if (!e)
		put_table(&r, show->limit, out);
	if (!e)
		show_heat(&r, out);
	for (size_t i = 0; i < r.count && !e; i++) {
		if (!r.functions[i].path_count || (show->limit && i == FUNCTIONS_DETAILED))
			break;
		e = show_paths(&r, &r.functions[i], show->limit, out);
		if (!e)
			e = show_contexts(&r, result, &r.functions[i], show->limit, out);
	}
	if (!e && out->failed)
		e = err_new("out of memory");
	ranking_free(&r);
	return e;
}
