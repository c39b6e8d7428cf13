/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each scope (analyze/scopes.h) that has samples of its own becomes part of a
 * row. What is compared may be of different builds, so neither addresses nor
 * line numbers make rows equal:
 *
 *    function   its plain name and the file name of its module
 *    loop       its function, and the how-manieth it is of the loops there, by the lines that they
 *               begin in (a compiler makes several of one, all with its line); by address where
 *               there are no lines
 *    line       its function and how far below the function's first line it is
 *    module     the file name
 *
 * A function without a name is known by its address as long as all runs have the
 * same file; else all such functions of a module are one row. And where one build of
 * a module cannot be read any more but another can, all of the module is one row:
 * half of it without names would look as if everything had changed.
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
#include "compare/names.h"
#include "compare/runs.h"
#include "image/places.h"
#include "profile/profile.h"
#include "structure/structure.h"

#define LOOPS_RANKED 20000 /* scopes of a procedure; in larger ones loops are known by line */
#define ROWS_MAX (1u << 22)

struct maker {
	const struct runs *runs;
	const struct profile *p;
	const struct counts_options *o;
	struct counts *out;
	struct modules *modules;
	struct attribution a;
	struct lookup files;     /* hash of a module's file name -> a module */
	bool *rebuilt;           /* by that module: others of the name have another build-id */
	bool *unreadable;        /* by that module: and the file of one of them is gone */
	uint32_t *row_of;        /* by scope, plus 1; 0: not yet */
	uint32_t *row_of_module; /* the same by module, of those that are compared as a whole */
	bool *whole;
	struct buf key, text; /* at work */
};

static uint64_t hash(const char *bytes, size_t size)
{
	uint64_t h = 0xcbf29ce484222325u;
	for (size_t i = 0; i < size; i++)
		h = (h ^ (unsigned char)bytes[i]) * 0x100000001b3u;
	return h ^ h >> 32;
}

static const char *file_of(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	return slash && slash[1] ? slash + 1 : path;
}

static const char *plain(struct maker *k, const char *name)
{
	buf_clear(&k->text);
	name_plain(name, &k->text);
	return k->text.size ? buf_text(&k->text) : name;
}

static const char *module_name(struct maker *k, uint32_t module)
{
	buf_clear(&k->text);
	name_module(k->p->modules[module].path, &k->text);
	return buf_text(&k->text);
}

/* Modules that were built anew between the runs */

static uint64_t module_key(struct maker *k, uint32_t module)
{
	const char *name = module_name(k, module);
	return hash(name, strlen(name));
}

static uint32_t first_of(struct maker *k, uint32_t module)
{
	return module ? lookup_find(&k->files, module_key(k, module)) : LOOKUP_NONE;
}

/* Which modules have code in the tree: others were not opened. */
static bool *find_used(const struct profile *p)
{
	bool *used = calloc(p->module_count + 1, sizeof *used);
	for (size_t i = 0; used && i < p->node_count; i++)
		used[p->nodes[i].module] = true;
	return used;
}

static struct err *find_rebuilt(struct maker *k)
{
	bool *used = find_used(k->p);
	k->rebuilt = calloc(k->p->module_count + 1, sizeof *k->rebuilt);
	k->unreadable = calloc(k->p->module_count + 1, sizeof *k->unreadable);
	bool good = used && k->rebuilt && k->unreadable;
	for (uint32_t i = 1; i < k->p->module_count && good; i++) {
		const struct profile_module *m = &k->p->modules[i];
		uint32_t first = used[i] ? first_of(k, i) : i;
		if (first == LOOKUP_NONE)
			good = lookup_put(&k->files, module_key(k, i), i);
		else if (used[i] && strcmp(k->p->modules[first].build_id, m->build_id) != 0)
			k->rebuilt[first] = true;
	}
	for (uint32_t i = 1; i < k->p->module_count && good; i++) {
		uint32_t first = used[i] ? first_of(k, i) : LOOKUP_NONE;
		if (first != LOOKUP_NONE && k->p->modules[i].kind == PROFILE_FILE &&
		    !modules_image(k->modules, i))
			k->unreadable[first] = true;
	}
	free(used);
	return good ? NULL : err_new("out of memory");
}

