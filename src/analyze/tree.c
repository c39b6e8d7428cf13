/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/tree.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/scopes.h"
#include "base/err.h"

static bool grow(struct tree *t)
{
	size_t room = t->room ? t->room * 2 : 256, values = t->metric_count ? t->metric_count : 1;
	if (t->count < t->room)
		return true;
	struct tree_node *nodes = reallocarray(t->nodes, room, sizeof *nodes);
	if (nodes)
		t->nodes = nodes;
	uint64_t *self = reallocarray(t->self, room * values, sizeof *self);
	if (self)
		t->self = self;
	uint64_t *total = reallocarray(t->total, room * values, sizeof *total);
	if (total)
		t->total = total;
	if (!nodes || !self || !total || room > TREE_NONE / 2)
		return false;
	t->room = room;
	return true;
}

struct err *tree_add(struct tree *t, uint32_t parent, uint32_t scope, uint32_t *node)
{
	if (!grow(t))
		return err_new("out of memory");
	*node = (uint32_t)t->count++;
	t->nodes[*node] = (struct tree_node){
		.scope = scope, .parent = parent, .child = TREE_NONE, .next = TREE_NONE};
	memset(t->self + *node * t->metric_count, 0, t->metric_count * sizeof *t->self);
	memset(t->total + *node * t->metric_count, 0, t->metric_count * sizeof *t->total);
	if (parent != TREE_NONE) {
		t->nodes[*node].next = t->nodes[parent].child;
		t->nodes[parent].child = *node;
	}
	return NULL;
}

struct err *tree_new(const struct scopes *scopes, size_t metric_count, struct tree **out)
{
	struct tree *t = calloc(1, sizeof *t);
	uint32_t root;
	*out = NULL;
	if (!t)
		return err_new("out of memory");
	t->scopes = scopes;
	t->metric_count = metric_count;
	t->whole = calloc(metric_count + 1, sizeof *t->whole);
	struct err *e = t->whole ? tree_add(t, TREE_NONE, 0, &root) : err_new("out of memory");
	if (e) {
		tree_free(t);
		return e;
	}
	*out = t;
	return NULL;
}

void tree_free(struct tree *t)
{
	if (!t)
		return;
	free(t->nodes);
	free(t->self);
	free(t->total);
	free(t->whole);
	lookup_free(&t->children);
	free(t);
}

struct err *tree_child(struct tree *t, uint32_t parent, uint32_t scope, uint32_t *node)
{
	uint64_t key = (uint64_t)parent << 32 | scope;
	*node = lookup_find(&t->children, key);
	if (*node != LOOKUP_NONE)
		return NULL;
	struct err *e = tree_add(t, parent, scope, node);
	if (!e && !lookup_put(&t->children, key, *node))
		e = err_new("out of memory");
	return e;
}

void tree_called(struct tree *t, uint32_t node, const char *file, int line)
{
	struct tree_node *n = &t->nodes[node];
	bool same = n->call_line == line && n->call_file && file && !strcmp(n->call_file, file);
	if (n->called && same)
		return;
	n->call_file = n->called || !line ? NULL : file;
	n->call_line = n->call_file ? line : 0;
	n->called = true;
}

void tree_sum(struct tree *t)
{
	memcpy(t->total, t->self, t->count * t->metric_count * sizeof *t->total);
	for (size_t i = t->count; i-- > 1;)
		for (size_t m = 0; m < t->metric_count; m++)
			t->total[t->nodes[i].parent * t->metric_count + m] +=
				t->total[i * t->metric_count + m];
}

/* ---- order ---- */

struct order {
	const struct tree *tree;
	uint32_t metric;
	bool by_self;
};

static int compare(const void *a, const void *b, void *context)
{
	const struct order *o = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint64_t values[4] = {
		tree_total(o->tree, x, o->metric),
		tree_total(o->tree, y, o->metric),
		tree_self(o->tree, x, o->metric),
		tree_self(o->tree, y, o->metric),
	};
	for (int i = o->by_self ? 2 : 0, left = 2; left--; i ^= 2)
		if (values[i] != values[i + 1])
			return values[i] > values[i + 1] ? -1 : 1;
	const struct scope *s = scopes_get(o->tree->scopes, o->tree->nodes[x].scope),
			   *t = scopes_get(o->tree->scopes, o->tree->nodes[y].scope);
	int names = strcmp(s->name, t->name);
	return names ? names : s->line != t->line ? s->line - t->line : x < y ? -1 : 1;
}

struct err *tree_sort(struct tree *t, uint32_t metric, bool by_self)
{
	struct order order = {t, metric, by_self};
	uint32_t *list = calloc(t->count, sizeof *list);
	if (!list)
		return err_new("out of memory");
	for (size_t i = 0; i < t->count && metric < t->metric_count; i++) {
		size_t count = 0;
		for (uint32_t c = t->nodes[i].child; c != TREE_NONE; c = t->nodes[c].next)
			list[count++] = c;
		qsort_r(list, count, sizeof *list, compare, &order);
		uint32_t *link = &t->nodes[i].child;
		for (size_t k = 0; k < count; k++) {
			*link = list[k];
			link = &t->nodes[list[k]].next;
		}
		*link = TREE_NONE;
	}
	free(list);
	return NULL;
}

/* ---- what is shown ---- */

/* Paths that are not whole stay visible however few they are. */
static bool is_small(const struct tree *t, uint32_t node, uint32_t metric, double least)
{
	if (!t->nodes[node].parent && tree_total(t, node, metric) &&
	    scopes_get(t->scopes, t->nodes[node].scope)->kind == SCOPE_PARTIAL)
		return false;
	return (double)tree_total(t, node, metric) < least &&
	       (double)tree_self(t, node, metric) < least;
}

size_t tree_prune(struct tree *t, uint32_t metric, double min, uint64_t depth)
{
	uint64_t *depths = depth ? calloc(t->count, sizeof *depths) : NULL;
	double least = metric < t->metric_count ? min * (double)t->whole[metric] : 0;
	size_t hidden = 0;
	for (uint32_t i = 1; i < t->count; i++) {
		struct tree_node *n = &t->nodes[i];
		bool small = least > 0 && is_small(t, i, metric, least);
		if (depths)
			depths[i] = depths[n->parent] + 1;
		n->hidden = small || (depths && depths[i] > depth);
		hidden += n->hidden && small && !t->nodes[n->parent].hidden &&
			  (tree_total(t, i, metric) || tree_self(t, i, metric));
	}
	free(depths);
	return hidden;
}

uint32_t tree_hot_path(struct tree *t, uint32_t metric)
{
	uint32_t at = 0;
	for (;;) {
		uint32_t best = tree_first(t, at);
		bool goes_on = best != TREE_NONE && tree_total(t, best, metric) &&
			       (!at ||
				tree_total(t, best, metric) >= (tree_total(t, at, metric) + 1) / 2);
		for (uint32_t c = t->nodes[at].child; c != TREE_NONE; c = t->nodes[c].next)
			t->nodes[c].hidden |= !goes_on || c != best;
		if (!goes_on)
			return at;
		at = best;
	}
}

static uint32_t skip_hidden(const struct tree *t, uint32_t node)
{
	while (node != TREE_NONE && t->nodes[node].hidden)
		node = t->nodes[node].next;
	return node;
}

uint32_t tree_first(const struct tree *t, uint32_t node)
{
	return skip_hidden(t, t->nodes[node].child);
}

uint32_t tree_next(const struct tree *t, uint32_t node)
{
	return skip_hidden(t, t->nodes[node].next);
}
