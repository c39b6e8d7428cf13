/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/matches.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/answers.h"
#include "analyze/attribution.h"
#include "analyze/modules.h"
#include "analyze/scopes.h"
#include "base/err.h"
#include "compare/inside.h"
#include "compare/keys.h"
#include "compare/runs.h"
#include "image/places.h"
#include "profile/profile.h"

struct matcher {
	const struct runs *runs;
	const struct attribution *a;
	size_t old_runs;
	struct modules *modules;
	struct keys keys;
	struct inside inside;
	struct matches *out;
	uint32_t *last; /* by profile node: the last run with samples there or below, plus 1 */
	uint8_t *sides; /* by profile node: the sides that have samples there or below */
	uint32_t *met;  /* by scope: a node that has it; 0: none */
	uint32_t *step; /* by scope: and which of the steps there it is */
	uint32_t *scope_last; /* by scope: the last run that has it, plus 1 */
	uint8_t *scope_sides;
	uint32_t *functions;   /* by scope: the function that it is or is in (keys.h) */
	uint32_t *piece;       /* by scope of a loop or line: its number (inside.h) */
	struct lookup by_key;  /* -> the scope that stands for all with this key */
	struct lookup last_of; /* the same -> the one of the last run */
};

static struct err *allocate(struct matcher *k)
{
	size_t scopes = scopes_count(k->a->scopes), nodes = k->a->profile->node_count;
	k->out->count = scopes;
	k->out->same = calloc(scopes + 1, sizeof *k->out->same);
	k->out->names = calloc(scopes + 1, sizeof *k->out->names);
	k->out->whole = calloc(scopes + 1, sizeof *k->out->whole);
	k->out->latest = calloc(scopes + 1, sizeof *k->out->latest);
	k->last = calloc(nodes + 1, sizeof *k->last);
	k->sides = calloc(nodes + 1, sizeof *k->sides);
	k->met = calloc(scopes + 1, sizeof *k->met);
	k->step = calloc(scopes + 1, sizeof *k->step);
	k->scope_last = calloc(scopes + 1, sizeof *k->scope_last);
	k->scope_sides = calloc(scopes + 1, sizeof *k->scope_sides);
	k->functions = calloc(scopes + 1, sizeof *k->functions);
	k->piece = calloc(scopes + 1, sizeof *k->piece);
	bool good = k->out->same && k->out->names && k->out->whole && k->out->latest && k->last &&
		    k->sides && k->met && k->step && k->scope_last && k->scope_sides &&
		    k->functions && k->piece;
	return good ? NULL : err_new("out of memory");
}

static void raise_to(uint32_t *at, uint32_t value)
{
	if (*at < value)
		*at = value;
}

/* ---- which runs have what ---- */

static void find_runs(struct matcher *k)
{
	const struct profile *p = k->a->profile;
	for (size_t i = 0; i < p->value_count; i++) {
		uint32_t run = k->runs->of_thread[p->values[i].thread];
		raise_to(&k->last[p->values[i].node], run + 1);
		k->sides[p->values[i].node] |= run < k->old_runs ? SIDE_OLD : SIDE_NEW;
	}
	for (size_t i = p->node_count; i-- > 1;) {
		raise_to(&k->last[p->nodes[i].parent], k->last[i]);
		k->sides[p->nodes[i].parent] |= k->sides[i];
	}
	for (uint32_t i = 1; i < p->node_count; i++) {
		const struct attribution_span *span = &k->a->spans[i];
		for (uint32_t s = span->first; s < span->first + span->count; s++) {
			uint32_t scope = k->a->steps[s].scope;
			raise_to(&k->scope_last[scope], k->last[i]);
			k->scope_sides[scope] |= k->sides[i];
			if (k->met[scope])
				continue;
			k->met[scope] = i;
			k->step[scope] = s - span->first;
		}
	}
}

static const struct answer *answer_of(const struct matcher *k, uint32_t scope)
{
	const struct profile_node *n = &k->a->profile->nodes[k->met[scope]];
	return modules_answer(k->modules, n->module, n->address - (n->kind == PROFILE_CALL));
}

static bool is_whole(struct matcher *k, uint32_t scope)
{
	uint32_t module = scopes_get(k->a->scopes, scope)->module;
	return module && builds_whole(&k->keys.builds, module);
}

/* ---- functions ---- */

static bool has_function(const struct scope *s)
{
	return s->kind == SCOPE_FUNCTION || s->kind == SCOPE_INLINE || s->kind == SCOPE_LINE ||
	       (s->kind == SCOPE_LOOP && s->module);
}

