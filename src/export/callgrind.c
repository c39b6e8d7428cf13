/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callgrind's format, for KCachegrind and callgrind_annotate. It knows no paths, only
 * what each function took itself (by line) and what it took in each call. The cost of a
 * function with all that it calls is for the reader to add up: both do so over the calls of it.
 *
 * So that this is right for recursive functions, a sample counts for one call of each function on its
 * path: the first one.
 *
 *     path of a sample   main -> f -> f -> g -> f -> h
 *     counts for         main -> f, f -> g, f -> h; not for f -> f, g -> f
 *     own                h
 *
 * In the tree of paths: the cost of the call that leads to a row is the row's total, or nothing where
 * its function stands above it already. What has no caller is called by "(all)".
 *
 * What is one function for the readers, by name, file and module, is one here. Its name is told once,
 * with a number that is then used instead: one of this function, not of the name, or KCachegrind would
 * take those of other modules for the same.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/attribution.h"
#include "analyze/lookup.h"
#include "analyze/scopes.h"
#include "analyze/strings.h"
#include "base/buf.h"
#include "base/err.h"
#include "export/job.h"
#include "export/locations.h"
#include "export/text.h"
#include "profile/profile.h"

#define NO_FILE "???" /* as callgrind says it */
#define ALL "(all)"   /* the caller of what has none, so that every function is called */
#define NONE UINT32_MAX
#define WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

struct cost { /* of a line of a function, or of its calls of another */
	uint32_t function, line;
	uint32_t callee; /* NONE: its own */
	size_t values;
};

struct writer {
	struct job *j;
	struct frame_tree s;
	uint32_t *function_of;  /* by scope; a scope that stands for all alike */
	uint64_t *self, *total; /* by row and metric */
	uint64_t *calls;        /* likewise: of the call that leads to the row */
	uint32_t *child, *next; /* rows */
	struct cost *costs;
	size_t cost_count, cost_room;
	struct lookup lines;           /* function and line -> a number */
	struct lookup by_line;         /* that and the callee -> cost */
	uint64_t *values;              /* of costs, by metric */
	struct strings files, objects; /* that were written already: in short from then on */
	size_t files_told, objects_told;
	uint32_t *numbers; /* likewise of functions, by scope; 0: not yet. The last is (all)'s */
	uint32_t number_count;
};

static uint32_t scope_of(const struct writer *w, size_t row)
{
	return w->function_of[w->s.locations.frames[w->s.frame[row]].scope];
}

/* ---- functions ---- */

static const char *file_of(const struct writer *w, uint32_t scope)
{
	const struct scope *s = job_scope(w->j, scope);
	return s->file && *s->file ? s->file : NO_FILE;
}

static int compare_scopes(const void *a, const void *b, void *context)
{
	struct writer *w = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int order = strcmp(job_name(w->j, x), job_name(w->j, y));
	if (!order)
		order = strcmp(file_of(w, x), file_of(w, y));
	return order ? order : strcmp(job_module(w->j, x), job_module(w->j, y));
}

static struct err *join_functions(struct writer *w)
{
	const struct locations *l = &w->s.locations;
	size_t count = 0, scopes = scopes_count(w->j->a->scopes);
	uint32_t *order = calloc(scopes + 1, sizeof *order);
	w->function_of = calloc(scopes + 1, sizeof *w->function_of);
	if (!order || !w->function_of) {
		free(order);
		return err_new("out of memory");
	}
	memset(w->function_of, 0xff, scopes * sizeof *w->function_of);
	for (size_t i = 0; i < l->frame_count; i++) {
		uint32_t scope = l->frames[i].scope;
		if (w->function_of[scope] == NONE)
			order[count++] = scope;
		w->function_of[scope] = scope;
	}
	qsort_r(order, count, sizeof *order, compare_scopes, w);
	for (size_t i = 1; i < count; i++)
		if (!compare_scopes(&order[i - 1], &order[i], w))
			w->function_of[order[i]] = w->function_of[order[i - 1]];
	free(order);
	return NULL;
}

/* ---- rows ---- */

static uint64_t *values_of(const struct writer *w, uint64_t *values, size_t row)
{
	return values + row * w->j->metric_count;
}

static void add(const struct writer *w, uint64_t *to, const uint64_t *from)
{
	for (size_t m = 0; m < w->j->metric_count; m++)
		to[m] += from[m];
}