static bool is_rebuilt(struct maker *k, uint32_t module)
{
	uint32_t first = first_of(k, module);
	return first != LOOKUP_NONE && k->rebuilt[first];
}

/* Whether it can only be compared as a whole. */
static bool is_whole(struct maker *k, uint32_t module)
{
	uint32_t first = first_of(k, module);
	return first != LOOKUP_NONE && k->rebuilt[first] && k->unreadable[first];
}

static void note_wholes(struct maker *k, struct buf *notes)
{
	for (uint32_t i = 1; i < k->p->module_count; i++)
		if (k->rebuilt[i] && k->unreadable[i])
			buf_printf(notes,
				   "%s is compared as a whole: not all of its builds are there\n",
				   module_name(k, i));
}

/* Keys: parts that end with a zero */

static void add_part(struct maker *k, const char *text)
{
	buf_append(&k->key, text ? text : "", text ? strlen(text) + 1 : 1);
}

static void add_number(struct maker *k, long number)
{
	buf_printf(&k->key, "%ld", number);
	buf_append(&k->key, "", 1);
}

/* The name of a function's row. */
static const char *function_name(struct maker *k, const struct scope *s)
{
	bool whole = is_whole(k, s->module);
	if (whole || (s->nameless && is_rebuilt(k, s->module))) {
		buf_clear(&k->text);
		buf_puts(&k->text, whole ? "all of " : "functions without a name in ");
		name_module(k->p->modules[s->module].path, &k->text);
		return buf_text(&k->text);
	}
	return s->nameless ? s->name : plain(k, s->name);
}

/* Loops */

static uint32_t inline_of(const struct structure_procedure *p, uint32_t scope)
{
	while (scope && p->scopes[scope].type != STRUCTURE_INLINE)
		scope = p->scopes[scope].parent < scope ? p->scopes[scope].parent : 0;
	return scope;
}