static struct err *find_functions(struct matcher *k)
{
	struct err *e = NULL;
	for (uint32_t i = 1; i < k->out->count && !e; i++)
		if (k->met[i] && has_function(scopes_get(k->a->scopes, i)))
			e = keys_function(&k->keys, scopes_get(k->a->scopes, i), k->scope_sides[i],
					  &k->functions[i]);
	if (!e)
		e = keys_join_families(&k->keys);
	for (uint32_t i = 1; i < k->out->count && !e; i++)
		if (k->met[i] && has_function(scopes_get(k->a->scopes, i)))
			k->functions[i] = k->keys.functions[k->functions[i]].same;
	return e;
}

/* ---- loops and lines ---- */

static bool is_piece(const struct matcher *k, uint32_t scope)
{
	const struct scope *s = scopes_get(k->a->scopes, scope);
	return s->module && (s->kind == SCOPE_LOOP || s->kind == SCOPE_LINE);
}

/* Where a line is: steps go from the outermost place to the innermost, which is the first of the answer. */
static const struct place *place_of(const struct answer *answer, uint32_t step)
{
	return answer && step < answer->count ? &answer->places[answer->count - 1 - step] : NULL;
}

static struct err *add_piece(struct matcher *k, uint32_t scope)
{
	const struct scope *s = scopes_get(k->a->scopes, scope);
	const struct answer *answer = answer_of(k, scope);
	struct inside_where w = {
		.function = k->functions[scope],
		.module = k->keys.builds.same[s->module],
		.last_run = k->scope_last[scope],
		.nameless = !k->keys.functions[k->functions[scope]].known,
	};
	if (builds_differ(&k->keys.builds, s->module)) { /* else all are where they were */
		w.module = s->module;
		w.answer = answer;
	}
	if (s->kind == SCOPE_LINE) {
		const struct place *p = place_of(answer, k->step[scope]);
		w.first_file = p ? p->declared_file : NULL;
		w.first_line = p ? p->declared_line : 0;
		return inside_add_line(&k->inside, s, k->step[scope], &w, &k->piece[scope]);
	}
	const struct scope *f = scopes_get(k->a->scopes, s->inlined ? s->inlined : s->function);
	w.first_file = f->file;
	w.first_line = f->line;
	return inside_add_loop(&k->inside, s, &w, &k->piece[scope]);
}

static struct pieces *pieces_of(struct matcher *k, uint32_t scope)
{
	bool line = scopes_get(k->a->scopes, scope)->kind == SCOPE_LINE;
	return line ? &k->inside.lines : &k->inside.loops;
}

/* Of a loop or line, what comes next: a function that is inlined or called there. */
static struct err *add_content(struct matcher *k, uint32_t piece, uint32_t below)
{
	enum scope_kind kind = scopes_get(k->a->scopes, below)->kind;
	if (!is_piece(k, piece) ||
	    !builds_differ(&k->keys.builds, scopes_get(k->a->scopes, piece)->module) ||
	    (kind != SCOPE_FUNCTION && kind != SCOPE_INLINE && kind != SCOPE_LINE))
		return NULL;
	return pieces_contain(pieces_of(k, piece), k->piece[piece],
			      keys_of_function(&k->keys, k->functions[below]));
}

static struct err *add_contents(struct matcher *k)
{
	const struct profile *p = k->a->profile;
	struct err *e = NULL;
	for (uint32_t i = 1; i < p->node_count && !e; i++) {
		const struct attribution_span *span = &k->a->spans[i],
					      *above = &k->a->spans[p->nodes[i].parent];
		const struct attribution_step *steps = k->a->steps;
		if (above->count && span->count)
			e = add_content(k, steps[above->first + above->count - 1].scope,
					steps[span->first].scope);
		for (uint32_t s = span->first; s + 1 < span->first + span->count && !e; s++)
			e = add_content(k, steps[s].scope, steps[s + 1].scope);
	}
	return e;
}

static struct err *find_pieces(struct matcher *k)
{
	struct err *e = NULL;
	for (uint32_t i = 1; i < k->out->count && !e; i++)
		if (k->met[i] && is_piece(k, i))
			e = add_piece(k, i);
	if (!e && (k->inside.loops.count || k->inside.lines.count))
		e = add_contents(k);
	return e ? e : inside_match(&k->inside);
}

/* ---- which is which ---- */

