/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the paths of a function go is told by lines of its own file: code that was inlined from other files is at the line that it
 * was called on. Paths that are the same by these lines differ in that code, or within a line: then it is told which places each
 * of them comes by, and others of them do not. If that does not tell them apart either, it is told by addresses.
 */
#include <inttypes.h>
#include <stdbool.h>
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
#include "paths/way_ends.h"
#include "paths/ways.h"

#define NAME_COLUMNS 60
#define PLACES_SHOWN 4u /* of a difference */
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

/* ---- how paths go ---- */

struct told { /* a path */
	struct numbering_path path;
	char *text;
	char *difference; /* to those with the same text; NULL: there is none */
};

struct detail {
	const struct ranking *ranking;
	const struct ranked_function *f;
	struct ways own, outer, inner;
	struct way_ends ends;
	struct told *paths;
	size_t count;
};

static bool is_twin(const struct detail *d, size_t i, size_t k)
{
	return k != i && !strcmp(d->paths[k].text, d->paths[i].text);
}

static bool comes_by(const struct numbering_path *path, uint32_t block)
{
	for (size_t i = 0; i < path->count; i++)
		if (path->blocks[i] == block)
			return true;
	return false;
}

/* Whether a twin does not come by this block. */
static bool tells_apart(const struct detail *d, size_t i, uint32_t block)
{
	for (size_t k = 0; k < d->count; k++)
		if (is_twin(d, i, k) && !comes_by(&d->paths[k].path, block))
			return true;
	return false;
}

static void put_place(const struct detail *d, uint32_t block, bool addresses, struct buf *out)
{
	if (addresses)
		buf_printf(out, "0x%" PRIx64, d->f->function->graph.blocks[block].start);
	else
		ways_print_block(&d->inner, block, out);
}

/* The places that a twin does not come by; NULL: there are none. */
static char *find_difference(const struct detail *d, size_t i, bool addresses)
{
	const struct numbering_path *path = &d->paths[i].path;
	struct buf all = {0}, last = {0};
	size_t shown = 0;
	for (size_t b = 0; b < path->count && shown <= PLACES_SHOWN; b++) {
		struct buf place = {0};
		if (!tells_apart(d, i, path->blocks[b]))
			continue;
		put_place(d, path->blocks[b], addresses, &place);
		if (strcmp(buf_text(&place), buf_text(&last))) {
			bool more = shown++ == PLACES_SHOWN;
			buf_printf(&all, "%s%s", shown > 1 ? ", " : "",
				   more ? "..." : buf_text(&place));
		}
		buf_free(&last);
		last = place;
	}
	buf_free(&last);
	return buf_take(&all);
}

static bool has_twin(const struct detail *d, size_t i)
{
	for (size_t k = 0; k < d->count; k++)
		if (is_twin(d, i, k))
			return true;
	return false;
}

static bool is_same_text(const char *x, const char *y)
{
	return x && y ? !strcmp(x, y) : x == y;
}

static bool has_same_difference(const struct detail *d, size_t i)
{
	for (size_t k = 0; k < d->count; k++)
		if (is_twin(d, i, k) &&
		    is_same_text(d->paths[i].difference, d->paths[k].difference))
			return true;
	return false;
}

static void find_differences(struct detail *d)
{
	bool *vague = calloc(d->count + 1, sizeof *vague);
	for (size_t i = 0; i < d->count; i++)
		if (has_twin(d, i))
			d->paths[i].difference = find_difference(d, i, false);
	for (size_t i = 0; vague && i < d->count; i++)
		vague[i] = has_same_difference(d, i);
	for (size_t i = 0; vague && i < d->count; i++)
		if (vague[i]) {
			free(d->paths[i].difference);
			d->paths[i].difference = find_difference(d, i, true);
		}
	free(vague);
}

static struct err *tell(struct detail *d, size_t i)
{
	struct told *t = &d->paths[i];
	struct buf text = {0};
	struct err *e = numbering_decode(&d->f->function->numbering, d->f->paths[i].number,
					 &t->path);
	if (e)
		return e;
	way_ends_print_start(&d->ends, &t->path, &text);
	ways_print(&d->own, &t->path, &text);
	way_ends_print_end(&d->ends, &t->path, &text);
	t->text = buf_take(&text);
	return t->text ? NULL : err_new("out of memory");
}

static struct err *open_detail(const struct ranked_function *f, size_t count, struct detail *d)
{
	const struct graph *g = &f->function->graph;
	*d = (struct detail){.f = f, .paths = calloc(count + 1, sizeof *d->paths)};
	if (!d->paths)
		return err_new("out of memory");
	struct err *e = ways_open(g, f->file, WAY_OWN, &d->own);
	if (!e)
		e = ways_open(g, f->file, WAY_OUTER, &d->outer);
	if (!e)
		e = ways_open(g, f->file, WAY_INNER, &d->inner);
	ways_agree(&d->outer, &d->own);
	ways_agree(&d->inner, &d->own);
	if (!e)
		e = way_ends_open(&f->function->numbering, &d->outer, &d->inner, &d->ends);
	while (d->count < count && !e)
		e = tell(d, d->count++);
	if (!e)
		find_differences(d);
	return e;
}

