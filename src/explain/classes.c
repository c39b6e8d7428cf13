/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Johnson, Pearson and Pingali: "The program structure tree" (PLDI 1994).
 *
 * In a strongly connected graph, two arcs lie on the same cycles if and only if they do so where directions
 * are ignored. There, a depth-first search leaves tree arcs and back arcs, which lead to an ancestor. The
 * brackets of a tree arc are the back arcs from below it to above it. Two tree arcs are equivalent if their
 * brackets are equal; a back arc is equivalent to a tree arc whose only bracket it is.
 *
 * Sets of brackets are never compared. Each is named by the bracket that was added last, and its size. For
 * that, brackets are kept in lists, from the leaves up, where a list is added to another at once. Where a
 * node has several children whose brackets end at different heights, a capping arc is added from it, so that
 * sets of different branches do not get the same name.
 */
#include "explain/classes.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define NONE UINT32_MAX

struct bracket { /* the first arc_count stand for back arcs, the others for capping ones */
	uint32_t before, after;
	uint32_t recent_size, recent_class;
	uint32_t capped_next; /* of capping ones: the next that ends at the same node */
};

struct brackets {
	uint32_t first, last, size;
};

struct search {
	const struct network *network;
	uint32_t *first, *around; /* arcs at each node */
	uint32_t *number, *order; /* of each node, and the other way round */
	uint32_t *parent_arc;     /* NONE: the root */
	uint32_t *high; /* the number of the highest node that a bracket from below it ends at */
	uint32_t *next; /* where the search of a node's arcs stands */
	uint32_t *stack;
	struct brackets *lists; /* of each node */
	struct bracket *brackets;
	size_t bracket_count;
	uint32_t *capped; /* of each node: the capping brackets that end there */
	uint32_t *class;
	uint32_t class_count;
};

static uint32_t other_end(const struct network *n, uint32_t arc, uint32_t node)
{
	return n->arcs[arc].from == node ? n->arcs[arc].to : n->arcs[arc].from;
}

/* ---- the search ---- */

static void index_arcs(struct search *s)
{
	const struct network *n = s->network;
	for (size_t i = 0; i < n->arc_count; i++) {
		s->first[n->arcs[i].from]++;
		s->first[n->arcs[i].to]++;
	}
	for (size_t i = 0, sum = 0; i <= n->node_count; i++) {
		size_t count = s->first[i];
		s->first[i] = (uint32_t)(sum += count);
	}
	for (uint32_t i = (uint32_t)n->arc_count; i-- > 0;) {
		s->around[--s->first[n->arcs[i].from]] = i;
		s->around[--s->first[n->arcs[i].to]] = i;
	}
}

static uint32_t discover(struct search *s)
{
	const struct network *n = s->network;
	size_t depth = 0;
	s->stack[depth++] = 0;
	s->number[0] = 0;
	s->order[0] = 0;
	s->parent_arc[0] = NONE;
	uint32_t count = 1;
	while (depth) {
		uint32_t node = s->stack[depth - 1];
		if (s->first[node] + s->next[node] == s->first[node + 1]) {
			depth--;
			continue;
		}
		uint32_t arc = s->around[s->first[node] + s->next[node]++];
		uint32_t other = other_end(n, arc, node);
		if (s->number[other] != NONE)
			continue;
		s->number[other] = count;
		s->order[count++] = other;
		s->parent_arc[other] = arc;
		s->stack[depth++] = other;
	}
	return count;
}

/* ---- lists of brackets ---- */

static void push(struct search *s, struct brackets *list, uint32_t bracket)
{
	struct bracket *b = &s->brackets[bracket];
	b->before = NONE;
	b->after = list->first;
	b->recent_size = 0;
	if (list->first != NONE)
		s->brackets[list->first].before = bracket;
	else
		list->last = bracket;
	list->first = bracket;
	list->size++;
}

static void drop(struct search *s, struct brackets *list, uint32_t bracket)
{
	const struct bracket *b = &s->brackets[bracket];
	if (b->before != NONE)
		s->brackets[b->before].after = b->after;
	else
		list->first = b->after;
	if (b->after != NONE)
		s->brackets[b->after].before = b->before;
	else
		list->last = b->before;
	list->size--;
}

static void append(struct search *s, struct brackets *list, const struct brackets *more)
{
	if (!more->size)
		return;
	if (!list->size) {
		*list = *more;
		return;
	}
	s->brackets[list->last].after = more->first;
	s->brackets[more->first].before = list->last;
	list->last = more->last;
	list->size += more->size;
}

/* ---- classes ---- */

static void name_tree_arc(struct search *s, uint32_t arc, const struct brackets *list)
{
	if (!list->size) { /* no cycle at all: not of a strongly connected network */
		s->class[arc] = s->class_count++;
		return;
	}
	struct bracket *top = &s->brackets[list->first];
	if (top->recent_size != list->size) {
		top->recent_size = list->size;
		top->recent_class = s->class_count++;
	}
	s->class[arc] = top->recent_class;
	if (list->size == 1 && list->first < s->network->arc_count)
		s->class[list->first] = top->recent_class;
}

