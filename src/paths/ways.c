/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the blocks of a path to ranges of lines.
 *
 * Each block has a set of lines. All lines of the function are put in order, and each has its rank: so lines that follow each
 * other, with nothing between them that has code, have ranks that do. Runs of ranks become ranges. A range that touches the one
 * before it makes that longer. A range that has been told already is left out: within a path no block comes twice, so it is the
 * compiler that has mixed the lines.
 */
#include "paths/ways.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/path.h"
#include "flow/graph.h"
#include "image/lines.h"
#include "image/places.h"
#include "paths/files.h"
#include "paths/numbering.h"

#define RUNS_SHOWN 14u /* of a path; the rest in its middle is left out */
#define RUNS_AT_END 6u
#define FILES_MAX 1000u

/* ---- which lines ---- */

struct collected {
	struct ways *ways;
	struct path_file *file;
	struct way_line *lines;
	size_t count, room;
	uint32_t *first;
};

static uint32_t file_number(struct ways *w, const char *path)
{
	for (size_t i = 0; i < w->file_count; i++)
		if (!strcmp(w->files[i], path))
			return (uint32_t)i + 1;
	if (!ARRAY_ROOM_BELOW(w->files, w->file_count, w->file_room, FILES_MAX))
		return 0;
	w->files[w->file_count] = strdup(path);
	return w->files[w->file_count] ? (uint32_t)++w->file_count : 0;
}

static struct err *add_line(struct collected *c, const char *path, uint32_t line)
{
	if (!path || !line)
		return NULL;
	uint32_t file = file_number(c->ways, path);
	if (!file)
		return NULL;
	if (!ARRAY_ROOM(c->lines, c->count, c->room))
		return err_new("out of memory");
	c->lines[c->count++] = (struct way_line){file, line};
	return NULL;
}

static struct err *add_place(struct collected *c, uint64_t address, enum way_detail detail)
{
	struct place places[PLACES_MAX];
	size_t count = places_find(c->file->places, address, places), i = 0;
	while (count && (places[count - 1].line <= 0 || !places[count - 1].file))
		count--;
	if (!count)
		return NULL;
	const char *file = places[count - 1].file;
	while (i + 1 < count && (detail == WAY_OUTER || places[i].line <= 0 || !places[i].file ||
				 strcmp(places[i].file, file)))
		i++;
	return add_line(c, file, (uint32_t)places[i].line);
}

static struct err *add_block(struct collected *c, const struct graph_block *b,
			     enum way_detail detail)
{
	struct line_row *rows = NULL;
	size_t count = 0, statements = 0;
	struct err *e = lines_range(c->file->lines, b->start, b->end, &rows, &count);
	if (e) { /* damaged: then there are none */
		err_free(e);
		return NULL;
	}
	for (size_t i = 0; i < count; i++)
		statements += rows[i].statement && rows[i].line;
	for (size_t i = 0; i < count && !e; i++) {
		if (statements && !rows[i].statement)
			continue;
		if (detail == WAY_INNER)
			e = add_line(c, lines_file(c->file->lines, rows[i].file), rows[i].line);
		else
			e = add_place(c, rows[i].address, detail);
	}
	free(rows);
	return e;
}

/* ---- their order ---- */

