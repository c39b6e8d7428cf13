/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each scope (analyze/scopes.h) that has samples of its own becomes part of a
 * row. What is compared may be of different builds, so neither addresses nor
 * line numbers make rows equal, but keys (compare/keys.h).
 */
#include "compare/counts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/answers.h"
#include "analyze/attribution.h"
#include "analyze/modules.h"
#include "analyze/scopes.h"
#include "base/buf.h"
#include "base/err.h"
#include "compare/keys.h"
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
	struct keys keys;
	uint32_t *row_of;        /* by scope, plus 1; 0: not yet */
	uint32_t *row_of_module; /* the same by module, of those that are compared as a whole */
	bool *whole;
	bool failed; /* out of memory */
};

/* ---- rows ---- */

static char *copy(struct maker *k, const char *text)
{
	char *made = strdup(text);
	k->failed |= !made;
	return made;
}

/* "find (inlined) of solve" */
static char *describe_loop(struct maker *k, const struct scope *s)
{
	struct buf b = {0};
	if (s->inlined)
		buf_printf(&b, "%s (inlined) of ",
			   keys_plain(&k->keys, scopes_get(k->a.scopes, s->inlined)->name));
	buf_puts(&b, keys_function_name(&k->keys, scopes_get(k->a.scopes, s->function)));
	k->failed |= b.failed;
	return buf_take(&b);
}

/* What the last run says of a row is what people see. */
static void describe(struct maker *k, struct row *row, const struct scope *s, uint32_t run)
{
	bool loop = s->kind == SCOPE_LOOP && s->module, module = s->kind == SCOPE_MODULE;
	free(row->name);
	free(row->function);
	free(row->module);
	free(row->file);
	*row = (struct row){
		.name = copy(k, loop || module ? s->name : keys_function_name(&k->keys, s)),
		.function = loop ? describe_loop(k, s) : NULL,
		.module = s->module ? copy(k, keys_module_name(&k->keys, s->module)) : NULL,
		.kind = scope_kind_name(s->kind == SCOPE_INLINE ? SCOPE_FUNCTION : s->kind),
		.file = s->file ? copy(k, s->file) : NULL,
		.line = s->line,
		.last_run = run,
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

static struct err *find_row(struct maker *k, const struct scope *s, uint32_t node, uint32_t run,
			    uint32_t *out)
{
	const struct profile_node *n = &k->p->nodes[node];
	struct counts *r = k->out;
	uint64_t address = n->address - (n->kind == PROFILE_CALL);
	uint64_t key = keys_of(&k->keys, s, modules_answer(k->modules, n->module, address));
	*out = lookup_find(&r->by_key, key);
	if (*out == LOOKUP_NONE) {
		if (r->count >= ROWS_MAX)
			return err_new("too many rows to compare");
		if (!grow(r) || !lookup_put(&r->by_key, key, (uint32_t)r->count))
			return err_new("out of memory");
		*out = (uint32_t)r->count++;
		memset(r->counts + *out * r->runs, 0, r->runs * sizeof *r->counts);
		r->all[*out] = (struct row){0};
	}
	if (!r->all[*out].name || r->all[*out].last_run < run)
		describe(k, &r->all[*out], s, run);
	return k->failed || k->keys.key.failed || k->keys.text.failed ? err_new("out of memory")
								      : NULL;
}

static uint32_t scope_of(const struct maker *k, uint32_t node)
{
	const struct attribution_span *span = &k->a.spans[node];
	return span->count ? k->a.steps[span->first + span->count - 1].scope
			   : attribution_rest(&k->a, node);
}

/* The row of a node's own samples. */
static struct err *row_of_node(struct maker *k, uint32_t node, uint32_t run, uint32_t *row)
{
	uint32_t module = k->p->nodes[node].module, scope = scope_of(k, node);
	bool whole = k->whole[module];
	uint32_t *known = whole ? &k->row_of_module[module] : &k->row_of[scope];
	struct scope all = keys_whole_scope(module);
	struct err *e = NULL;
	if (!*known) {
		e = find_row(k, whole ? &all : scopes_get(k->a.scopes, scope), node, run, row);
		*known = e ? 0 : *row + 1;
	}
	*row = *known - 1;
	return e;
}

/* A scope's row is looked up with the first node that has it, and named by the last run in which
   such a node came first. */
static struct err *count_values(struct maker *k)
{
	struct err *e = NULL;
	k->row_of = calloc(scopes_count(k->a.scopes) + 1, sizeof *k->row_of);
	k->row_of_module = calloc(k->p->module_count + 1, sizeof *k->row_of_module);
	k->whole = calloc(k->p->module_count + 1, sizeof *k->whole);
	if (!k->row_of || !k->row_of_module || !k->whole)
		return err_new("out of memory");
	for (uint32_t i = 1; i < k->p->module_count && k->o->by != COUNTS_MODULE; i++)
		k->whole[i] = keys_whole(&k->keys, i);
	for (size_t i = 0; i < k->p->value_count && !e; i++) {
		const struct profile_value *v = &k->p->values[i];
		uint32_t run = k->runs->of_thread[v->thread], row;
		if (v->metric != k->runs->all[run].metric)
			continue;
		e = row_of_node(k, v->node, run, &row);
		if (!e)
			k->out->counts[row * k->out->runs + run] += v->count;
	}
	return e;
}

static struct err *make(struct maker *k, struct buf *notes)
{
	static const enum attribution_by by[] = {[COUNTS_FUNCTION] = BY_FUNCTION,
						 [COUNTS_LOOP] = BY_LOOP,
						 [COUNTS_LINE] = BY_LINE,
						 [COUNTS_MODULE] = BY_MODULE};
	struct attribution_options a = {
		.by = by[k->o->by],
		.no_inline = k->o->no_inline,
		.no_loops = k->o->by != COUNTS_LOOP,
	};
	struct err *e = modules_open(k->p, k->o->debuginfod, &k->modules);
	if (!e)
		e = attribution_make(k->p, k->modules, &a, &k->a);
	if (!e)
		e = keys_open(k->p, k->modules, k->a.scopes, k->o->no_inline, &k->keys);
	if (!e)
		e = count_values(k);
	if (!e)
		modules_notes(k->modules, NULL, notes);
	if (!e && k->o->by != COUNTS_MODULE)
		keys_note_wholes(&k->keys, notes);
	return e;
}

struct err *counts_make(const struct runs *runs, const struct counts_options *options,
			struct counts *out, struct buf *notes)
{
	struct maker k = {.runs = runs, .p = runs->profile, .o = options, .out = out};
	*out = (struct counts){.runs = runs->count};
	struct err *e = make(&k, notes);
	keys_close(&k.keys);
	attribution_free(&k.a);
	modules_close(k.modules);
	free(k.row_of);
	free(k.row_of_module);
	free(k.whole);
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
	lookup_free(&r->by_key);
	*r = (struct counts){0};
}
