/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/brief.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/scopes.h"
#include "analyze/tree.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/utf8.h"

#define CYCLE_MAX 64 /* calls between a function and itself, if recursion goes through others */
#define FIT_STEPS 30 /* of halving the range in which the share is */

/* ---- folding ---- */

struct folding {
	const struct tree *from;
	struct tree *to;
	uint32_t *node;  /* for each node: the one it became */
	uint32_t *again; /* how many nodes above it became the same one */
};

/* The node itself or one above it that has this scope; TREE_NONE: none. That an interpreter calls itself for the
   functions that it runs is no recursion. */
static uint32_t find_above(const struct tree *t, uint32_t node, uint32_t scope)
{
	const struct scope *wanted = scopes_get(t->scopes, scope);
	if (!scope_is_function(wanted))
		return TREE_NONE;
	while (node != TREE_NONE && (!node || t->nodes[node].scope != scope)) {
		if (scopes_get(t->scopes, t->nodes[node].scope)->script && !wanted->script)
			return TREE_NONE;
		node = t->nodes[node].parent;
	}
	return node;
}

/* Looks among the nodes above, up to CYCLE_MAX of them, for one that became the same. */
static void count_again(struct folding *f, uint32_t i)
{
	uint32_t above = f->from->nodes[i].parent;
	for (int calls = 0; above && calls < CYCLE_MAX && f->node[above] != f->node[i]; calls++)
		above = f->from->nodes[above].parent;
	if (!above || f->node[above] != f->node[i])
		return;
	f->again[i] = f->again[above] + 1;
	struct tree_node *n = &f->to->nodes[f->node[i]];
	if (f->again[i] > n->folded)
		n->folded = f->again[i];
}

/* Parents come before their children. */
static struct err *fold_node(struct folding *f, uint32_t i)
{
	const struct tree_node *n = &f->from->nodes[i];
	uint32_t parent = f->node[n->parent];
	uint32_t known = find_above(f->to, parent, n->scope);
	struct err *e = NULL;
	f->node[i] = known;
	if (known == TREE_NONE)
		e = tree_child(f->to, parent, n->scope, &f->node[i]);
	if (e)
		return e;
	if (known != TREE_NONE || f->again[n->parent])
		count_again(f, i);
	if (n->called)
		tree_called(f->to, f->node[i], n->call_file, n->call_line);
	for (size_t m = 0; m < f->from->metric_count; m++)
		f->to->self[f->node[i] * f->to->metric_count + m] +=
			f->from->self[i * f->from->metric_count + m];
	return NULL;
}

struct err *brief_fold(const struct tree *t, uint32_t metric, struct tree **out)
{
	struct folding f = {.from = t};
	struct err *e = tree_new(t->scopes, t->metric_count, &f.to);
	f.node = calloc(t->count, sizeof *f.node);
	f.again = calloc(t->count, sizeof *f.again);
	if (!e && (!f.node || !f.again))
		e = err_new("out of memory");
	for (size_t m = 0; !e && m < t->metric_count; m++) {
		f.to->whole[m] = t->whole[m];
		f.to->self[m] = t->self[m];
	}
	for (uint32_t i = 1; !e && i < t->count; i++)
		e = fold_node(&f, i);
	free(f.node);
	free(f.again);
	if (!e) {
		tree_sum(f.to);
		e = tree_sort(f.to, metric, false);
	}
	if (e) {
		tree_free(f.to);
		f.to = NULL;
	}
	*out = f.to;
	return e;
}

/* ---- chains ---- */

uint32_t brief_chain(const struct tree *t, uint32_t metric, double least, uint32_t node)
{
	for (;;) {
		uint32_t only = node ? tree_first(t, node) : TREE_NONE;
		if (only == TREE_NONE || tree_next(t, only) != TREE_NONE)
			return node;
		uint64_t leave = tree_total(t, node, metric) - tree_total(t, only, metric);
		if (leave && (double)leave >= least)
			return node;
		node = only;
	}
}

#define ARROW " → "
#define ARROW_COLUMNS 3
#define NAME_LEAST 30 /* columns that the first name is not cut below */

static size_t columns_of(const char *name)
{
	return utf8_count(name) + ARROW_COLUMNS;
}

/* Cut in the middle to at most `max` columns (0: not cut). */
static size_t put_step(const char *name, size_t max, struct buf *out)
{
	size_t columns = utf8_count(name);
	buf_put_cut(out, name, max);
	buf_puts(out, ARROW);
	return (max && columns > max ? max : columns) + ARROW_COLUMNS;
}

/* The first of the names at the end that are kept, which go behind the first name and a mark that is so wide. */
static size_t choose_kept(const char *const *names, size_t count, size_t most, size_t mark)
{
	size_t used = columns_of(names[0]), from = count;
	for (size_t i = 1; i < count; i++)
		used += columns_of(names[i]);
	if (used <= most)
		return 1;
	used = columns_of(names[0]) + mark;
	while (from > 1 && used + columns_of(names[from - 1]) <= most)
		used += columns_of(names[--from]);
	return from;
}

size_t brief_way(const char *const *names, size_t count, size_t most, struct buf *out)
{
	char text[48] = "";
	if (!count)
		return 0;
	snprintf(text, sizeof text, "… %zu …", count);
	size_t from = choose_kept(names, count, most, columns_of(text));
	snprintf(text, sizeof text, "… %zu …", from - 1);
	size_t behind = ARROW_COLUMNS + (from > 1 ? columns_of(text) : 0);
	size_t room = most > behind + NAME_LEAST ? most - behind : NAME_LEAST;
	size_t used = put_step(names[0], room, out);
	if (from > 1)
		used += put_step(text, 0, out);
	for (size_t i = from; i < count; i++)
		used += put_step(names[i], 0, out);
	return used;
}

/* ---- fitting ---- */

static size_t count_lines(const struct tree *t, uint32_t metric, double least)
{
	size_t lines = 0;
	uint32_t at = 0;
	while (at != TREE_NONE) {
		at = brief_chain(t, metric, least, at);
		lines++;
		uint32_t next = tree_first(t, at);
		while (next == TREE_NONE && at != TREE_NONE) {
			next = at ? tree_next(t, at) : TREE_NONE;
			at = t->nodes[at].parent;
		}
		at = next;
	}
	return lines;
}

double brief_fit(struct tree *t, uint32_t metric, double min, size_t lines, size_t *hidden)
{
	double whole = (double)t->whole[metric], low = min, high = 1, share = min;
	for (int i = 0; i <= FIT_STEPS; i++) {
		*hidden = tree_prune(t, metric, share, 0);
		bool fits = count_lines(t, metric, share * whole) <= lines;
		if (fits && share == min)
			return share;
		*(fits ? &high : &low) = share;
		share = i + 1 < FIT_STEPS ? (low + high) / 2 : high; /* at last one that fits */
	}
	return high;
}