static bool equal(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static int compare_positions(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static uint64_t position(const struct structure_scope *s)
{
	return s->file && s->line ? s->line : s->header;
}

/* How many loops of the same function (inlined or not) and file begin before this one. */
static long rank_loop(const struct structure_procedure *p, uint32_t loop)
{
	const struct structure_scope *l = &p->scopes[loop];
	const char *within = p->scopes[inline_of(p, loop)].name;
	uint64_t *before = p->scope_count <= LOOPS_RANKED ? calloc(p->scope_count, sizeof *before)
							  : NULL;
	size_t count = 0;
	long rank = 0;
	if (!before)
		return (long)position(l);
	for (uint32_t i = 1; i < p->scope_count; i++) {
		const struct structure_scope *s = &p->scopes[i];
		if (s->type == STRUCTURE_LOOP && equal(file_of(s->file), file_of(l->file)) &&
		    position(s) < position(l) && equal(p->scopes[inline_of(p, i)].name, within))
			before[count++] = position(s);
	}
	qsort(before, count, sizeof *before, compare_positions);
	for (size_t i = 0; i < count; i++)
		rank += !i || before[i] != before[i - 1];
	free(before);
	return rank;
}

static void key_of_loop(struct maker *k, const struct scope *s, const struct answer *answer)
{
	const struct structure_procedure *p = answer ? answer->procedure : NULL;
	uint32_t loop = p ? answer->scope : 0;
	while (loop && p->scopes[loop].type != STRUCTURE_LOOP)
		loop = p->scopes[loop].parent < loop ? p->scopes[loop].parent : 0;
	add_part(k, function_name(k, scopes_get(k->a.scopes, s->function)));
	add_part(k, s->inlined ? plain(k, scopes_get(k->a.scopes, s->inlined)->name) : "");
	add_part(k, file_of(s->file));
	add_number(k, loop ? rank_loop(p, loop) : (long)s->address);
}

/* Lines */

static void key_of_line(struct maker *k, const struct scope *s, const struct answer *answer)
{
	const struct place *p = answer && answer->count ? &answer->places[0] : NULL;
	bool known = p && p->declared_line > 0 && p->declared_line <= s->line &&
		     equal(p->declared_file, s->file);
	add_part(k, function_name(k, s));
	add_part(k, file_of(s->file));
	add_part(k, known ? "+" : "");
	add_number(k, known ? s->line - p->declared_line : s->line);
}

static uint64_t key_of(struct maker *k, const struct scope *s, const struct answer *answer)
{
	buf_clear(&k->key);
	add_number(k, s->kind == SCOPE_INLINE ? SCOPE_FUNCTION : s->kind);
	add_part(k, s->module ? module_name(k, s->module) : "");
	if (s->kind == SCOPE_LOOP && s->module)
		key_of_loop(k, s, answer);
	else if (s->kind == SCOPE_LINE)
		key_of_line(k, s, answer);
	else
		add_part(k, s->kind == SCOPE_MODULE ? "" : function_name(k, s));
	return k->key.size ? hash(k->key.data, k->key.size) : 0;
}

/* Rows */

static char *copy(struct maker *k, const char *text)
{
	char *made = strdup(text);
	k->key.failed |= !made;
	return made;
}

/* "find (inlined) of solve" */
static char *describe_loop(struct maker *k, const struct scope *s)
{
	struct buf b = {0};
	if (s->inlined)
		buf_printf(&b, "%s (inlined) of ",
			   plain(k, scopes_get(k->a.scopes, s->inlined)->name));
	buf_puts(&b, function_name(k, scopes_get(k->a.scopes, s->function)));
	k->key.failed |= b.failed;
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
		.name = copy(k, loop || module ? s->name : function_name(k, s)),
		.function = loop ? describe_loop(k, s) : NULL,
		.module = s->module ? copy(k, module_name(k, s->module)) : NULL,
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
	uint64_t key = key_of(k, s, modules_answer(k->modules, n->module, address));
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
	return k->key.failed || k->text.failed ? err_new("out of memory") : NULL;
}

static uint32_t scope_of(const struct maker *k, uint32_t node)
{
	const struct attribution_span *span = &k->a.spans[node];
	return span->count ? k->a.steps[span->first + span->count - 1].scope : k->a.rest;
}

/* The row of a node's own samples. */
static struct err *row_of_node(struct maker *k, uint32_t node, uint32_t run, uint32_t *row)
{
	uint32_t module = k->p->nodes[node].module, scope = scope_of(k, node);
	bool whole = k->whole[module];
	uint32_t *known = whole ? &k->row_of_module[module] : &k->row_of[scope];
	struct scope all = {.kind = SCOPE_FUNCTION, .module = module, .name = ""};
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
		k->whole[i] = is_whole(k, i);
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
		e = find_rebuilt(k);
	if (!e)
		e = count_values(k);
	if (!e)
		modules_notes(k->modules, notes);
	if (!e && k->o->by != COUNTS_MODULE)
		note_wholes(k, notes);
	return e;
}

struct err *counts_make(const struct runs *runs, const struct counts_options *options,
			struct counts *out, struct buf *notes)
{
	struct maker k = {.runs = runs, .p = runs->profile, .o = options, .out = out};
	*out = (struct counts){.runs = runs->count};
	struct err *e = make(&k, notes);
	attribution_free(&k.a);
	modules_close(k.modules);
	lookup_free(&k.files);
	free(k.rebuilt);
	free(k.unreadable);
	free(k.row_of);
	free(k.row_of_module);
	free(k.whole);
	buf_free(&k.key);
	buf_free(&k.text);
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
