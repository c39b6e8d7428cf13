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

static void put_heading(const struct told *d, struct buf *out)
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
	buf_printf(out, "\n %14s %6s %7s  %s\n", "count", "share", "length", "path");
}

static void put_rows(const struct told *d, struct buf *out)
{
	const struct ranked_function *f = d->f;
	for (size_t i = 0; i < d->count; i++) {
		show_put_count(out, f->paths[i].count, 14);
		show_put_share(out, ranked_path_cost(&f->paths[i]), f->instructions, 6);
		buf_printf(out, " %7" PRIu64 "  %s", f->paths[i].length, d->all[i].text);
		if (d->all[i].difference)
			buf_printf(out, "  [by %s]", d->all[i].difference);
		buf_puts(out, "\n");
	}
	if (d->count == f->path_count)
		return;
	buf_printf(out, " %14s", "");
	show_put_share(out, f->instructions - ranked_function_cost(f, d->count), f->instructions,
		       6);
	buf_printf(out, " %7s  %zu more path%s\n", "", f->path_count - d->count,
		   f->path_count - d->count == 1 ? "" : "s");
}

struct err *show_paths(const struct ranked_function *f, uint64_t limit, struct buf *out)
{
	size_t count = limit && limit < f->path_count ? (size_t)limit : f->path_count;
	uint64_t *numbers = calloc(count + 1, sizeof *numbers);
	struct told d = {0};
	for (size_t i = 0; i < count && numbers; i++)
		numbers[i] = f->paths[i].number;
	struct err *e = numbers ? told_open(f, numbers, count, &d) : err_new("out of memory");
	if (!e) {
		put_heading(&d, out);
		put_rows(&d, out);
	}
	told_close(&d);
	free(numbers);
	return e;
}
