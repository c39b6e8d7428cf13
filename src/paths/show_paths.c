/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/shorten.h"
#include "analyze/summary.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/path.h"
#include "paths/ranking.h"
#include "paths/result.h"
#include "paths/show_parts.h"
#include "paths/told.h"

#define NAME_COLUMNS 60
#define METRIC_COLUMNS 12

/* ---- pieces ---- */

void show_put_name(const char *name, struct buf *out)
{
	struct buf shortened = {0};
	name_shorten(name, &shortened);
	buf_put_cut(out, buf_text(&shortened), NAME_COLUMNS);
	buf_free(&shortened);
}

void show_put_count(struct buf *out, uint64_t count, int width)
{
	char text[SUMMARY_COUNT_MAX];
	buf_printf(out, " %*s", width, summary_count(text, count));
}

/* "93%", "0.4%", "<0.1%" */
void show_put_share(struct buf *out, uint64_t part, uint64_t whole, int width)
{
	double share = whole ? 100.0 * (double)part / (double)whole : 0;
	char text[16];
	if (share > 0 && share < 0.1)
		snprintf(text, sizeof text, "<0.1%%");
	else
		snprintf(text, sizeof text, "%.*f%%", share > 0 && share < 9.95 ? 1 : 0, share);
	buf_printf(out, " %*s", width, text);
}

/* ---- the table ---- */

static void put_file_name(const char *path, struct buf *out)
{
	const char *name = path_file(path);
	buf_put_clean(out, name, strlen(name));
}

static void put_heading(const struct ranking *ranking, const struct told *d, struct buf *out)
{
	const struct path_function *f = d->f->function;
	char text[SUMMARY_COUNT_MAX];
	buf_puts(out, "\n ");
	show_put_name(d->f->name, out);
	buf_puts(out, " (");
	put_file_name(f->module, out);
	if (told_file(d)) {
		buf_puts(out, ", ");
		put_file_name(told_file(d), out);
	}
	buf_printf(out, "): %s call%s", summary_count(text, f->entries),
		   f->entries == 1 ? "" : "s");
	if (d->f->flow.open)
		buf_printf(out, ", %s not seen to end", summary_count(text, d->f->flow.open));
	if (f->unknown)
		buf_printf(out, ", %s unknown paths", summary_count(text, f->unknown));
	buf_printf(out, "\n %14s %6s %7s", "count", "share", "length");
	if (ranking->metric) {
		char name[METRIC_COLUMNS + 1];
		snprintf(name, sizeof name, "%s", ranking->metric->name);
		buf_printf(out, " %*s %6s %6s %-6s", METRIC_COLUMNS, name, "share", "sure", "");
	}
	buf_puts(out, "  path\n");
}

static void put_sampled(const struct ranking *ranking, const struct told *d,
			const struct ranked_path *p, struct buf *out)
{
	const struct path_metric *metric = ranking->metric;
	if (!metric)
		return;
	enum path_heat heat = ranking_heat(ranking, p->sampled.value, ranked_path_cost(p));
	show_put_value(out, metric, p->sampled.value, METRIC_COLUMNS);
	show_put_share(out, p->sampled.value, d->f->metered.value, 6);
	if (p->sampled.value)
		show_put_share(out, p->sampled.sure, p->sampled.value, 6);
	else
		buf_printf(out, " %6s", "");
	buf_printf(out, " %-6s", heat == PATH_COLD ? "" : path_heat_name(heat));
}

static void put_rest(const struct ranking *ranking, const struct told *d, struct buf *out)
{
	const struct ranked_function *f = d->f;
	uint64_t value = ranked_function_value(f, f->path_count) -
			 ranked_function_value(f, d->count);
	size_t more = f->path_count - d->count;
	buf_printf(out, " %14s", "");
	show_put_share(out, f->instructions - ranked_function_cost(f, d->count), f->instructions,
		       6);
	buf_printf(out, " %7s", "");
	if (ranking->metric) {
		show_put_value(out, ranking->metric, value, METRIC_COLUMNS);
		show_put_share(out, value, f->metered.value, 6);
		buf_printf(out, " %6s %-6s", "", "");
	}
	buf_printf(out, "  %zu more path%s\n", more, more == 1 ? "" : "s");
}

static void put_rows(const struct ranking *ranking, const struct told *d, struct buf *out)
{
	const struct ranked_function *f = d->f;
	for (size_t i = 0; i < d->count; i++) {
		show_put_count(out, f->paths[i].count, 14);
		show_put_share(out, ranked_path_cost(&f->paths[i]), f->instructions, 6);
		buf_printf(out, " %7" PRIu64, f->paths[i].length);
		put_sampled(ranking, d, &f->paths[i], out);
		buf_printf(out, "  %s", d->all[i].text);
		if (d->all[i].difference)
			buf_printf(out, "  [by %s]", d->all[i].difference);
		buf_puts(out, "\n");
	}
	if (d->count < f->path_count)
		put_rest(ranking, d, out);
}

struct err *show_paths(const struct ranking *ranking, const struct ranked_function *f,
		       uint64_t limit, struct buf *out)
{
	size_t count = limit && limit < f->path_count ? (size_t)limit : f->path_count;
	uint64_t *numbers = calloc(count + 1, sizeof *numbers);
	struct told d = {0};
	for (size_t i = 0; i < count && numbers; i++)
		numbers[i] = f->paths[i].number;
	struct err *e = numbers ? told_open(f, numbers, count, &d) : err_new("out of memory");
	if (!e) {
		put_heading(ranking, &d, out);
		put_rows(ranking, &d, out);
	}
	told_close(&d);
	free(numbers);
	return e;
}
