/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of a frame are that of its instruction and, of each function that
 * was inlined there, that of the call. A walk over the tree counts how often
 * each line is open above the place where it is, so that a frame's samples go to
 * a line's total only where it is met first.
 */
#include "view/lines.h"

#include <stdlib.h>

#include "analyze/answers.h"
#include "analyze/modules.h"
#include "analyze/strings.h"
#include "base/array.h"
#include "base/err.h"
#include "image/places.h"
#include "profile/profile.h"

#define NONE UINT32_MAX

struct span {
	uint32_t first, count;
};

struct maker {
	const struct profile *p;
	const struct modules *modules;
	struct strings *strings;
	struct lines *l;
	struct span *spans; /* by node: its part of `steps` */
	uint32_t *steps;    /* lines, innermost first */
	size_t step_count, step_room;
	struct lookup known; /* addresses of a module -> a node with that address */
	uint32_t *child, *next;
};

/* The number of a line, added where it is new. */
static struct err *add_line(struct lines *l, struct strings *strings, const char *file, int line,
			    uint32_t *number)
{
	*number = 0;
	if (!file || line <= 0)
		return NULL;
	uint32_t text = strings_add_fixed(strings, file);
	uint64_t key = (uint64_t)text << 32 | (uint32_t)line;
	*number = lookup_find(&l->by_place, key);
	if (*number != LOOKUP_NONE)
		return NULL;
	if (!ARRAY_ROOM_BELOW(l->all, l->count, l->room, LOOKUP_NONE))
		return err_new("out of memory");
	*number = (uint32_t)l->count;
	l->all[l->count++] = (struct view_line){text, (uint32_t)line};
	return lookup_put(&l->by_place, key, *number) ? NULL : err_new("out of memory");
}

/* ---- the lines of every node ---- */

static struct err *add_step(struct maker *k, uint32_t line)
{
	if (k->step_count == k->step_room) {
		size_t room = k->step_room ? k->step_room * 2 : 1024;
		uint32_t *moved = reallocarray(k->steps, room, sizeof *moved);
		if (!moved || room > UINT32_MAX) {
			k->steps = moved ? moved : k->steps;
			return err_new("out of memory");
		}
		k->steps = moved;
		k->step_room = room;
	}
	k->steps[k->step_count++] = line;
	return NULL;
}

static struct err *find_lines(struct maker *k, uint32_t node)
{
	const struct profile_node *n = &k->p->nodes[node];
	uint64_t address = n->address - (n->kind == PROFILE_CALL);
	struct span *span = &k->spans[node];
	struct err *e = NULL;
	if (n->kind != PROFILE_CALL && n->kind != PROFILE_EXACT)
		return NULL;
	uint64_t key = (address ^ (uint64_t)n->module << 48) * 2 + (n->kind == PROFILE_CALL);
	uint32_t like = lookup_find(&k->known, key);
	if (like != LOOKUP_NONE && k->p->nodes[like].module == n->module &&
	    k->p->nodes[like].address == n->address && k->p->nodes[like].kind == n->kind) {
		*span = k->spans[like];
		return NULL;
	}
	const struct answer *a = modules_answer(k->modules, n->module, address);
	span->first = (uint32_t)k->step_count;
	for (size_t i = 0; !e && a && i < a->count; i++) {
		uint32_t line;
		e = add_line(k->l, k->strings, a->places[i].file, a->places[i].line, &line);
		if (!e)
			e = add_step(k, line);
	}
	span->count = (uint32_t)k->step_count - span->first;
	if (!e && !lookup_put(&k->known, key, node))
		e = err_new("out of memory");
	return e;
}

static struct err *find_all(struct maker *k)
{
	struct err *e = NULL;
	for (size_t i = 0; !e && i < k->p->node_count; i++) {
		e = find_lines(k, (uint32_t)i);
		if (!e && k->spans[i].count)
			k->l->of_node[i] = k->steps[k->spans[i].first];
	}
	return e;
}

/* ---- samples ---- */