static int by_place(const void *a, const void *b)
{
	const struct way_line *x = a, *y = b;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

static void sort_known(struct ways *w, size_t count)
{
	qsort(w->known, count, sizeof *w->known, by_place);
	for (size_t i = 0; i < count; i++)
		if (!w->known_count || by_place(&w->known[w->known_count - 1], &w->known[i]))
			w->known[w->known_count++] = w->known[i];
}

static uint32_t rank_of(const struct ways *w, const struct way_line *line)
{
	return (uint32_t)FIRST_NOT(i, w->known_count, by_place(&w->known[i], line) < 0);
}

static uint32_t find_main(const struct ways *w)
{
	uint32_t best = 0;
	size_t most = 0, same = 0;
	for (size_t i = 0; i < w->known_count; i++) {
		same = i && w->known[i].file == w->known[i - 1].file ? same + 1 : 1;
		if (same > most) {
			most = same;
			best = w->known[i].file;
		}
	}
	return best;
}

struct err *ways_make(const struct graph *g, const struct way_line *lines, const uint32_t *first,
		      struct ways *w)
{
	size_t count = first[g->block_count], kept = 0;
	w->graph = g;
	w->known = calloc(count + 1, sizeof *w->known);
	w->ranks = calloc(count + 1, sizeof *w->ranks);
	w->first = calloc(g->block_count + 1, sizeof *w->first);
	if (!w->known || !w->ranks || !w->first)
		return err_new("out of memory");
	if (count)
		memcpy(w->known, lines, count * sizeof *lines);
	sort_known(w, count);
	for (size_t b = 0; b < g->block_count; b++) {
		size_t begin = w->first[b] = (uint32_t)kept;
		for (uint32_t i = first[b]; i < first[b + 1]; i++)
			w->ranks[kept++] = rank_of(w, &lines[i]);
		if (kept > begin)
			qsort(w->ranks + begin, kept - begin, sizeof *w->ranks, ascending);
	}
	w->first[g->block_count] = (uint32_t)kept;
	w->main = find_main(w);
	return NULL;
}

struct err *ways_open(const struct graph *g, struct path_file *file, enum way_detail detail,
		      struct ways *out)
{
	*out = (struct ways){0};
	struct collected c = {
		.ways = out, .file = file, .first = calloc(g->block_count + 1, sizeof *c.first)};
	struct err *e = c.first ? NULL : err_new("out of memory");
	bool has_lines = file && file->lines && file->places;
	for (size_t b = 0; b < g->block_count && !e; b++) {
		c.first[b] = (uint32_t)c.count;
		if (has_lines)
			e = add_block(&c, &g->blocks[b], detail);
	}
	if (!e) {
		c.first[g->block_count] = (uint32_t)c.count;
		e = ways_make(g, c.lines, c.first, out);
	}
	free(c.lines);
	free(c.first);
	if (e)
		ways_close(out);
	return e;
}

void ways_close(struct ways *w)
{
	for (size_t i = 0; i < w->file_count; i++)
		free(w->files[i]);
	free(w->files);
	free(w->known);
	free(w->ranks);
	free(w->first);
	*w = (struct ways){0};
}

void ways_agree(struct ways *w, const struct ways *other)
{
	w->main = 0;
	for (size_t i = 0; i < w->file_count && other->main; i++)
		if (!strcmp(w->files[i], other->files[other->main - 1]))
			w->main = (uint32_t)i + 1;
}

/* ---- a path ---- */

struct run { /* ranks, both included; without lines: blocks */
	uint32_t low, high;
};

struct runs {
	struct run *all;
	size_t count, room;
	bool failed;
};

static bool one_file(const struct ways *w, const struct run *x, const struct run *y)
{
	return w->known[x->low].file == w->known[y->low].file;
}

static bool touches(const struct ways *w, const struct run *x, const struct run *y)
{
	return one_file(w, x, y) && x->low <= y->high + 1 && y->low <= x->high + 1;
}

static void add_run(const struct ways *w, struct runs *runs, struct run run)
{
	struct run *last = runs->count ? &runs->all[runs->count - 1] : NULL;
	for (size_t i = 0; i < runs->count; i++)
		if (runs->all[i].low <= run.low && run.high <= runs->all[i].high)
			return;
	if (last && touches(w, last, &run)) {
		last->low = run.low < last->low ? run.low : last->low;
		last->high = run.high > last->high ? run.high : last->high;
	} else if (ARRAY_ROOM(runs->all, runs->count, runs->room)) {
		runs->all[runs->count++] = run;
	} else {
		runs->failed = true;
	}
	/* What was added may have filled a gap. */
	if (runs->count > 1 &&
	    touches(w, &runs->all[runs->count - 2], &runs->all[runs->count - 1])) {
		run = runs->all[--runs->count];
		add_run(w, runs, run);
	}
}

static void add_block_runs(const struct ways *w, uint32_t block, struct runs *runs)
{
	for (uint32_t i = w->first[block]; i < w->first[block + 1];) {
		struct run run = {w->ranks[i], w->ranks[i]};
		while (++i < w->first[block + 1] && w->ranks[i] <= run.high + 1 &&
		       w->known[w->ranks[i]].file == w->known[run.low].file)
			run.high = w->ranks[i];
		add_run(w, runs, run);
	}
}

static void put_file(const struct ways *w, uint32_t file, struct buf *out)
{
	if (file == w->main || !file || file > w->file_count)
		return;
	const char *name = path_file(w->files[file - 1]);
	buf_put_clean(out, name, strlen(name));
	buf_puts(out, ":");
}

static void put_run(const struct ways *w, const struct run *run, bool lines, struct buf *out)
{
	if (!lines) {
		buf_printf(out, "0x%" PRIx64, w->graph->blocks[run->low].start);
		return;
	}
	const struct way_line *low = &w->known[run->low], *high = &w->known[run->high];
	put_file(w, low->file, out);
	buf_printf(out, "%" PRIu32, low->line);
	if (high != low)
		buf_printf(out, "-%" PRIu32, high->line);
}

static void put_runs(const struct ways *w, const struct runs *runs, bool lines, struct buf *out)
{
	size_t left_out = runs->count > RUNS_SHOWN ? runs->count - RUNS_SHOWN : 0;
	for (size_t i = 0; i < runs->count; i++) {
		if (i)
			buf_puts(out, " -> ");
		if (left_out && i == RUNS_SHOWN - RUNS_AT_END) {
			buf_printf(out, "(%zu more) -> ", left_out);
			i += left_out;
		}
		put_run(w, &runs->all[i], lines, out);
	}
}

void ways_print(const struct ways *w, const struct numbering_path *path, struct buf *out)
{
	struct runs runs = {0};
	for (size_t i = 0; i < path->count; i++)
		add_block_runs(w, path->blocks[i], &runs);
	bool lines = runs.count;
	for (size_t i = 0; i < path->count && !lines; i++) {
		if (ARRAY_ROOM(runs.all, runs.count, runs.room))
			runs.all[runs.count++] = (struct run){path->blocks[i], path->blocks[i]};
		else
			runs.failed = true;
	}
	put_runs(w, &runs, lines, out);
	out->failed |= runs.failed;
	free(runs.all);
}

void ways_print_block(const struct ways *w, uint32_t block, struct buf *out)
{
	bool lines = w->first[block] < w->first[block + 1];
	uint32_t at = lines ? w->ranks[w->first[block]] : block;
	put_run(w, &(struct run){at, at}, lines, out);
}
