/* SPDX-License-Identifier: Apache-2.0 */
/*
 *      in its calling contexts:
 *           calls  share    paths  hottest  called by
 *       1 204 321    62%       12      71%  other:23 < main:9
 *          90 311    31%        4      98%  main:12
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/summary.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "image/lines.h"
#include "paths/ranking.h"
#include "paths/result.h"
#include "paths/show_parts.h"

#define CHAIN_COLUMNS 100

struct shown { /* a context */
	uint32_t index;
	uint64_t instructions, hottest;
};

static int by_number(const void *a, const void *b)
{
	const struct ranked_path *x = *(const struct ranked_path *const *)a,
				 *y = *(const struct ranked_path *const *)b;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* The paths of a function by number, malloc'ed; NULL: no memory. */
static const struct ranked_path **order(const struct ranked_function *f)
{
	const struct ranked_path **paths = calloc(f->path_count + 1, sizeof *paths);
	for (size_t i = 0; i < f->path_count && paths; i++)
		paths[i] = &f->paths[i];
	if (paths)
		qsort(paths, f->path_count, sizeof *paths, by_number);
	return paths;
}

static int by_instructions(const void *a, const void *b)
{
	const struct shown *x = a, *y = b;
	if (x->instructions != y->instructions)
		return x->instructions < y->instructions ? 1 : -1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static struct shown measure(const struct path_context *n, uint32_t index,
			    const struct ranked_path *const *paths, size_t count)
{
	struct shown s = {.index = index};
	for (size_t i = 0, k = 0; i < n->taken_count; i++) {
		while (k < count && paths[k]->number < n->taken[i].path)
			k++;
		bool known = k < count && paths[k]->number == n->taken[i].path;
		uint64_t cost = known ? n->taken[i].count * paths[k]->length : 0;
		s.instructions += cost;
		s.hottest = cost > s.hottest ? cost : s.hottest;
	}
	return s;
}

/* Those of a function, the costliest first, malloc'ed; NULL: no memory. */
static struct shown *list(const struct path_contexts *c, const struct ranked_function *f,
			  size_t *count)
{
	const struct path_function *of = f->function;
	uint32_t first = path_contexts_of(c, of->module, of->address);
	size_t room = 0;
	for (uint32_t i = first; i; i = c->items[i].next)
		room++;
	struct shown *all = calloc(room + 1, sizeof *all);
	const struct ranked_path **paths = order(f);
	*count = 0;
	for (uint32_t i = first; i && all && paths; i = c->items[i].next)
		all[(*count)++] = measure(&c->items[i], i, paths, f->path_count);
	if (!paths) {
		free(all);
		return NULL;
	}
	free(paths);
	if (all)
		qsort(all, *count, sizeof *all, by_instructions);
	return all;
}

/* ---- text ---- */

static struct path_file *file_of(const struct ranking *r, const struct path_caller *place)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->functions[i].function->address == place->address &&
		    !strcmp(r->functions[i].function->module, place->module))
			return r->functions[i].file;
	return NULL;
}

static uint32_t line_at(const struct path_file *file, uint64_t address)
{
	struct line_row *rows = NULL;
	size_t count = 0;
	uint32_t line = 0;
	if (!file || !file->lines)
		return 0;
	err_free(lines_range(file->lines, address, address + 1, &rows, &count));
	if (rows && count)
		line = rows[0].line;
	free(rows);
	return line;
}

static void put_caller(const struct ranking *r, const struct path_caller *place, uint64_t site,
		       struct buf *out)
{
	char *name = ranking_name(place->name, place->address);
	uint32_t line = site ? line_at(file_of(r, place), site) : 0;
	show_put_name(name ? name : "", out);
	if (line)
		buf_printf(out, ":%u", line);
	if (!site)
		buf_puts(out, " by others");
	free(name);
}

/* Who called it, innermost first. */
static void put_chain(const struct ranking *r, const struct path_contexts *c, uint32_t index,
		      struct buf *out)
{
	struct buf chain = {0};
	const struct path_context *n = &c->items[index];
	for (; n->parent >= PATH_CONTEXTS_FIRST && chain.size < 2 * CHAIN_COLUMNS;
	     n = &c->items[n->parent]) {
		buf_puts(&chain, chain.size ? " < " : "");
		put_caller(r, &c->places[c->items[n->parent].place], n->site, &chain);
	}
	if (n->parent == PATH_ASTRAY)
		buf_puts(&chain, chain.size ? " < (not known)" : "(not known)");
	else if (!chain.size)
		buf_puts(&chain, "nobody that is counted");
	buf_put_cut(out, buf_text(&chain), CHAIN_COLUMNS);
	buf_free(&chain);
}

