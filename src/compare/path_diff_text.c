/* SPDX-License-Identifier: Apache-2.0 */
/*
 *       old instructions    new instructions    change    new   gone   more  fewer  function
 *              3 040 000           2 920 000     -3.9%      1      2      3      4  (all)
 *                100 000              90 000    -10.0%      1      2      3      4  solve
 *
 *     solve (app, main.c): 1 000 calls
 *                  old              new    change  length  path
 *                  120                0      gone      12  loop 21: 21-25, goes round
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/summary.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/path.h"
#include "compare/path_diff.h"
#include "compare/text.h"
#include "paths/result.h"
#include "paths/show_parts.h"
#include "paths/told.h"

#define FUNCTIONS_LISTED 20u  /* in the table */
#define FUNCTIONS_DETAILED 5u /* with their paths */

struct drawing {
	const struct path_diff *d;
	const struct text_options *o;
	struct buf *out;
};

static const char *style(const struct drawing *d, const char *sequence)
{
	return d->o->colour ? sequence : "";
}

static void put_name(const struct drawing *d, const char *name)
{
	if (d->o->full_names)
		text_harmless(name, d->out);
	else
		show_put_name(name, d->out);
}

static void put_file(const char *path, struct buf *out)
{
	text_harmless(path_file(path), out);
}

/* ---- the sides ---- */

static void put_side(const struct drawing *d, const char *side, const char *file,
		     const struct ranking *r)
{
	char text[SUMMARY_COUNT_MAX];
	size_t counted = r->count - r->refused;
	buf_printf(d->out, "%s: ", side);
	text_harmless(file, d->out);
	buf_printf(d->out, ", %zu function%s counted", counted, counted == 1 ? "" : "s");
	if (r->refused)
		buf_printf(d->out, ", %zu refused", r->refused);
	buf_printf(d->out, ", %s instructions on their paths\n",
		   summary_count(text, r->instructions));
	if (r->wrong)
		buf_printf(d->out,
			   "%*s%zu of them ha%s counts that do not add up (culprit report "
			   "--by=path)\n",
			   (int)strlen(side) + 2, "", r->wrong, r->wrong == 1 ? "s" : "ve");
}

/* ---- functions ---- */

static void put_change(const struct drawing *d, uint64_t old, uint64_t new)
{
	char text[TEXT_RATIO_MAX] = "";
	if (old && old == new)
		snprintf(text, sizeof text, "same");
	else if (old)
		text_change(text, (double)new / (double)old);
	buf_printf(d->out, " %9s", text);
}

static void put_rows(const struct drawing *d, size_t rows)
{
	char text[24] = "";
	if (rows)
		snprintf(text, sizeof text, "%zu", rows);
	buf_printf(d->out, " %6s", text);
}

static const char *colour(const struct drawing *d, uint64_t old, uint64_t new)
{
	return old == new ? "" : style(d, new > old ? TEXT_RED : TEXT_GREEN);
}

static void put_too_slow(const struct drawing *d, bool is)
{
	if (is)
		buf_printf(d->out, "%s  TOO MANY%s", style(d, TEXT_RED), style(d, TEXT_PLAIN));
	buf_puts(d->out, "\n");
}

static void put_total(const struct drawing *d)
{
	const struct path_diff *x = d->d;
	size_t sums[4] = {0};
	for (size_t i = 0; i < x->count; i++) {
		sums[0] += x->functions[i].fresh;
		sums[1] += x->functions[i].gone;
		sums[2] += x->functions[i].more;
		sums[3] += x->functions[i].fewer;
	}
	show_put_count(d->out, x->old_cost, 18);
	show_put_count(d->out, x->new_cost, 18);
	put_change(d, x->old_cost, x->new_cost);
	for (size_t i = 0; i < 4; i++)
		put_rows(d, sums[i]);
	buf_puts(d->out, "  (all)");
	put_too_slow(d, x->total_too_slow);
}

static void put_function(const struct drawing *d, const struct path_diff_function *f)
{
	const struct ranked_function *shown = f->new ? f->new : f->old;
	const char *verdict = path_diff_function_verdict(f);
	buf_puts(d->out, colour(d, f->old_cost, f->new_cost));
	show_put_count(d->out, f->old_cost, 18);
	show_put_count(d->out, f->new_cost, 18);
	put_change(d, f->old_cost, f->new_cost);
	buf_puts(d->out, style(d, TEXT_PLAIN));
	put_rows(d, f->fresh);
	put_rows(d, f->gone);
	put_rows(d, f->more);
	put_rows(d, f->fewer);
	buf_puts(d->out, "  ");
	put_name(d, shown->name);
	if (!f->counted || !f->old || !f->new)
		buf_printf(d->out, "  (%s)", verdict);
	else if (f->other_code)
		buf_puts(d->out, "  (other code)");
	put_too_slow(d, f->too_slow);
}

