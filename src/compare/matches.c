/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/matches.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/attribution.h"
#include "analyze/modules.h"
#include "analyze/scopes.h"
#include "base/err.h"
#include "compare/keys.h"
#include "compare/runs.h"
#include "profile/profile.h"

struct matcher {
	const struct runs *runs;
	const struct attribution *a;
	struct modules *modules;
	struct keys keys;
	struct matches *out;
	uint32_t *last; /* by profile node: the last run with samples there or below, plus 1 */
	uint32_t *met;  /* by scope: a node that has it; 0: none */
	uint32_t *scope_last; /* by scope: the last run that has it, plus 1 */
	struct lookup by_key; /* -> the scope that stands for all with this key */
};

static struct err *allocate(struct matcher *k)
{
	size_t scopes = scopes_count(k->a->scopes);
	k->out->count = scopes;
	k->out->same = calloc(scopes + 1, sizeof *k->out->same);
	k->out->names = calloc(scopes + 1, sizeof *k->out->names);
	k->out->whole = calloc(scopes + 1, sizeof *k->out->whole);
	k->last = calloc(k->a->profile->node_count + 1, sizeof *k->last);
	k->met = calloc(scopes + 1, sizeof *k->met);
	k->scope_last = calloc(scopes + 1, sizeof *k->scope_last);
	return k->out->same && k->out->names && k->out->whole && k->last && k->met && k->scope_last
		       ? NULL
		       : err_new("out of memory");
}

static void raise_to(uint32_t *at, uint32_t value)
{
	if (*at < value)
		*at = value;
}

static void find_last_runs(struct matcher *k)
{
	const struct profile *p = k->a->profile;
	for (size_t i = 0; i < p->value_count; i++)
		raise_to(&k->last[p->values[i].node], k->runs->of_thread[p->values[i].thread] + 1);
	for (size_t i = p->node_count; i-- > 1;)
		raise_to(&k->last[p->nodes[i].parent], k->last[i]);
	for (uint32_t i = 1; i < p->node_count; i++) {
		const struct attribution_span *span = &k->a->spans[i];
		for (uint32_t s = span->first; s < span->first + span->count; s++) {
			uint32_t scope = k->a->steps[s].scope;
			raise_to(&k->scope_last[scope], k->last[i]);
			k->met[scope] = k->met[scope] ? k->met[scope] : i;
		}
	}
}

/* Whether scope a is the better one to stand for both. */
static bool is_better(const struct matcher *k, uint32_t a, uint32_t b)
{
	const struct scope *x = scopes_get(k->a->scopes, a), *y = scopes_get(k->a->scopes, b);
	if (x->kind != y->kind)
		return x->kind == SCOPE_FUNCTION;
	return k->scope_last[a] > k->scope_last[b];
}

static bool is_whole(struct matcher *k, uint32_t scope)
{
	uint32_t module = scopes_get(k->a->scopes, scope)->module;
	return module && keys_whole(&k->keys, module);
}

static uint64_t key_of(struct matcher *k, uint32_t scope)
{
	struct scope s = *scopes_get(k->a->scopes, scope);
	const struct profile_node *n = &k->a->profile->nodes[k->met[scope]];
	struct scope all = keys_whole_scope(s.module);
	if (is_whole(k, scope))
		return keys_of(&k->keys, &all, NULL);
	if (s.inlined) { /* what it was inlined into is above it in the tree */
		s.function = s.inlined;
		s.inlined = 0;
	}
	return keys_of(
		&k->keys, &s,
		modules_answer(k->modules, n->module, n->address - (n->kind == PROFILE_CALL)));
}

/* The key of each scope, and by_key the best one of each. */
static struct err *group(struct matcher *k, uint64_t *keys)
{
	struct err *e = NULL;
	for (uint32_t i = 1; i < k->out->count && !e; i++) {
		if (!k->met[i])
			continue;
		keys[i] = key_of(k, i);
		uint32_t before = lookup_find(&k->by_key, keys[i]);
		if ((before == LOOKUP_NONE || is_better(k, i, before)) &&
		    !lookup_put(&k->by_key, keys[i], i))
			e = err_new("out of memory");
	}
	return !e && (k->keys.key.failed || k->keys.text.failed) ? err_new("out of memory") : e;
}

static struct err *name(struct matcher *k, uint32_t scope)
{
	const struct scope *s = scopes_get(k->a->scopes, scope);
	bool function = s->kind == SCOPE_FUNCTION || s->kind == SCOPE_INLINE;
	k->out->whole[scope] = is_whole(k, scope);
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
		if (k->met[i] && k->out->same[i] == i)
			e = name(k, i);
	}
	free(keys);
	return e;
}

struct err *matches_make(const struct runs *runs, struct modules *modules,
			 const struct attribution *a, struct matches *out, struct buf *notes)
{
	struct matcher k = {.runs = runs, .a = a, .modules = modules, .out = out};
	*out = (struct matches){0};
	struct err *e = keys_open(a->profile, modules, a->scopes, false, &k.keys);
	if (!e)
		e = allocate(&k);
	if (!e) {
		find_last_runs(&k);
		e = match(&k);
	}
	if (!e)
		keys_note_wholes(&k.keys, notes);
	keys_close(&k.keys);
	lookup_free(&k.by_key);
	free(k.last);
	free(k.met);
	free(k.scope_last);
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
	*m = (struct matches){0};
}