static bool is_zero(const struct writer *w, const uint64_t *values)
{
	for (size_t m = 0; m < w->j->metric_count; m++)
		if (values[m])
			return false;
	return true;
}

static struct err *sum_rows(struct writer *w)
{
	const struct profile *p = w->j->p;
	size_t rows = w->s.count + 1, metrics = w->j->metric_count;
	w->self = calloc(rows * metrics + 1, sizeof *w->self);
	w->total = calloc(rows * metrics + 1, sizeof *w->total);
	w->calls = calloc(rows * metrics + 1, sizeof *w->calls);
	if (!w->self || !w->total || !w->calls)
		return err_new("out of memory");
	for (size_t i = 0; i < p->value_count; i++)
		if (job_has(w->j, &p->values[i]))
			values_of(w, w->self, w->s.of_node[p->values[i].node])[job_column(
				w->j, p->values[i].metric)] += p->values[i].count;
	for (size_t i = w->s.count; i-- > 0;) {
		add(w, values_of(w, w->total, i), values_of(w, w->self, i));
		if (w->s.parent[i] != STACK_NONE)
			add(w, values_of(w, w->total, w->s.parent[i]), values_of(w, w->total, i));
	}
	memcpy(w->calls, w->total, w->s.count * metrics * sizeof *w->calls);
	return NULL;
}

/* Lists of children; those of nobody are the children of row `count`. */
static struct err *link_rows(struct writer *w)
{
	size_t count = w->s.count;
	w->child = malloc((count + 1) * sizeof *w->child);
	w->next = malloc((count + 1) * sizeof *w->next);
	if (!w->child || !w->next)
		return err_new("out of memory");
	memset(w->child, 0xff, (count + 1) * sizeof *w->child);
	for (size_t i = count; i-- > 0;) {
		size_t parent = w->s.parent[i] == STACK_NONE ? count : w->s.parent[i];
		w->next[i] = w->child[parent];
		w->child[parent] = (uint32_t)i;
	}
	return NULL;
}

/* Going down the rows */
struct descent {
	uint32_t *path; /* rows, by depth */
	size_t depth;
	uint32_t *open; /* by function: how many rows of the path are its */
};

static void enter(struct writer *w, struct descent *d, uint32_t row)
{
	if (d->open[scope_of(w, row)]++)
		memset(values_of(w, w->calls, row), 0, w->j->metric_count * sizeof *w->calls);
	d->path[d->depth++] = row;
}

static void leave(struct writer *w, struct descent *d)
{
	d->open[scope_of(w, d->path[--d->depth])]--;
}

static void descend(struct writer *w, struct descent *d)
{
	uint32_t row = w->child[w->s.count];
	while (row != NONE) {
		enter(w, d, row);
		uint32_t next = w->child[row];
		while (next == NONE && d->depth) {
			next = w->next[d->path[d->depth - 1]];
			leave(w, d);
		}
		row = next;
	}
}

static struct err *find_calls(struct writer *w)
{
	struct descent d = {0};
	d.path = calloc(w->s.count + 1, sizeof *d.path);
	d.open = calloc(scopes_count(w->j->a->scopes) + 1, sizeof *d.open);
	bool good = d.path && d.open;
	if (good)
		descend(w, &d);
	free(d.path);
	free(d.open);
	return good ? NULL : err_new("out of memory");
}

/* ---- costs ---- */

/* A line is one of the function's file; what comes from another is where the function begins. */
static uint32_t line_of(const struct writer *w, const struct frame *f)
{
	uint32_t function = w->function_of[f->scope];
	const struct scope *s = job_scope(w->j, function);
	bool own = f->line > 0 && f->file && s->file && !strcmp(f->file, s->file);
	return own ? (uint32_t)f->line : s->line > 0 ? (uint32_t)s->line : 0;
}

static struct err *new_cost(struct writer *w, const struct cost *cost, uint32_t *number)
{
	if (w->cost_count == w->cost_room) {
		size_t room = w->cost_room ? w->cost_room * 2 : 1024;
		struct cost *costs = reallocarray(w->costs, room, sizeof *costs);
		w->costs = costs ? costs : w->costs;
		uint64_t *values = reallocarray(w->values, room * (w->j->metric_count + 1),
						sizeof *values);
		w->values = values ? values : w->values;
		if (!costs || !values || room >= NONE)
			return err_new("out of memory");
		w->cost_room = room;
	}
	*number = (uint32_t)w->cost_count++;
	w->costs[*number] = *cost;
	w->costs[*number].values = *number * w->j->metric_count;
	memset(values_of(w, w->values, *number), 0, w->j->metric_count * sizeof *w->values);
	return NULL;
}