struct err *show_contexts(const struct ranking *r, const struct path_result *result,
			  const struct ranked_function *f, uint64_t limit, struct buf *out)
{
	const struct path_contexts *c = &result->contexts;
	size_t count = 0;
	char text[SUMMARY_COUNT_MAX];
	if (!c->count)
		return NULL;
	struct shown *all = list(c, f, &count);
	if (!all)
		return err_new("out of memory");
	if (count)
		buf_printf(out, "\n %14s %6s %7s %8s  in %s context%s, called by\n", "calls",
			   "share", "paths", "hottest", summary_count(text, count),
			   count == 1 ? "" : "s");
	for (size_t i = 0; i < count && (!limit || i < limit); i++) {
		const struct path_context *n = &c->items[all[i].index];
		show_put_count(out, n->entries, 14);
		show_put_share(out, all[i].instructions, f->instructions, 6);
		show_put_count(out, n->taken_count, 7);
		show_put_share(out, all[i].hottest, all[i].instructions, 8);
		buf_puts(out, "  ");
		put_chain(r, c, all[i].index, out);
		buf_puts(out, "\n");
	}
	if (limit && count > limit)
		buf_printf(out, " %14s %6s %7s %8s  %s more\n", "", "", "", "",
			   summary_count(text, count - limit));
	free(all);
	return NULL;
}

void show_contexts_summary(const struct ranking *r, const struct path_result *result,
			   const char *name, struct buf *out)
{
	const struct path_contexts *c = &result->contexts;
	char text[SUMMARY_COUNT_MAX];
	size_t contexts = 0, without = 0;
	const char *first = NULL;
	if (!c->count)
		return;
	for (size_t i = PATH_CONTEXTS_FIRST; i < c->count; i++)
		contexts += c->items[i].entries || c->items[i].taken_count;
	for (size_t i = 0; i < r->count; i++)
		if (r->functions[i].function->no_context && r->functions[i].function->entries) {
			first = first ? first : r->functions[i].name;
			without++;
		}
	buf_printf(out, "%*s%s calling context%s", (int)strlen(name), "",
		   summary_count(text, contexts), contexts == 1 ? "" : "s");
	if (without) {
		buf_printf(out, "; %s function%s counted without: ", summary_count(text, without),
			   without == 1 ? " is" : "s are");
		show_put_name(first, out);
		buf_puts(out, without > 1 ? ", ..." : "");
	}
	buf_puts(out, "\n");
}

/* ---- JSON ---- */

void show_path_contexts_json(const struct path_result *result, const struct path_function *f,
			     uint64_t path, struct json *j)
{
	const struct path_contexts *c = &result->contexts;
	if (!c->count)
		return;
	json_key(j, "contexts");
	json_begin_array(j);
	for (uint32_t i = path_contexts_of(c, f->module, f->address); i; i = c->items[i].next) {
		uint64_t count = path_context_count(&c->items[i], path);
		if (!count)
			continue;
		json_begin_array(j);
		json_u64(j, i);
		json_u64(j, count);
		json_end_array(j);
	}
	json_end_array(j);
}

void show_function_contexts_json(const struct path_result *result, const struct path_function *f,
				 struct json *j)
{
	const struct path_contexts *c = &result->contexts;
	if (!c->count)
		return;
	json_key(j, "contexts");
	if (f->no_context) {
		json_null(j);
		return;
	}
	json_begin_array(j);
	for (uint32_t i = path_contexts_of(c, f->module, f->address); i; i = c->items[i].next)
		json_u64(j, i);
	json_end_array(j);
}

static void put_context_json(const struct path_contexts *c, uint32_t index, struct json *j)
{
	const struct path_context *n = &c->items[index];
	const struct path_caller *place = &c->places[n->place];
	char *name = ranking_name(place->name, place->address);
	json_begin_object(j);
	json_put_u64(j, "id", index);
	json_put_string(j, "name", name);
	json_put_string(j, "module", place->module);
	json_key(j, "address");
	json_address(j, place->address);
	json_put_bool(j, "known", n->parent != PATH_ASTRAY);
	json_key(j, "caller");
	if (n->parent >= PATH_CONTEXTS_FIRST)
		json_u64(j, n->parent);
	else
		json_null(j);
	json_key(j, "site");
	if (n->site)
		json_address(j, n->site);
	else
		json_null(j);
	json_put_u64(j, "entries", n->entries);
	json_put_u64(j, "unknown", n->unknown);
	json_end_object(j);
	free(name);
}

void show_contexts_json(const struct path_result *result, struct json *j)
{
	const struct path_contexts *c = &result->contexts;
	if (!c->count)
		return;
	json_key(j, "contexts");
	json_begin_array(j);
	for (uint32_t i = PATH_CONTEXTS_FIRST; i < c->count; i++)
		put_context_json(c, i, j);
	json_end_array(j);
}
