/* SPDX-License-Identifier: Apache-2.0 */
/* Each scope (analyze/scopes.h) that has samples of its own becomes part of a row. */
#include "compare/counts.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/attribution.h"
#include "analyze/modules.h"
#include "analyze/scopes.h"
#include "base/buf.h"
#include "base/err.h"
#include "compare/matches.h"
#include "compare/names.h"
#include "compare/runs.h"
#include "profile/profile.h"

#define ROWS_MAX (1u << 22)

struct maker {
	const struct runs *runs;
	const struct profile *p;
	const struct counts_options *o;
	struct counts *out;
	struct modules *modules;
	struct attribution a;
	struct matches matches;
	uint32_t *
		row_of; /* by scope that stands for others, plus 1; 0: not yet. Scope 0: in no loop */
	bool failed;    /* out of memory */
};

/* ---- rows ---- */

static char *copy(struct maker *k, const char *text)
{
	char *made = strdup(text);
	k->failed |= !made;
	return made;
}

static char *take(struct maker *k, struct buf *text)
{
	char *taken = text->size ? buf_take(text) : strdup("");
	k->failed |= text->failed || !taken;
	return taken;
}

static char *module_of(struct maker *k, const struct scope *s)
{
	struct buf name = {0};
	if (!s->module)
		return NULL;
	name_module(k->p->modules[s->module].path, &name);
	return take(k, &name);
}

/* The function that a loop is in, inlined or not. */
static char *function_of(struct maker *k, const struct scope *loop)
{
	uint32_t own = loop->inlined ? loop->inlined : loop->function, same = k->matches.same[own];
	const struct scope *f = scopes_get(k->a.scopes, own);
	struct buf name = {0};
	if (k->matches.names[same])
		return copy(k, k->matches.names[same]);
	if (f->nameless)
		return copy(k, f->name);
	name_plain(f->name, &name);
	return take(k, &name);
}

static void describe(struct maker *k, struct row *row, uint32_t scope)
{
	const struct scope *s = scopes_get(k->a.scopes, scope),
			   *latest = scopes_get(k->a.scopes, k->matches.latest[scope]);
	bool whole = k->matches.whole[scope], loop = s->kind == SCOPE_LOOP && !whole;
	if (!scope && k->o->by == COUNTS_LOOP) {
		*row = (struct row){.name = copy(k, "(in no loop)"),
				    .kind = scope_kind_name(SCOPE_LOOP)};
		return;
	}
	*row = (struct row){
		.name = copy(k, k->matches.names[scope] ? k->matches.names[scope] : s->name),
		.function = loop ? function_of(k, s) : NULL,
		.module = module_of(k, latest),
		.kind = scope_kind_name(whole || s->kind == SCOPE_INLINE ? SCOPE_FUNCTION
									 : s->kind),
		.file = latest->file && !whole ? copy(k, latest->file) : NULL,
		.line = whole ? 0 : latest->line,
	};
}

static bool grow(struct counts *r)
{
	size_t room = r->room ? r->room * 2 : 256;
	if (r->count < r->room)
		return true;
	struct row *all = reallocarray(r->all, room, sizeof *all);
	if (all)
		r->all = all;
	uint64_t *counts = reallocarray(r->counts, room * r->runs, sizeof *counts);
	if (counts)
		r->counts = counts;
	if (all && counts)
		r->room = room;
	return all && counts;
}

/* The scope that the samples of a node are of: the innermost one; by loop the innermost loop; 0: none. */
static uint32_t scope_of(const struct maker *k, uint32_t node)
{
	const struct attribution_span *span = &k->a.spans[node];
	for (uint32_t i = span->count; i-- > 0;) {
		uint32_t scope = k->matches.same[k->a.steps[span->first + i].scope];
		if (k->o->by != COUNTS_LOOP || k->matches.whole[scope] ||
		    scopes_get(k->a.scopes, scope)->kind == SCOPE_LOOP)
			return scope;
	}
	return k->matches.same[attribution_rest(&k->a, node)];
}

static struct err *find_row(struct maker *k, uint32_t node, uint32_t *row)
{
	uint32_t scope = scope_of(k, node);
	struct counts *r = k->out;
	if (!k->row_of[scope]) {
		if (r->count >= ROWS_MAX)
			return err_new("too many rows to compare");
		if (!grow(r))
			return err_new("out of memory");
		memset(r->counts + r->count * r->runs, 0, r->runs * sizeof *r->counts);
		describe(k, &r->all[r->count++], scope);
		k->row_of[scope] = (uint32_t)r->count;
	}
	*row = k->row_of[scope] - 1;
	return k->failed ? err_new("out of memory") : NULL;
}

static struct err *count_values(struct maker *k)
{
	struct err *e = NULL;
	k->row_of = calloc(scopes_count(k->a.scopes) + 1, sizeof *k->row_of);
	if (!k->row_of)
		return err_new("out of memory");
	for (size_t i = 0; i < k->p->value_count && !e; i++) {
		const struct profile_value *v = &k->p->values[i];
		uint32_t run = k->runs->of_thread[v->thread], row = 0;
		if (v->metric != k->runs->all[run].metric)
			continue;
		e = find_row(k, v->node, &row);
		if (!e)
			k->out->counts[row * k->out->runs + run] += v->count;
	}
	return e;
}

static struct err *make(struct maker *k, struct buf *notes)
{
	/* What is in loops, and around them, tells which of them are the same. */
	static const enum attribution_by by[] = {[COUNTS_FUNCTION] = BY_FUNCTION,
						 [COUNTS_LOOP] = BY_FUNCTION,
						 [COUNTS_LINE] = BY_LINE,
						 [COUNTS_MODULE] = BY_MODULE};
	struct attribution_options a = {
		.by = by[k->o->by],
		.no_inline = k->o->no_inline,
		.no_loops = k->o->by != COUNTS_LOOP,
	};
	struct buf wholes = {0};
	struct err *e = modules_open(k->p, k->o->debuginfod, &k->modules);
	if (!e)
		e = attribution_make(k->p, k->modules, &a, &k->a);
	if (!e)
		e = matches_make(k->runs, k->o->old_runs, k->modules, &k->a, &k->matches, &wholes);
	if (!e)
		e = count_values(k);
	if (!e) {
		modules_notes(k->modules, NULL, notes);
		buf_puts(notes, buf_text(&wholes));
	}
	buf_free(&wholes);
	return e;
}

struct err *counts_make(const struct runs *runs, const struct counts_options *options,
			struct counts *out, struct buf *notes)
{
	struct maker k = {.runs = runs, .p = runs->profile, .o = options, .out = out};
	*out = (struct counts){.runs = runs->count};
	struct err *e = make(&k, notes);
	matches_free(&k.matches);
	attribution_free(&k.a);
	modules_close(k.modules);
	free(k.row_of);
	if (e)
		counts_free(out);
	return e;
}

void counts_free(struct counts *r)
{
	for (size_t i = 0; i < r->count; i++) {
		free(r->all[i].name);
		free(r->all[i].function);
		free(r->all[i].module);
		free(r->all[i].file);
	}
	free(r->all);
	free(r->counts);
	*r = (struct counts){0};
}