static void put_table(const struct drawing *d)
{
	const struct path_diff *x = d->d;
	size_t most = d->o->limit ? FUNCTIONS_LISTED : x->changed;
	buf_printf(d->out, "\n%s %18s %18s %9s %6s %6s %6s %6s  %s%s\n", style(d, TEXT_DIM),
		   "old instructions", "new instructions", "change", "new", "gone", "more", "fewer",
		   "function", style(d, TEXT_PLAIN));
	put_total(d);
	for (size_t i = 0; i < x->changed && i < most; i++)
		put_function(d, &x->functions[i]);
	if (x->changed > most)
		buf_printf(d->out, " and %zu more functions that differ (--limit 0 shows all)\n",
			   x->changed - most);
}

/* ---- paths ---- */

static bool is_different(const struct path_diff_row *row)
{
	return row->old.count != row->new.count || row->old.cost != row->new.cost;
}

/* The rows of a function that are shown, each told by its new side, or else by its old one. */
struct detail {
	const struct path_diff_function *f;
	size_t count; /* of its first rows */
	struct told old, new;
};

static struct err *tell_side(const struct detail *x, bool is_new, struct told *out)
{
	const struct ranked_function *f = is_new ? x->f->new : x->f->old;
	uint64_t *numbers = calloc(x->count + 1, sizeof *numbers);
	size_t count = 0;
	if (!numbers)
		return err_new("out of memory");
	for (size_t i = 0; i < x->count; i++) {
		const struct path_diff_row *row = &x->f->rows[i];
		if ((row->new.paths > 0) == is_new)
			numbers[count++] = f->paths[is_new ? row->new.path : row->old.path].number;
	}
	struct err *e = f ? told_open(f, numbers, count, out) : NULL;
	free(numbers);
	return e;
}

static void put_heading(const struct drawing *d, const struct detail *x)
{
	const struct path_diff_function *f = x->f;
	const struct ranked_function *shown = f->new ? f->new : f->old;
	const char *file = told_file(f->new ? &x->new : &x->old);
	char text[SUMMARY_COUNT_MAX];
	uint64_t calls = shown->function->entries;
	buf_puts(d->out, "\n ");
	put_name(d, shown->name);
	buf_puts(d->out, " (");
	put_file(shown->function->module, d->out);
	if (file) {
		buf_puts(d->out, ", ");
		put_file(file, d->out);
	}
	buf_printf(d->out, "): %s call%s", summary_count(text, calls), calls == 1 ? "" : "s");
	if (!f->new)
		buf_puts(d->out, " before; it is gone");
	else if (!f->old)
		buf_puts(d->out, "; it is new");
	else if (f->old->function->entries != calls)
		buf_printf(d->out, ", %s before", summary_count(text, f->old->function->entries));
	buf_puts(d->out, f->other_code ? "; its code differs\n" : "\n");
	buf_printf(d->out, "%s %14s %14s %9s %7s  %s%s\n", style(d, TEXT_DIM), "old", "new",
		   "change", "length", "path", style(d, TEXT_PLAIN));
}

static void put_length(const struct drawing *d, const struct path_diff_function *f,
		       const struct path_diff_row *row)
{
	char text[48];
	uint64_t old = row->old.paths ? f->old->paths[row->old.path].length : 0,
		 new = row->new.paths ? f->new->paths[row->new.path].length : 0;
	if (old && new &&old != new)
		snprintf(text, sizeof text, "%" PRIu64 "→%" PRIu64, old, new);
	else
		snprintf(text, sizeof text, "%" PRIu64, new ? new : old);
	/* The arrow has three bytes, and one column. */
	buf_printf(d->out, " %*s", strstr(text, "→") ? 9 : 7, text);
}

/* Several paths of one build that are one in the other. */
static void put_several(const struct drawing *d, const struct path_diff_row *row)
{
	if (row->old.paths > 1 && row->new.paths > 1)
		buf_printf(d->out, "  (%u paths, %u before)", row->new.paths, row->old.paths);
	else if (row->old.paths > 1)
		buf_printf(d->out, "  (%u paths before)", row->old.paths);
	else if (row->new.paths > 1)
		buf_printf(d->out, "  (%u paths now)", row->new.paths);
}

