/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A statement is written once. Where the tree has it in several places of one
 * context, optimisation put it there: loops were split, peeled, unrolled with a
 * rest, vectorised, and what does not change in a loop was moved out of it. Two
 * rules undo that, again and again until nothing changes:
 *
 *     loop 10        loop 10           line 12                loop 10
 *       line 11        line 11         loop 10        ->        line 11
 *     loop 10   ->     line 12           line 11                line 12
 *       line 12                          line 12
 *
 * Nodes are joined (`into`), never moved, so that a path of `into` always ends. A node
 * that is joined goes to one with a lower number, except lines, which are leaves:
 * parents keep standing before their children.
 */
#include <stdlib.h>
#include <string.h>

#include "structure/keys.h"
#include "structure/weave.h"

#define PASSES_MAX 32

struct joiner {
	const struct weave_input *in;
	struct weave *tree;
	uint32_t *into;    /* itself: not joined */
	uint32_t *context; /* the node of the context around it, or itself */
	uint32_t *depth;
	struct keys keys;
	bool changed, failed;
};

static uint32_t find(struct joiner *j, uint32_t n)
{
	while (j->into[n] != n) {
		j->into[n] = j->into[j->into[n]];
		n = j->into[n];
	}
	return n;
}

static uint32_t parent_of(struct joiner *j, uint32_t n)
{
	return find(j, j->tree->nodes[n].parent);
}

static void join(struct joiner *j, uint32_t n, uint32_t into)
{
	struct weave_node *kept = &j->tree->nodes[into];
	const struct weave_node *gone = &j->tree->nodes[n];
	j->into[n] = into;
	j->changed = true;
	if (kept->type != WEAVE_LOOP)
		return;
	if (!kept->line || (gone->line && gone->file == kept->file && gone->line < kept->line)) {
		kept->file = gone->file;
		kept->line = gone->line;
	}
	if (gone->file == kept->file && gone->last_line > kept->last_line)
		kept->last_line = gone->last_line;
}

static struct key key_of(struct joiner *j, uint32_t n)
{
	const struct weave_node *node = &j->tree->nodes[n];
	uint32_t parent = parent_of(j, n);
	if (node->type == WEAVE_LINE)
		return (struct key){parent, WEAVE_LINE, node->file, node->line};
	if (node->type == WEAVE_LOOP && node->line && !j->in->flat)
		return (struct key){parent, WEAVE_LOOP, node->file, node->line};
	/* A type of its own, so that a loop's number is no line. */
	return (struct key){parent, node->type + 8u, node->id, 0};
}

/* Children of one parent that are the same scope become one. */
static void join_equal(struct joiner *j)
{
	keys_clear(&j->keys);
	for (uint32_t n = 1; n < j->tree->count; n++) {
		uint32_t *at;
		if (j->into[n] != n)
			continue;
		at = keys_at(&j->keys, key_of(j, n));
		if (!at) {
			j->failed = true;
			return;
		}
		if (*at == KEYS_NONE)
			*at = n;
		else
			join(j, n, *at);
	}
}

static void measure(struct joiner *j)
{
	j->context[0] = j->depth[0] = 0;
	for (uint32_t n = 1; n < j->tree->count; n++) {
		uint32_t parent;
		if (j->into[n] != n)
			continue;
		parent = parent_of(j, n);
		j->depth[n] = j->depth[parent] + 1;
		j->context[n] = j->tree->nodes[n].type == WEAVE_INLINE ? n : j->context[parent];
	}
}

/* Could this line be written in that loop? Not where it is before it: a constant or a declaration
   that was moved in. */
static bool may_hold(const struct joiner *j, uint32_t loop, uint32_t line)
{
	const struct weave_node *a = &j->tree->nodes[line], *l = &j->tree->nodes[loop];
	return a->file == l->file && a->line >= l->line;
}

/* Two instances of one statement in one context: returns the one that stays. */
static uint32_t join_instances(struct joiner *j, uint32_t first, uint32_t second)
{
	uint32_t x = first, y = second;
	while (parent_of(j, x) != parent_of(j, y)) {
		if (j->depth[x] >= j->depth[y])
			x = parent_of(j, x);
		else
			y = parent_of(j, y);
		if (x == y) /* not reached: a line is no parent */
			return first;
	}
	if (x != first && y != second) {
		if (may_hold(j, x, first) && may_hold(j, y, first))
			join(j, x > y ? x : y, x > y ? y : x);
	} else if (j->context[parent_of(j, x)] != 0) {
		return first; /* maybe of another call */
	} else if (x == first && may_hold(j, y, first)) {
		join(j, first, second);
		return second;
	} else if (y == second && may_hold(j, x, first)) {
		join(j, second, first);
	}
	return first;
}

static void join_by_statement(struct joiner *j)
{
	keys_clear(&j->keys);
	for (uint32_t n = 1; n < j->tree->count && !j->failed; n++) {
		const struct weave_node *node = &j->tree->nodes[n];
		uint32_t *at;
		if (j->into[n] != n || node->type != WEAVE_LINE)
			continue;
		at = keys_at(&j->keys,
			     (struct key){j->context[parent_of(j, n)], 0, node->file, node->line});
		if (!at)
			j->failed = true;
		else if (*at == KEYS_NONE)
			*at = n;
		else if (parent_of(j, *at) != parent_of(j, n))
			*at = join_instances(j, *at, n);
	}
}

/* Leaves out the nodes that were joined to others. */
static void compact(struct joiner *j)
{
	struct weave *t = j->tree;
	uint32_t *number = j->depth; /* no longer needed as such */
	uint32_t count = 1;
	number[0] = 0;
	for (uint32_t n = 1; n < t->count; n++)
		if (j->into[n] == n)
			number[n] = count++;
	for (size_t i = 0; i < j->in->piece_count; i++)
		t->of_piece[i] = number[find(j, t->of_piece[i])];
	for (uint32_t n = 1; n < t->count; n++)
		if (j->into[n] == n) {
			struct weave_node node = t->nodes[n];
			node.parent = number[parent_of(j, n)];
			t->nodes[number[n]] = node;
		}
	t->count = count;
}

bool weave_normalize(const struct weave_input *input, struct weave *tree)
{
	struct joiner j = {.in = input, .tree = tree};
	unsigned pass = 0;
	j.into = calloc(tree->count + 1, sizeof *j.into);
	j.context = calloc(tree->count + 1, sizeof *j.context);
	j.depth = calloc(tree->count + 1, sizeof *j.depth);
	j.failed = !j.into || !j.context || !j.depth;
	for (uint32_t n = 0; !j.failed && n < tree->count; n++)
		j.into[n] = n;
	do {
		j.changed = false;
		if (!j.failed)
			join_equal(&j);
		if (!j.failed && input->flat) {
			measure(&j);
			join_by_statement(&j);
		}
	} while (j.changed && !j.failed && ++pass < PASSES_MAX && !weave_late(input));
	if (!j.failed)
		compact(&j);
	free(j.into);
	free(j.context);
	free(j.depth);
	keys_free(&j.keys);
	return !j.failed;
}