static void cap(struct search *s, uint32_t node, uint32_t to_number)
{
	uint32_t bracket = (uint32_t)s->bracket_count++, to = s->order[to_number];
	push(s, &s->lists[node], bracket);
	s->brackets[bracket].capped_next = s->capped[to];
	s->capped[to] = bracket;
}

/* The children's lists; returns the second highest node that they end at, sets the highest. */
static uint32_t join_children(struct search *s, uint32_t node, uint32_t *highest)
{
	uint32_t second = NONE;
	*highest = NONE;
	for (uint32_t i = s->first[node]; i < s->first[node + 1]; i++) {
		uint32_t arc = s->around[i], child = other_end(s->network, arc, node);
		if (child == node || s->parent_arc[child] != arc ||
		    s->number[child] < s->number[node])
			continue;
		append(s, &s->lists[node], &s->lists[child]);
		if (s->high[child] < *highest) {
			second = *highest;
			*highest = s->high[child];
		} else if (s->high[child] < second) {
			second = s->high[child];
		}
	}
	return second;
}

static void drop_ended(struct search *s, uint32_t node)
{
	struct brackets *list = &s->lists[node];
	for (uint32_t b = s->capped[node]; b != NONE; b = s->brackets[b].capped_next)
		drop(s, list, b);
	for (uint32_t i = s->first[node]; i < s->first[node + 1]; i++) {
		uint32_t arc = s->around[i], below = other_end(s->network, arc, node);
		if (s->number[below] <= s->number[node] || s->parent_arc[below] == arc)
			continue;
		drop(s, list, arc);
		if (s->class[arc] == NONE)
			s->class[arc] = s->class_count++;
	}
}

/* The back arcs from here up; returns the highest node that one ends at. */
static uint32_t push_begun(struct search *s, uint32_t node)
{
	uint32_t highest = NONE;
	for (uint32_t i = s->first[node]; i < s->first[node + 1]; i++) {
		uint32_t arc = s->around[i], above = other_end(s->network, arc, node);
		if (arc == s->parent_arc[node] || s->number[above] >= s->number[node])
			continue;
		push(s, &s->lists[node], arc);
		if (s->number[above] < highest)
			highest = s->number[above];
	}
	return highest;
}

static void visit(struct search *s, uint32_t node)
{
	uint32_t highest, second = join_children(s, node, &highest);
	drop_ended(s, node);
	uint32_t own = push_begun(s, node);
	s->high[node] = own < highest ? own : highest;
	if (second < own && second < s->number[node])
		cap(s, node, second);
	if (s->parent_arc[node] != NONE)
		name_tree_arc(s, s->parent_arc[node], &s->lists[node]);
}

static void free_search(struct search *s)
{
	free(s->first);
	free(s->around);
	free(s->number);
	free(s->order);
	free(s->parent_arc);
	free(s->high);
	free(s->next);
	free(s->stack);
	free(s->lists);
	free(s->brackets);
	free(s->capped);
}

static bool make_search(struct search *s)
{
	size_t nodes = s->network->node_count, arcs = s->network->arc_count;
	s->first = calloc(nodes + 2, sizeof *s->first);
	s->around = calloc(2 * arcs + 1, sizeof *s->around);
	s->number = malloc(nodes * sizeof *s->number);
	s->order = calloc(nodes, sizeof *s->order);
	s->parent_arc = malloc(nodes * sizeof *s->parent_arc);
	s->high = malloc(nodes * sizeof *s->high);
	s->next = calloc(nodes, sizeof *s->next);
	s->stack = calloc(nodes, sizeof *s->stack);
	s->lists = calloc(nodes, sizeof *s->lists);
	s->brackets = calloc(arcs + nodes, sizeof *s->brackets);
	s->capped = malloc(nodes * sizeof *s->capped);
	s->class = malloc((arcs + 1) * sizeof *s->class);
	if (!s->first || !s->around || !s->number || !s->order || !s->parent_arc || !s->high ||
	    !s->next || !s->stack || !s->lists || !s->brackets || !s->capped || !s->class)
		return false;
	memset(s->number, 0xff, nodes * sizeof *s->number);
	memset(s->parent_arc, 0xff, nodes * sizeof *s->parent_arc);
	memset(s->high, 0xff, nodes * sizeof *s->high);
	memset(s->capped, 0xff, nodes * sizeof *s->capped);
	memset(s->class, 0xff, arcs * sizeof *s->class);
	for (size_t i = 0; i < nodes; i++)
		s->lists[i].first = s->lists[i].last = NONE;
	s->bracket_count = arcs;
	return true;
}

struct err *network_classes(const struct network *network, uint32_t **out, size_t *class_count)
{
	struct search s = {.network = network};
	if (!make_search(&s)) {
		free(s.class);
		free_search(&s);
		return err_new("out of memory");
	}
	if (!network->incomplete) {
		index_arcs(&s);
		for (uint32_t i = discover(&s); i-- > 0;)
			visit(&s, s.order[i]);
	}
	for (size_t i = 0; i < network->arc_count; i++)
		if (s.class[i] == NONE)
			s.class[i] = s.class_count++;
	free_search(&s);
	*out = s.class;
	*class_count = s.class_count;
	return NULL;
}