static void close_detail(struct detail *d)
{
	for (size_t i = 0; i < d->count; i++) {
		numbering_path_free(&d->paths[i].path);
		free(d->paths[i].text);
		free(d->paths[i].difference);
	}
	free(d->paths);
	way_ends_close(&d->ends);
	ways_close(&d->own);
	ways_close(&d->outer);
	ways_close(&d->inner);
}

/* ---- the table ---- */

static void put_file_name(const char *path, struct buf *out)
{
	const char *name = path_file(path);
	buf_put_clean(out, name, strlen(name));
}

static void put_heading(const struct detail *d, struct buf *out)
{
	const struct path_function *f = d->f->function;
	char text[SUMMARY_COUNT_MAX];
	buf_puts(out, "\n ");
	show_put_name(d->f->name, out);
	buf_puts(out, " (");
	put_file_name(f->module, out);
	if (d->own.main) {
		buf_puts(out, ", ");
		put_file_name(d->own.files[d->own.main - 1], out);
	}
	buf_printf(out, "): %s call%s", summary_count(text, f->entries),
		   f->entries == 1 ? "" : "s");
	if (d->f->flow.open)
		buf_printf(out, ", %s not seen to end", summary_count(text, d->f->flow.open));
	if (f->unknown)
		buf_printf(out, ", %s unknown paths", summary_count(text, f->unknown));
	buf_printf(out, "\n %14s %6s %7s", "count", "share", "length");
	if (d->ranking->metric) {
		char name[METRIC_COLUMNS + 1];
		snprintf(name, sizeof name, "%s", d->ranking->metric->name);
		buf_printf(out, " %*s %6s %6s %-6s", METRIC_COLUMNS, name, "share", "sure", "");
	}
	buf_puts(out, "  path\n");
}

static void put_sampled(const struct detail *d, const struct ranked_path *p, struct buf *out)
{
	const struct path_metric *metric = d->ranking->metric;
	if (!metric)
		return;
	enum path_heat heat = ranking_heat(d->ranking, p->sampled.value, ranked_path_cost(p));
	show_put_value(out, metric, p->sampled.value, METRIC_COLUMNS);
	show_put_share(out, p->sampled.value, d->f->metered.value, 6);
	if (p->sampled.value)
		show_put_share(out, p->sampled.sure, p->sampled.value, 6);
	else
		buf_printf(out, " %6s", "");
	buf_printf(out, " %-6s", heat == PATH_COLD ? "" : path_heat_name(heat));
}

static void put_rest(const struct detail *d, struct buf *out)
{
	const struct ranked_function *f = d->f;
	uint64_t value = ranked_function_value(f, f->path_count) -
			 ranked_function_value(f, d->count);
	size_t more = f->path_count - d->count;
	buf_printf(out, " %14s", "");
	show_put_share(out, f->instructions - ranked_function_cost(f, d->count), f->instructions,
		       6);
	buf_printf(out, " %7s", "");
	if (d->ranking->metric) {
		show_put_value(out, d->ranking->metric, value, METRIC_COLUMNS);
		show_put_share(out, value, f->metered.value, 6);
		buf_printf(out, " %6s %-6s", "", "");
	}
	buf_printf(out, "  %zu more path%s\n", more, more == 1 ? "" : "s");
}

static void put_rows(const struct detail *d, struct buf *out)
{
	const struct ranked_function *f = d->f;
	for (size_t i = 0; i < d->count; i++) {
		show_put_count(out, f->paths[i].count, 14);
		show_put_share(out, ranked_path_cost(&f->paths[i]), f->instructions, 6);
		buf_printf(out, " %7" PRIu64, f->paths[i].length);
		put_sampled(d, &f->paths[i], out);
		buf_printf(out, "  %s", d->paths[i].text);
		if (d->paths[i].difference)
			buf_printf(out, "  [by %s]", d->paths[i].difference);
		buf_puts(out, "\n");
	}
	if (d->count < f->path_count)
		put_rest(d, out);
}

struct err *show_paths(const struct ranking *ranking, const struct ranked_function *f,
		       uint64_t limit, struct buf *out)
{
	struct detail d;
	struct err *e = open_detail(
		f, limit && limit < f->path_count ? (size_t)limit : f->path_count, &d);
	d.ranking = ranking;
	if (!e) {
		put_heading(&d, out);
		put_rows(&d, out);
	}
	close_detail(&d);
	return e;
}
