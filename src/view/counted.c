/* SPDX-License-Identifier: Apache-2.0 */
#include "view/counted.h"

#include <stdlib.h>

#include "analyze/shorten.h"
#include "analyze/strings.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "explain/frequency.h"
#include "paths/executed.h"
#include "paths/stored.h"
#include "paths/told.h"
#include "profile/profile.h"
#include "view/code.h"
#include "view/explained.h"

/* What a page has at most. */
#define FUNCTIONS_MAX 6000u
#define PATHS_OF_FUNCTION 400u
#define PATHS_MAX 60000u
#define STEPS_MAX 3000000u /* blocks of all paths */
#define BLOCKS_MAX 500000u
#define LINES_MAX 1000000u                    /* of all blocks */
#define NUMBER_MAX UINT64_C(9007199254740991) /* what the page can count exactly */

/* ---- of a profile ---- */

static void note(const struct ranking *r, size_t left_out, struct buf *notes)
{
	if (left_out)
		buf_printf(notes,
			   "damaged, or too large: the counts of paths of %zu functions are left "
			   "out\n",
			   left_out);
	if (r->refused)
		buf_printf(notes,
			   "paths: %zu of %zu functions were refused (culprit report --by=path)\n",
			   r->refused, r->count);
	if (r->wrong)
		buf_printf(notes,
			   "paths: %zu functions have counts that do not add up (culprit report "
			   "--by=path)\n",
			   r->wrong);
}

struct err *counted_paths_take(struct profile *profile, struct counted_paths *out,
			       struct buf *notes)
{
	size_t left_out = 0;
	*out = (struct counted_paths){0};
	if (!profile->counted_count)
		return NULL;
	struct err *e = path_result_restore(profile, &out->result, &left_out);
	if (!e)
		e = ranking_make(&out->result, &out->ranking);
	if (!e)
		note(&out->ranking, left_out, notes);
	return e ? e : paths_add_executed(&out->ranking, profile);
}

void counted_paths_free(struct counted_paths *p)
{
	ranking_free(&p->ranking);
	path_result_free(&p->result);
}

/* ---- the page ---- */

const char *const counted_columns[COUNTED_COLUMNS] = {
	"paths.flow",         "paths.name",     "paths.short", "paths.module",
	"paths.file",         "paths.calls",    "paths.open",  "paths.unknown",
	"paths.instructions", "paths.possible", "paths.taken", "paths.listed",
	"paths.wrong",        "path.id",        "path.count",  "path.length",
	"path.text",          "path.by",        "path.next",   "path.blocks",
	"path.block",
};

struct maker {
	const struct profile *profile;
	const struct code *code;
	struct strings *strings;
	struct explained *flow;
	struct counted *out;
	size_t blocks, lines; /* of all functions so far */
};

static void put(struct maker *m, enum counted_column column, uint64_t number)
{
	struct counted_numbers *n = &m->out->columns[column];
	if (ARRAY_ROOM(n->all, n->count, n->room))
		n->all[n->count++] = number < NUMBER_MAX ? number : NUMBER_MAX;
	else
		m->out->failed = true;
}

static void put_flow(struct maker *m, enum explained_column column, uint64_t number)
{
	explained_put(m->flow, column, number < NUMBER_MAX ? number : NUMBER_MAX);
}

/* ---- control flow ---- */

/* The number of a function in `code`; its count where it is not there. */
static size_t find_code(const struct maker *m, uint32_t module, uint64_t start)
{
	size_t i = 0;
	while (i < m->code->function_count &&
	       (m->code->functions[i].module != module || m->code->functions[i].start != start))
		i++;
	return i;
}

static void put_lines(struct maker *m, const struct ways *w, uint32_t block)
{
	uint32_t first = w->first[block], count = w->first[block + 1] - first;
	if (m->lines + count > LINES_MAX)
		count = 0;
	m->lines += count;
	put_flow(m, BLOCK_LINES, count);
	for (uint32_t i = first; i < first + count; i++) {
		const struct way_line *l = &w->known[w->ranks[i]];
		put_flow(m, BLOCK_LINE_FILE, strings_add(m->strings, w->files[l->file - 1]));
		put_flow(m, BLOCK_LINE, l->line);
	}
}

static void put_block(struct maker *m, const struct ranked_function *f, const struct ways *w,
		      uint32_t i)
{
	const struct graph_block *b = &f->function->graph.blocks[i];
	put_flow(m, BLOCK_ADDRESS, b->start);
	put_flow(m, BLOCK_SIZE, b->end - b->start);
	put_flow(m, BLOCK_COUNT, f->flow.blocks[i]);
	put_flow(m, BLOCK_LOW, f->flow.blocks[i]);
	put_flow(m, BLOCK_HIGH, f->flow.blocks[i]);
	put_flow(m, BLOCK_SURE, FREQUENCY_HIGH);
	put_flow(m, BLOCK_LENGTH, f->lengths[i]);
	put_lines(m, w, i);
}