static struct err *add_cost(struct writer *w, const struct cost *c, const uint64_t *values)
{
	uint64_t key = (uint64_t)c->function << 32 | c->line;
	uint32_t line = lookup_find(&w->lines, key);
	struct err *e = NULL;
	if (line == LOOKUP_NONE) {
		line = (uint32_t)w->lines.count;
		if (!lookup_put(&w->lines, key, line))
			return err_new("out of memory");
	}
	key = (uint64_t)line << 32 | c->callee;
	uint32_t cost = lookup_find(&w->by_line, key);
	if (cost == LOOKUP_NONE) {
		e = new_cost(w, c, &cost);
		if (!e && !lookup_put(&w->by_line, key, cost))
			e = err_new("out of memory");
	}
	if (!e)
		add(w, values_of(w, w->values, cost), values);
	return e;
}

static struct err *add_row(struct writer *w, size_t row)
{
	const struct frame *f = &w->s.locations.frames[w->s.frame[row]];
	struct cost own = {.function = scope_of(w, row), .line = line_of(w, f), .callee = NONE};
	struct err *e = NULL;
	if (!is_zero(w, values_of(w, w->self, row)))
		e = add_cost(w, &own, values_of(w, w->self, row));
	struct cost call = {.function = NONE, .callee = own.function};
	if (w->s.parent[row] != STACK_NONE) {
		uint32_t parent = w->s.parent[row];
		call.function = scope_of(w, parent);
		call.line = line_of(w, &w->s.locations.frames[w->s.frame[parent]]);
	}
	bool shown = call.function == call.callee || !is_zero(w, values_of(w, w->calls, row));
	return e || !shown ? e : add_cost(w, &call, values_of(w, w->calls, row));
}

/* Functions without any cost, which in recursion there are, have a line of their own all the same:
   callgrind_annotate learns from it which module they are in. */
static struct err *add_silent(struct writer *w)
{
	struct err *e = NULL;
	uint64_t nothing[PROFILE_METRIC_MAX] = {0};
	bool *told = calloc(scopes_count(w->j->a->scopes) + 1, sizeof *told);
	if (!told)
		return err_new("out of memory");
	for (size_t i = 0; i < w->cost_count; i++)
		if (w->costs[i].function != NONE)
			told[w->costs[i].function] = true;
	for (size_t i = 0; !e && i < w->s.count; i++) {
		struct cost own = {.function = scope_of(w, i), .callee = NONE};
		own.line = line_of(w, &w->s.locations.frames[w->s.frame[i]]);
		if (!told[own.function])
			e = add_cost(w, &own, nothing);
		told[own.function] = true;
	}
	free(told);
	return e;
}

static struct err *find_costs(struct writer *w)
{
	struct err *e = NULL;
	for (size_t i = 0; !e && i < w->s.count; i++)
		e = add_row(w, i);
	return e ? e : add_silent(w);
}

static int compare_numbers(uint32_t x, uint32_t y)
{
	return x < y ? -1 : x > y;
}

/* A function's own lines come before its calls. */
static int compare_costs(const void *a, const void *b)
{
	const struct cost *x = a, *y = b;
	int order = compare_numbers(x->function, y->function);
	if (!order)
		order = (x->callee != NONE) - (y->callee != NONE);
	if (!order)
		order = compare_numbers(x->line, y->line);
	return order ? order : compare_numbers(x->callee, y->callee);
}

/* ---- text ---- */

/* "ob=(3) name", and from then on "ob=(3)". */
static void put_name(struct writer *w, const char *key, struct strings *strings, size_t *told,
		     const char *name)
{
	uint32_t number = text_number(strings, name);
	fprintf(w->j->out, "%s=(%" PRIu32 ")", key, number + 1);
	if (number >= *told)
		fprintf(w->j->out, " %s", strings_get(strings, number));
	*told = number >= *told ? number + 1 : *told;
	fputs("\n", w->j->out);
}

static void put_function_name(struct writer *w, const char *key, uint32_t function)
{
	bool all = function == NONE;
	uint32_t *number = &w->numbers[all ? scopes_count(w->j->a->scopes) : function];
	bool told = *number;
	if (!told)
		*number = ++w->number_count;
	fprintf(w->j->out, "%s=(%" PRIu32 ")%s%s\n", key, *number, told ? "" : " ",
		told  ? ""
		: all ? ALL
		      : job_name(w->j, function));
}