static void put_path(const struct drawing *d, const struct detail *x,
		     const struct path_diff_row *row, const struct told_path *told)
{
	const char *verdict = path_diff_verdict(row);
	buf_puts(d->out, colour(d, row->old.cost, row->new.cost));
	show_put_count(d->out, row->old.count, 14);
	show_put_count(d->out, row->new.count, 14);
	if (!row->old.count || !row->new.count)
		buf_printf(d->out, " %9s", verdict);
	else
		put_change(d, row->old.count, row->new.count);
	buf_puts(d->out, style(d, TEXT_PLAIN));
	put_length(d, x->f, row);
	buf_printf(d->out, "  %s", told->text);
	if (told->difference)
		buf_printf(d->out, "  [by %s]", told->difference);
	put_several(d, row);
	buf_puts(d->out, "\n");
}

static void put_rest(const struct drawing *d, const struct detail *x)
{
	size_t differ = 0, same = 0;
	for (size_t i = x->count; i < x->f->count; i++)
		if (is_different(&x->f->rows[i]))
			differ++;
		else
			same++;
	if (differ)
		buf_printf(d->out, " %14s %14s %9s %7s  %zu more that differ%s\n", "", "", "", "",
			   differ, differ == 1 ? "s" : "");
	if (same)
		buf_printf(d->out, " %14s %14s %9s %7s  %zu taken as often as before\n", "", "",
			   "same", "", same);
}

static struct err *put_detail(const struct drawing *d, const struct path_diff_function *f)
{
	struct detail x = {.f = f};
	size_t at[2] = {0};
	while (x.count < f->count && is_different(&f->rows[x.count]) &&
	       (!d->o->limit || x.count < d->o->limit))
		x.count++;
	struct err *e = tell_side(&x, false, &x.old);
	if (!e)
		e = tell_side(&x, true, &x.new);
	if (!e)
		put_heading(d, &x);
	for (size_t i = 0; i < x.count && !e; i++) {
		bool is_new = f->rows[i].new.paths > 0;
		put_path(d, &x, &f->rows[i], &(is_new ? &x.new : &x.old)->all[at[is_new]++]);
	}
	if (!e)
		put_rest(d, &x);
	told_close(&x.old);
	told_close(&x.new);
	return e;
}

/* ---- all ---- */

static void put_reasons(const struct drawing *d)
{
	for (size_t i = 0; i < d->d->changed; i++) {
		const struct path_diff_function *f = &d->d->functions[i];
		if (f->counted)
			continue;
		const struct ranked_function *refused = f->new && f->new->function->state ==
										PATH_REFUSED
								? f->new
								: f->old;
		buf_puts(d->out, " ");
		put_name(d, refused->name);
		buf_printf(d->out, ": %s", path_diff_function_verdict(f));
		if (refused->function->reason) {
			buf_puts(d->out, ": ");
			text_harmless(refused->function->reason, d->out);
		}
		buf_puts(d->out, "\n");
	}
}

static void put_footer(const struct drawing *d)
{
	const struct path_diff *x = d->d;
	const struct path_diff_options *o = &x->options;
	buf_printf(d->out, "\n%s%zu of %zu functions differ%s\n", style(d, TEXT_DIM), x->changed,
		   x->count, style(d, TEXT_PLAIN));
	put_reasons(d);
	if (o->fail_above >= 0)
		buf_printf(d->out, "%s%s by more than %g%%%s\n",
			   style(d, x->too_slow ? TEXT_RED : TEXT_GREEN),
			   x->too_slow ? "more instructions" : "nothing has more instructions",
			   100 * o->fail_above, style(d, TEXT_PLAIN));
}

struct err *path_diff_text(const struct path_diff *x, const struct text_options *o, struct buf *out)
{
	struct drawing d = {.d = x, .o = o, .out = out};
	struct err *e = NULL;
	size_t shown = 0;
	put_side(&d, "old", x->old_name, x->old);
	put_side(&d, "new", x->new_name, x->new);
	put_table(&d);
	for (size_t i = 0; i < x->changed && !e && (!o->limit || shown < FUNCTIONS_DETAILED); i++) {
		if (!x->functions[i].counted || !x->functions[i].count)
			continue;
		shown++;
		e = put_detail(&d, &x->functions[i]);
	}
	put_footer(&d);
	return !e && out->failed ? err_new("out of memory") : e;
}