static void put_graph(struct maker *m, const struct ranked_function *f, uint32_t module,
		      const struct ways *w)
{
	const struct graph *g = &f->function->graph;
	put_flow(m, EXPLAINED_FUNCTION, find_code(m, module, f->function->address));
	put_flow(m, EXPLAINED_BLOCKS, g->block_count);
	put_flow(m, EXPLAINED_EDGES, g->edge_count);
	put_flow(m, EXPLAINED_ENTRY, g->entry);
	put_flow(m, EXPLAINED_INCOMPLETE, 0);
	for (uint32_t i = 0; i < g->block_count; i++)
		put_block(m, f, w, i);
	for (size_t i = 0; i < g->edge_count; i++) {
		put_flow(m, EDGE_FROM, g->edges[i].from);
		put_flow(m, EDGE_TO, g->edges[i].to);
		put_flow(m, EDGE_COUNT, f->flow.edges[i]);
		put_flow(m, EDGE_KIND, g->edges[i].kind);
	}
}

/* ---- paths ---- */

static void put_path(struct maker *m, const struct ranked_function *f, const struct ranked_path *p,
		     const struct told_path *told)
{
	const struct graph *g = &f->function->graph;
	uint32_t edge = told->path.edge;
	put(m, PATH_ID, p->number);
	put(m, PATH_COUNT, p->count);
	put(m, PATH_LENGTH, p->length);
	put(m, PATH_TEXT, strings_add(m->strings, told->text));
	put(m, PATH_BY, strings_add(m->strings, told->difference));
	put(m, PATH_NEXT, edge == NUMBERING_OUT ? 0 : g->edges[edge].to + 1);
	put(m, PATH_BLOCKS, told->path.count);
	for (size_t i = 0; i < told->path.count; i++)
		put(m, PATH_BLOCK, told->path.blocks[i]);
}

static size_t count_listed(const struct maker *m, const struct ranked_function *f)
{
	size_t room = PATHS_MAX - m->out->columns[PATH_ID].count,
	       steps = STEPS_MAX - m->out->columns[PATH_BLOCK].count;
	size_t most = f->path_count < PATHS_OF_FUNCTION ? f->path_count : PATHS_OF_FUNCTION;
	size_t by_steps = steps / (f->function->graph.block_count + 1);
	most = most < room ? most : room;
	return most < by_steps ? most : by_steps;
}

static void put_function(struct maker *m, const struct ranked_function *f, uint32_t module,
			 const struct told *told)
{
	const char *file = told_file(told);
	struct buf name = {0};
	name_shorten(f->name, &name);
	put(m, PATHS_FLOW, m->flow->columns[EXPLAINED_FUNCTION].count);
	put(m, PATHS_NAME, strings_add(m->strings, f->name));
	put(m, PATHS_SHORT, strings_add(m->strings, name.size ? buf_text(&name) : f->name));
	put(m, PATHS_MODULE, module);
	put(m, PATHS_FILE, strings_add(m->strings, file));
	put(m, PATHS_CALLS, f->function->entries);
	put(m, PATHS_OPEN, f->flow.open);
	put(m, PATHS_UNKNOWN, f->function->unknown);
	put(m, PATHS_INSTRUCTIONS, f->instructions);
	put(m, PATHS_POSSIBLE, f->function->numbering.path_count);
	put(m, PATHS_TAKEN, f->flow.taken);
	put(m, PATHS_LISTED, told->count);
	put(m, PATHS_WRONG, f->flow.problem_count > 0);
	m->out->failed |= name.failed;
	buf_free(&name);
}

static struct err *add_function(struct maker *m, const struct ranked_function *f)
{
	size_t count = count_listed(m, f);
	uint64_t *numbers = calloc(count + 1, sizeof *numbers);
	uint32_t module = paths_find_module(m->profile, f->function);
	struct told told = {0};
	if (!numbers)
		return err_new("out of memory");
	for (size_t i = 0; i < count; i++)
		numbers[i] = f->paths[i].number;
	struct err *e = told_open(f, numbers, count, &told);
	if (!e) {
		put_function(m, f, module, &told);
		put_graph(m, f, module, &told.own);
		for (size_t i = 0; i < told.count; i++)
			put_path(m, f, &f->paths[i], &told.all[i]);
	}
	m->blocks += f->function->graph.block_count;
	told_close(&told);
	free(numbers);
	return e;
}

struct err *counted_make(const struct ranking *r, const struct profile *profile,
			 const struct code *code, struct strings *strings,
			 struct explained *explained, struct counted *out)
{
	struct maker m = {.profile = profile,
			  .code = code,
			  .strings = strings,
			  .flow = explained,
			  .out = out};
	struct err *e = NULL;
	*out = (struct counted){0};
	for (size_t i = 0; r && i < r->count - r->refused && i < FUNCTIONS_MAX && !e; i++) {
		const struct ranked_function *f = &r->functions[i];
		if (!f->function->entries && !f->flow.taken)
			continue;
		if (m.blocks + f->function->graph.block_count > BLOCKS_MAX)
			break;
		e = add_function(&m, f);
	}
	return !e && (out->failed || explained->failed) ? err_new("out of memory") : e;
}

void counted_free(struct counted *c)
{
	for (size_t i = 0; i < COUNTED_COLUMNS; i++)
		free(c->columns[i].all);
	*c = (struct counted){0};
}
