/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the paths of a function go is told by lines of its own file: code that was inlined from other files is at the line that it
 * was called on. Paths that are the same by these lines differ in that code, or within a line: then it is told which places each
 * of them comes by, and others of them do not. If that does not tell them apart either, it is told by addresses.
 */
#include "paths/told.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "paths/ranking.h"
#include "paths/result.h"

#define PLACES_SHOWN 4u /* of a difference */

static bool is_twin(const struct told *d, size_t i, size_t k)
{
	return k != i && !strcmp(d->all[k].text, d->all[i].text);
}

static bool comes_by(const struct numbering_path *path, uint32_t block)
{
	for (size_t i = 0; i < path->count; i++)
		if (path->blocks[i] == block)
			return true;
	return false;
}

/* Whether a twin does not come by this block. */
static bool tells_apart(const struct told *d, size_t i, uint32_t block)
{
	for (size_t k = 0; k < d->count; k++)
		if (is_twin(d, i, k) && !comes_by(&d->all[k].path, block))
			return true;
	return false;
}

static void put_place(const struct told *d, uint32_t block, bool addresses, struct buf *out)
{
	if (addresses)
		buf_printf(out, "0x%" PRIx64, d->f->function->graph.blocks[block].start);
	else
		ways_print_block(&d->inner, block, out);
}

/* The places that a twin does not come by; NULL: there are none. */
static char *find_difference(const struct told *d, size_t i, bool addresses)
{
	const struct numbering_path *path = &d->all[i].path;
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

static bool has_twin(const struct told *d, size_t i)
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

static bool has_same_difference(const struct told *d, size_t i)
{
	for (size_t k = 0; k < d->count; k++)
		if (is_twin(d, i, k) && is_same_text(d->all[i].difference, d->all[k].difference))
			return true;
	return false;
}

static void find_differences(struct told *d)
{
	bool *vague = calloc(d->count + 1, sizeof *vague);
	for (size_t i = 0; i < d->count; i++)
		if (has_twin(d, i))
			d->all[i].difference = find_difference(d, i, false);
	for (size_t i = 0; vague && i < d->count; i++)
		vague[i] = has_same_difference(d, i);
	for (size_t i = 0; vague && i < d->count; i++)
		if (vague[i]) {
			free(d->all[i].difference);
			d->all[i].difference = find_difference(d, i, true);
		}
	free(vague);
}

static struct err *tell(struct told *d, uint64_t number)
{
	struct told_path *t = &d->all[d->count++];
	struct buf text = {0};
	struct err *e = numbering_decode(&d->f->function->numbering, number, &t->path);
	if (e)
		return e;
	way_ends_print_start(&d->ends, &t->path, &text);
	ways_print(&d->own, &t->path, &text);
	way_ends_print_end(&d->ends, &t->path, &text);
	t->text = buf_take(&text);
	return t->text ? NULL : err_new("out of memory");
}

struct err *told_open(const struct ranked_function *f, const uint64_t *numbers, size_t count,
		      struct told *d)
{
	const struct graph *g = &f->function->graph;
	*d = (struct told){.f = f, .all = calloc(count + 1, sizeof *d->all)};
	if (!d->all)
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
	for (size_t i = 0; i < count && !e; i++)
		e = tell(d, numbers[i]);
	if (!e)
		find_differences(d);
	return e;
}

void told_close(struct told *d)
{
	for (size_t i = 0; i < d->count; i++) {
		numbering_path_free(&d->all[i].path);
		free(d->all[i].text);
		free(d->all[i].difference);
	}
	free(d->all);
	way_ends_close(&d->ends);
	ways_close(&d->own);
	ways_close(&d->outer);
	ways_close(&d->inner);
	*d = (struct told){0};
}

const char *told_file(const struct told *d)
{
	return d->own.main ? d->own.files[d->own.main - 1] : NULL;
}