static void put_function(struct writer *w, uint32_t function, bool callee)
{
	bool all = function == NONE;
	const char *module = all ? "" : job_module(w->j, function);
	put_name(w, callee ? "cob" : "ob", &w->objects, &w->objects_told,
		 *module ? module : NO_FILE);
	put_name(w, callee ? "cfi" : "fl", &w->files, &w->files_told,
		 all ? NO_FILE : file_of(w, function));
	put_function_name(w, callee ? "cfn" : "fn", function);
}

static void put_values(struct writer *w, const uint64_t *values)
{
	for (size_t m = 0; m < w->j->metric_count; m++)
		fprintf(w->j->out, " %" PRIu64, values[m]);
	fputs("\n", w->j->out);
}

static void put_cost(struct writer *w, const struct cost *c)
{
	if (c->callee != NONE) {
		int line = job_scope(w->j, c->callee)->line;
		put_function(w, c->callee, true);
		fprintf(w->j->out, "calls=1 %d\n", line > 0 ? line : 0);
	}
	fprintf(w->j->out, "%" PRIu32, c->line);
	put_values(w, w->values + c->values);
}

static void put_events(struct writer *w)
{
	struct buf list = {0};
	for (size_t i = 0; i < w->j->metric_count; i++) {
		const struct profile_metric *m = &w->j->p->metrics[w->j->metrics[i]];
		struct buf name = {0}, unit = {0};
		for (const char *c = m->name; *c; c++)
			buf_append(&name, strchr(WORD, *c) ? c : "_", 1);
		text_clean(m->unit, "", 0, &unit);
		fprintf(w->j->out, "event: %s : samples of %s, %" PRIu64 " %s each\n",
			buf_text(&name), buf_text(&name), profile_period(w->j->p, w->j->metrics[i]),
			buf_text(&unit));
		buf_printf(&list, " %s", buf_text(&name));
		w->j->no_memory |= name.failed;
		buf_free(&name);
		buf_free(&unit);
	}
	fprintf(w->j->out, "events:%s\n", buf_text(&list));
	buf_free(&list);
}

static void put_header(struct writer *w)
{
	uint64_t sums[PROFILE_METRIC_MAX] = {0};
	struct buf command = {0};
	text_clean(w->j->p->command ? w->j->p->command : "", "", 0, &command);
	fprintf(w->j->out, "# callgrind format\nversion: 1\ncreator: %s\ncmd: %s\n",
		w->j->o->creator, buf_text(&command));
	buf_free(&command);
	fputs("positions: line\n", w->j->out);
	put_events(w);
	for (size_t i = 0; i < w->s.count; i++)
		add(w, sums, values_of(w, w->self, i));
	fputs("summary:", w->j->out);
	put_values(w, sums);
}

static void put_all(struct writer *w)
{
	if (w->cost_count)
		qsort(w->costs, w->cost_count, sizeof *w->costs, compare_costs);
	put_header(w);
	for (size_t i = 0; i < w->cost_count; i++) {
		if (!i || w->costs[i].function != w->costs[i - 1].function) {
			fputs("\n", w->j->out);
			put_function(w, w->costs[i].function, false);
		}
		put_cost(w, &w->costs[i]);
	}
	w->j->no_memory |= w->files.failed || w->objects.failed;
}

static void free_all(struct writer *w)
{
	frame_tree_free(&w->s);
	free(w->function_of);
	free(w->self);
	free(w->total);
	free(w->calls);
	free(w->child);
	free(w->next);
	free(w->costs);
	free(w->values);
	lookup_free(&w->lines);
	lookup_free(&w->by_line);
	strings_free(&w->files);
	strings_free(&w->objects);
	free(w->numbers);
}

struct err *callgrind_write(struct job *j)
{
	static struct err *(*const steps[])(struct writer *) = {
		join_functions, sum_rows, link_rows, find_calls, find_costs,
	};
	struct writer w = {.j = j};
	struct err *e = frame_tree_make(j, &w.s);
	w.numbers = calloc(scopes_count(j->a->scopes) + 1, sizeof *w.numbers);
	if (!e && !w.numbers)
		e = err_new("out of memory");
	for (size_t i = 0; !e && i < sizeof steps / sizeof *steps; i++)
		e = steps[i](&w);
	if (!e)
		put_all(&w);
	free_all(&w);
	return e;
}