static uint64_t key_of(struct matcher *k, uint32_t scope)
{
	const struct scope *s = scopes_get(k->a->scopes, scope);
	if (is_whole(k, scope) && s->kind != SCOPE_MODULE)
		return keys_of_whole(&k->keys, s->module);
	if (!has_function(s))
		return keys_of_other(&k->keys, s);
	if (is_piece(k, scope))
		return keys_of_piece(&k->keys, k->functions[scope], s,
				     pieces_of(k, scope)->all[k->piece[scope]].same);
	return keys_of_function(&k->keys, k->functions[scope]);
}

/* Whether scope a is the better one to stand for both. */
static bool is_better(const struct matcher *k, uint32_t a, uint32_t b)
{
	const struct scope *x = scopes_get(k->a->scopes, a), *y = scopes_get(k->a->scopes, b);
	if (x->kind != y->kind)
		return x->kind == SCOPE_FUNCTION;
	return k->scope_last[a] > k->scope_last[b];
}

/* The key of each scope, and for each key the best scope and the last one. */
static struct err *group(struct matcher *k, uint64_t *keys)
{
	bool good = true;
	for (uint32_t i = 1; i < k->out->count && good; i++) {
		if (!k->met[i])
			continue;
		keys[i] = key_of(k, i);
		uint32_t best = lookup_find(&k->by_key, keys[i]);
		if (best == LOOKUP_NONE || is_better(k, i, best))
			good = lookup_put(&k->by_key, keys[i], i);
		uint32_t last = lookup_find(&k->last_of, keys[i]);
		if (good && (last == LOOKUP_NONE || k->scope_last[i] > k->scope_last[last]))
			good = lookup_put(&k->last_of, keys[i], i);
	}
	return good && !k->keys.text.failed ? NULL : err_new("out of memory");
}

static struct err *name(struct matcher *k, uint32_t scope)
{
	const struct scope *s = scopes_get(k->a->scopes, scope);
	bool function = s->kind == SCOPE_FUNCTION || s->kind == SCOPE_INLINE ||
			s->kind == SCOPE_LINE || s->kind == SCOPE_KERNEL;
	k->out->whole[scope] = is_whole(k, scope) && s->kind != SCOPE_MODULE;
	if (!function && !k->out->whole[scope])
		return NULL;
	const char *text = keys_function_name(&k->keys, s);
	if (!strcmp(text, s->name))
		return NULL;
	k->out->names[scope] = strdup(text);
	return k->out->names[scope] ? NULL : err_new("out of memory");
}

static struct err *match(struct matcher *k)
{
	uint64_t *keys = calloc(k->out->count + 1, sizeof *keys);
	struct err *e = keys ? group(k, keys) : err_new("out of memory");
	for (uint32_t i = 0; i < k->out->count && !e; i++) {
		k->out->same[i] = k->met[i] ? lookup_find(&k->by_key, keys[i]) : i;
		k->out->latest[i] = k->met[i] ? lookup_find(&k->last_of, keys[i]) : i;
		if (k->met[i] && k->out->same[i] == i)
			e = name(k, i);
	}
	free(keys);
	return e;
}

static struct err *make(struct matcher *k)
{
	struct err *e = allocate(k);
	if (e)
		return e;
	find_runs(k);
	e = keys_open(k->a->profile, k->modules, k->a->scopes, k->old_runs ? k->sides : NULL,
		      &k->keys);
	if (!e)
		e = find_functions(k);
	if (!e)
		e = find_pieces(k);
	return e ? e : match(k);
}

struct err *matches_make(const struct runs *runs, size_t old_runs, struct modules *modules,
			 const struct attribution *a, struct matches *out, struct buf *notes)
{
	struct matcher k = {
		.runs = runs, .a = a, .old_runs = old_runs, .modules = modules, .out = out};
	*out = (struct matches){0};
	struct err *e = make(&k);
	if (!e && a->by != BY_MODULE)
		builds_note_wholes(&k.keys.builds, notes);
	keys_close(&k.keys);
	inside_free(&k.inside);
	lookup_free(&k.by_key);
	lookup_free(&k.last_of);
	free(k.last);
	free(k.sides);
	free(k.met);
	free(k.step);
	free(k.scope_last);
	free(k.scope_sides);
	free(k.functions);
	free(k.piece);
	if (e)
		matches_free(out);
	return e;
}

void matches_free(struct matches *m)
{
	for (size_t i = 0; i < m->count && m->names; i++)
		free(m->names[i]);
	free(m->same);
	free(m->names);
	free(m->whole);
	free(m->latest);
	*m = (struct matches){0};
}