static void link_nodes(struct maker *k)
{
	for (size_t i = 0; i < k->p->node_count; i++)
		k->child[i] = k->next[i] = NONE;
	for (uint32_t i = (uint32_t)k->p->node_count; i-- > 1;) {
		k->next[i] = k->child[k->p->nodes[i].parent];
		k->child[k->p->nodes[i].parent] = i;
	}
}

static void enter(struct maker *k, uint32_t node, size_t metric, const uint64_t *totals,
		  uint32_t *open)
{
	const struct span *s = &k->spans[node];
	for (uint32_t i = s->first; i < s->first + s->count; i++)
		if (!open[k->steps[i]]++)
			k->l->total[k->steps[i] * k->l->metric_count + metric] += totals[node];
}

static void leave(struct maker *k, uint32_t node, uint32_t *open)
{
	const struct span *s = &k->spans[node];
	for (uint32_t i = s->first; i < s->first + s->count; i++)
		open[k->steps[i]]--;
}

static void count_metric(struct maker *k, size_t metric, uint64_t *totals, uint32_t *open)
{
	const struct profile *p = k->p;
	for (size_t i = 0; i < p->node_count; i++)
		totals[i] = 0;
	for (size_t i = 0; i < p->value_count; i++)
		if (p->values[i].metric == metric) {
			uint32_t node = p->values[i].node;
			totals[node] += p->values[i].count;
			k->l->self[k->l->of_node[node] * k->l->metric_count + metric] +=
				p->values[i].count;
		}
	for (size_t i = p->node_count; i-- > 1;)
		totals[p->nodes[i].parent] += totals[i];
	for (uint32_t at = 0; at != NONE;) {
		uint32_t next = k->child[at];
		enter(k, at, metric, totals, open);
		while (next == NONE && at != NONE) {
			leave(k, at, open);
			next = k->next[at];
			at = at ? p->nodes[at].parent : NONE;
		}
		at = next;
	}
}

static struct err *count_samples(struct maker *k)
{
	struct lines *l = k->l;
	size_t nodes = k->p->node_count + 1;
	l->self = calloc(l->count * l->metric_count + 1, sizeof *l->self);
	l->total = calloc(l->count * l->metric_count + 1, sizeof *l->total);
	k->child = calloc(nodes, sizeof *k->child);
	k->next = calloc(nodes, sizeof *k->next);
	uint64_t *totals = calloc(nodes, sizeof *totals);
	uint32_t *open = calloc(l->count, sizeof *open);
	bool good = l->self && l->total && k->child && k->next && totals && open;
	if (good)
		link_nodes(k);
	for (size_t m = 0; good && m < l->metric_count; m++)
		count_metric(k, m, totals, open);
	free(totals);
	free(open);
	return good ? NULL : err_new("out of memory");
}

struct err *lines_make(const struct profile *profile, const struct modules *modules,
		       struct strings *strings, struct lines *out)
{
	*out = (struct lines){.metric_count = profile->metric_count};
	struct maker k = {.p = profile, .modules = modules, .strings = strings, .l = out};
	out->of_node = calloc(profile->node_count + 1, sizeof *out->of_node);
	out->all = calloc(1024, sizeof *out->all);
	k.spans = calloc(profile->node_count + 1, sizeof *k.spans);
	out->room = 1024;
	out->count = 1;
	struct err *e = out->of_node && out->all && k.spans ? NULL : err_new("out of memory");
	if (!e)
		e = find_all(&k);
	if (!e)
		e = count_samples(&k);
	free(k.spans);
	free(k.steps);
	free(k.child);
	free(k.next);
	lookup_free(&k.known);
	if (e)
		lines_free(out);
	return e;
}

uint32_t lines_find(const struct lines *l, struct strings *strings, const char *file, int line)
{
	if (!file || line <= 0)
		return 0;
	uint64_t key = (uint64_t)strings_add_fixed(strings, file) << 32 | (uint32_t)line;
	uint32_t number = lookup_find(&l->by_place, key);
	return number == LOOKUP_NONE ? 0 : number;
}

void lines_free(struct lines *l)
{
	free(l->all);
	free(l->self);
	free(l->total);
	free(l->of_node);
	lookup_free(&l->by_place);
	*l = (struct lines){0};
}
