/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node with samples of one side only is a difference, or it is elsewhere on the other side. Where a
 * node of both sides has children of the old side only and others of the new side only,
 *
 *     main                               main
 *       solve        (old)                 loop at 12        (both: what is in it is)
 *         dot        (old)        ->         solve           (both)
 *       loop at 12   (new)                     dot           (both)
 *         solve      (new)
 *           dot      (new)
 *
 * what is below the one-sided levels is looked through, down to LEVELS levels, for scopes that both
 * sides have. Such two become one, below the level: the samples of the other side then lie in a
 * level that its build does not have, as they would if it had it. All samples stay, each in one node.
 *
 *   - A loop or an inlined function is passed freely. A function with a frame is passed if at least half
 *     of its samples are in what was found below it, and a call of itself is not: that is recursion.
 *   - Where both sides have a level that the other has not, one of the two must be of loops only; they
 *     are nested. Two functions that happen to call the same third one stay apart.
 *   - A call at the end of a function may be made a jump: main -> run -> solve becomes main -> solve
 *     beside main -> run. Then the two solves are one if they take about as much: a part of at least
 *     1 / ALIKE of it.
 *
 * Whatever stands on the same level is joined first, then what is nearest, then what is largest. Which
 * side is old does not matter. Every node is looked at from LEVELS nodes above it at most, in PASSES
 * passes: the time is that of sorting the nodes.
 */
#include "view/align.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/lookup.h"
#include "analyze/scopes.h"
#include "analyze/tree.h"
#include "base/array.h"
#include "base/err.h"

#define LEVELS 4 /* that are passed at most */
#define PASSES 3
#define ALIKE 2      /* how many times as much may be alike */
#define CLIMB_MAX 64 /* levels up to a node in common */

struct node {
	uint32_t scope, parent, child, next, before; /* TREE_NONE: none */
	uint32_t became;                             /* itself, or what it was joined with */
	uint64_t total[2];                           /* samples here and below, by side */
	uint64_t found; /* of those, what has a counterpart on the other side */
};

struct place { /* a node of one side, below the one that is looked at */
	uint32_t node;
	uint32_t depth;  /* levels between them */
	bool loops_only; /* these are all loops */
};

struct places {
	struct place *all;
	size_t count, room;
};

struct pair {
	uint32_t nodes[2]; /* by side */
	uint32_t depth;
	uint64_t samples;
	bool loops_only[2];
};

struct aligner {
	const struct tree *draft;
	struct node *nodes;
	size_t count;
	struct lookup moved; /* parent and scope -> node, of those that are not as in the draft */
	struct places places[2];
	struct pair *pairs;
	size_t pair_count, pair_room;
	uint32_t *stack;
	size_t stack_count, stack_room;
	bool changed;
};

/* ---- nodes ---- */

static const struct scope *scope_of(const struct aligner *k, uint32_t node)
{
	return scopes_get(k->draft->scopes, k->nodes[node].scope);
}

static bool is_both(const struct aligner *k, uint32_t node)
{
	return k->nodes[node].total[0] && k->nodes[node].total[1];
}

/* The side that alone has samples of it; 2: both. */
static int side_of(const struct aligner *k, uint32_t node)
{
	return is_both(k, node) ? 2 : k->nodes[node].total[1] > 0;
}

static bool is_alive(const struct aligner *k, uint32_t node)
{
	return k->nodes[node].became == node;
}

static uint32_t what_became_of(struct aligner *k, uint32_t node)
{
	while (!is_alive(k, node)) {
		uint32_t next = k->nodes[node].became;
		k->nodes[node].became = k->nodes[next].became;
		node = next;
	}
	return node;
}

static uint64_t samples_of(const struct aligner *k, uint32_t node)
{
	return k->nodes[node].total[0] + k->nodes[node].total[1];
}

static uint64_t key_of(uint32_t parent, uint32_t scope)
{
	return (uint64_t)parent << 32 | scope;
}

static bool is_child(const struct aligner *k, uint32_t node, uint32_t parent)
{
	return node != LOOKUP_NONE && is_alive(k, node) && k->nodes[node].parent == parent;
}

/* Those that were moved, else those that are where the draft has them. */
static uint32_t find_child(const struct aligner *k, uint32_t parent, uint32_t scope)
{
	uint64_t key = key_of(parent, scope);
	uint32_t node = lookup_find(&k->moved, key);
	if (!is_child(k, node, parent))
		node = lookup_find(&k->draft->children, key);
	return is_child(k, node, parent) ? node : TREE_NONE;
}

static void detach(struct aligner *k, uint32_t node)
{
	struct node *n = &k->nodes[node];
	if (n->before != TREE_NONE)
		k->nodes[n->before].next = n->next;
	else
		k->nodes[n->parent].child = n->next;
	if (n->next != TREE_NONE)
		k->nodes[n->next].before = n->before;
	n->before = n->next = TREE_NONE;
}

static void link_to(struct aligner *k, uint32_t node, uint32_t parent)
{
	struct node *n = &k->nodes[node], *p = &k->nodes[parent];
	n->parent = parent;
	n->next = p->child;
	if (p->child != TREE_NONE)
		k->nodes[p->child].before = node;
	p->child = node;
}

static struct err *attach(struct aligner *k, uint32_t node, uint32_t parent)
{
	link_to(k, node, parent);
	return lookup_put(&k->moved, key_of(parent, k->nodes[node].scope), node)
		       ? NULL
		       : err_new("out of memory");
}

static struct err *push(struct aligner *k, uint32_t node)
{
	if (!ARRAY_ROOM(k->stack, k->stack_count, k->stack_room))
		return err_new("out of memory");
	k->stack[k->stack_count++] = node;
	return NULL;
}

/* ---- order ---- */

/* By name, and where these are equal by those above: an order in which it does not matter which side is old. */
static int compare_names(const struct aligner *k, uint32_t a, uint32_t b)
{
	for (int i = 0; i < CLIMB_MAX && a != b && a != TREE_NONE && b != TREE_NONE; i++) {
		const struct scope *s = scope_of(k, a), *t = scope_of(k, b);
		int names = strcmp(s->name, t->name);
		if (names || s->line != t->line)
			return names ? names : s->line < t->line ? -1 : 1;
		a = k->nodes[a].parent;
		b = k->nodes[b].parent;
	}
	return a == b ? 0 : a < b ? -1 : 1;
}

/* The larger one first. */
static int compare_nodes(const struct aligner *k, uint32_t a, uint32_t b)
{
	uint64_t s = samples_of(k, a), t = samples_of(k, b);
	return s != t ? s > t ? -1 : 1 : compare_names(k, a, b);
}

/* ---- joining ---- */

/* Takes a node's children over, joining those that both have. The node is out of the tree. */
static struct err *take_over(struct aligner *k, uint32_t from, uint32_t to)
{
	size_t base = k->stack_count;
	struct err *e = push(k, from);
	if (!e)
		e = push(k, to);
	while (!e && k->stack_count > base) {
		uint32_t b = k->stack[--k->stack_count], a = k->stack[--k->stack_count];
		k->nodes[a].became = b;
		for (int s = 0; s < 2; s++)
			k->nodes[b].total[s] += k->nodes[a].total[s];
		for (uint32_t c = k->nodes[a].child, next; !e && c != TREE_NONE; c = next) {
			uint32_t same = find_child(k, b, k->nodes[c].scope);
			next = k->nodes[c].next;
			detach(k, c);
			if (same == TREE_NONE) {
				e = attach(k, c, b);
				continue;
			}
			e = push(k, c);
			if (!e)
				e = push(k, same);
		}
	}
	return e;
}

/* Adds to what nodes have, from one up to (without) one above it. */
static void add_totals(struct aligner *k, uint32_t node, uint32_t above, const uint64_t total[2])
{
	for (; node != above; node = k->nodes[node].parent)
		for (int s = 0; s < 2; s++)
			k->nodes[node].total[s] += total[s];
}

/* Puts a child of `above` below a node that is below `above`, too. */
static struct err *lower(struct aligner *k, uint32_t node, uint32_t below, uint32_t above)
{
	uint32_t same = find_child(k, below, k->nodes[node].scope);
	add_totals(k, below, above, k->nodes[node].total);
	detach(k, node);
	k->changed = true;
	return same == TREE_NONE ? attach(k, node, below) : take_over(k, node, same);
}

/* The node that both are below; TREE_NONE: it is far. */
static uint32_t common_of(const struct aligner *k, uint32_t a, uint32_t b)
{
	for (int i = 0; i < CLIMB_MAX; i++) {
		uint32_t up = b;
		a = k->nodes[a].parent;
		if (a == TREE_NONE)
			return TREE_NONE;
		for (int j = 0; j < CLIMB_MAX && up != TREE_NONE; j++) {
			up = k->nodes[up].parent;
			if (up == a)
				return a;
		}
	}
	return TREE_NONE;
}

/* The child of `above` that a node is below, or is. */
static uint32_t top_of(const struct aligner *k, uint32_t node, uint32_t above)
{
	while (k->nodes[node].parent != above)
		node = k->nodes[node].parent;
	return node;
}

/* Joins two nodes of different sides. */
static struct err *join(struct aligner *k, const struct pair *p)
{
	uint32_t a = p->nodes[0], b = p->nodes[1];
	if (!is_alive(k, a) || !is_alive(k, b) || is_both(k, a) || is_both(k, b))
		return NULL;
	uint32_t above = common_of(k, a, b);
	if (above == TREE_NONE)
		return NULL;
	if (k->nodes[b].parent == above) /* the one that is lowered is a */
		b = a, a = p->nodes[1];
	if (k->nodes[a].parent == above)
		return lower(k, a, k->nodes[b].parent, above);
	/* Each has levels of its own: those of loops are put around the others. */
	if (!p->loops_only[0] ||
	    (p->loops_only[1] && compare_nodes(k, top_of(k, b, above), top_of(k, a, above)) < 0))
		b = a, a = p->nodes[1];
	uint32_t top = top_of(k, b, above), around = k->nodes[a].parent;
	if (is_both(k, top) || is_both(k, around))
		return NULL;
	struct err *e = lower(k, top, around, above);
	b = what_became_of(k, b);
	return e || is_both(k, b) ? e : lower(k, a, k->nodes[b].parent, around);
}

/* ---- what is below one-sided levels ---- */

static bool is_passed(const struct aligner *k, uint32_t node, uint32_t top)
{
	enum scope_kind kind = scope_of(k, node)->kind;
	if (kind == SCOPE_LOOP || kind == SCOPE_INLINE)
		return true;
	for (uint32_t up = node; up != top;) {
		up = k->nodes[up].parent;
		if (k->nodes[up].scope == k->nodes[node].scope)
			return false;
	}
	return kind == SCOPE_FUNCTION;
}

static struct err *add_place(struct places *list, struct place place)
{
	if (!ARRAY_ROOM(list->all, list->count, list->room))
		return err_new("out of memory");
	list->all[list->count++] = place;
	return NULL;
}

/* Nodes of one side below `top`: its one-sided children, and what is below those. With `through`, those
   below its children of both sides. */
static struct err *gather(struct aligner *k, uint32_t top, bool through)
{
	struct err *e = NULL;
	struct places seen = {0};
	k->places[0].count = k->places[1].count = 0;
	e = add_place(&seen, (struct place){top, 0, true});
	for (size_t i = 0; !e && i < seen.count; i++) {
		struct place p = seen.all[i];
		bool first = p.node == top;
		uint32_t depth = first ? 0 : p.depth + 1;
		for (uint32_t c = k->nodes[p.node].child; !e && c != TREE_NONE;
		     c = k->nodes[c].next) {
			int side = side_of(k, c);
			struct place found = {
				c, depth,
				first || (p.loops_only && scope_of(k, p.node)->kind == SCOPE_LOOP)};
			k->nodes[c].found = 0;
			if (side < 2)
				e = add_place(&k->places[side], found);
			if (!e && depth < LEVELS && (side == 2) == through && is_passed(k, c, top))
				e = add_place(&seen, found);
		}
	}
	free(seen.all);
	return e;
}

/* By scope, the nearest and largest first. */
static int compare_places(const void *a, const void *b, void *context)
{
	const struct aligner *k = context;
	const struct place *x = a, *y = b;
	const struct node *m = &k->nodes[x->node], *n = &k->nodes[y->node];
	if (m->scope != n->scope)
		return m->scope < n->scope ? -1 : 1;
	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	return compare_nodes(k, x->node, y->node);
}

/* Leaves one node of each scope. */
static void choose(struct aligner *k, struct places *list)
{
	size_t kept = 0;
	if (list->count)
		qsort_r(list->all, list->count, sizeof *list->all, compare_places, k);
	for (size_t i = 0; i < list->count; i++)
		if (!kept ||
		    k->nodes[list->all[kept - 1].node].scope != k->nodes[list->all[i].node].scope)
			list->all[kept++] = list->all[i];
	list->count = kept;
}

/* Whether two nodes take about as much of their sides. */
static bool is_alike(const struct aligner *k, uint32_t old, uint32_t new)
{
	double a = (double)k->nodes[old].total[0] / (double)k->nodes[0].total[0];
	double b = (double)k->nodes[new].total[1] / (double)k->nodes[0].total[1];
	return a * ALIKE >= b && b * ALIKE >= a;
}

static bool is_pair(const struct aligner *k, const struct place *a, const struct place *b,
		    bool through)
{
	if (through)
		return (a->depth > 0) != (b->depth > 0) && is_alike(k, a->node, b->node);
	return !a->depth || !b->depth || a->loops_only || b->loops_only;
}

/* Scopes that both sides have below `top`. */
static struct err *find_pairs(struct aligner *k, uint32_t top, bool through)
{
	const struct places *l = k->places;
	struct err *e = gather(k, top, through);
	k->pair_count = 0;
	if (e || !l[0].count || !l[1].count)
		return e;
	choose(k, &k->places[0]);
	choose(k, &k->places[1]);
	for (size_t i = 0, j = 0; i < l[0].count && j < l[1].count;) {
		const struct place *a = &l[0].all[i], *b = &l[1].all[j];
		uint32_t x = k->nodes[a->node].scope, y = k->nodes[b->node].scope;
		i += x <= y;
		j += y <= x;
		if (x != y || !is_pair(k, a, b, through))
			continue;
		if (!ARRAY_ROOM(k->pairs, k->pair_count, k->pair_room))
			return err_new("out of memory");
		k->pairs[k->pair_count++] = (struct pair){
			.nodes = {a->node, b->node},
			.depth = a->depth + b->depth,
			.samples = samples_of(k, a->node) + samples_of(k, b->node),
			.loops_only = {a->loops_only, b->loops_only},
		};
	}
	return NULL;
}

/* How much of each level was found on the other side. */
static void add_found(struct aligner *k, uint32_t top)
{
	for (size_t i = 0; i < k->pair_count; i++)
		for (int s = 0; s < 2; s++) {
			uint32_t node = k->pairs[i].nodes[s];
			for (uint32_t up = k->nodes[node].parent; up != top;
			     up = k->nodes[up].parent)
				k->nodes[up].found += samples_of(k, node);
		}
}

/* Whether the functions above a node may be passed. */
static bool is_within_reach(const struct aligner *k, uint32_t node, uint32_t top)
{
	for (uint32_t up = k->nodes[node].parent; up != top; up = k->nodes[up].parent)
		if (scope_of(k, up)->kind == SCOPE_FUNCTION &&
		    2 * k->nodes[up].found < samples_of(k, up))
			return false;
	return true;
}

static int compare_pairs(const void *a, const void *b, void *context)
{
	const struct aligner *k = context;
	const struct pair *x = a, *y = b;
	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	return compare_names(k, x->nodes[0], y->nodes[0]);
}

static struct err *align_below(struct aligner *k, uint32_t top, bool through)
{
	size_t kept = 0;
	struct err *e = find_pairs(k, top, through);
	if (e || !k->pair_count)
		return e;
	if (!through) {
		add_found(k, top);
		for (size_t i = 0; i < k->pair_count; i++)
			if (is_within_reach(k, k->pairs[i].nodes[0], top) &&
			    is_within_reach(k, k->pairs[i].nodes[1], top))
				k->pairs[kept++] = k->pairs[i];
		k->pair_count = kept;
	}
	if (k->pair_count)
		qsort_r(k->pairs, k->pair_count, sizeof *k->pairs, compare_pairs, k);
	for (size_t i = 0; !e && i < k->pair_count; i++)
		e = join(k, &k->pairs[i]);
	return e;
}

/* ---- the tree ---- */

static bool has_one_sided(const struct aligner *k, uint32_t node)
{
	for (uint32_t c = k->nodes[node].child; c != TREE_NONE; c = k->nodes[c].next)
		if (side_of(k, c) < 2)
			return true;
	return false;
}

/* From the root down. */
static struct err *align_all(struct aligner *k)
{
	size_t base = k->stack_count;
	struct err *e = push(k, 0);
	while (!e && k->stack_count > base) {
		uint32_t node = k->stack[--k->stack_count];
		if (has_one_sided(k, node))
			e = align_below(k, node, false);
		for (uint32_t c = k->nodes[node].child; !e && c != TREE_NONE; c = k->nodes[c].next)
			if (is_both(k, c))
				e = push(k, c);
	}
	return e;
}

/* Calls that became jumps: in the order of the draft, in which callers come first, from the end. */
static struct err *align_jumps(struct aligner *k)
{
	struct err *e = NULL;
	for (size_t i = k->count; !e && i-- > 0;) {
		uint32_t node = (uint32_t)i;
		if (is_alive(k, node) && is_both(k, node) && has_one_sided(k, node))
			e = align_below(k, node, true);
	}
	return e;
}

static struct err *begin(struct aligner *k, const uint64_t (*own)[2])
{
	const struct tree *t = k->draft;
	k->count = t->count;
	k->nodes = calloc(t->count, sizeof *k->nodes);
	if (!k->nodes)
		return err_new("out of memory");
	for (uint32_t i = 0; i < t->count; i++)
		k->nodes[i] = (struct node){
			.scope = t->nodes[i].scope,
			.parent = TREE_NONE,
			.child = TREE_NONE,
			.next = TREE_NONE,
			.before = TREE_NONE,
			.became = i,
			.total = {own[i][0], own[i][1]},
		};
	for (uint32_t i = (uint32_t)t->count; i-- > 1;) {
		uint32_t parent = t->nodes[i].parent;
		for (int s = 0; s < 2; s++)
			k->nodes[parent].total[s] += k->nodes[i].total[s];
		link_to(k, i, parent);
	}
	return NULL;
}

static struct err *finish(struct aligner *k, struct tree *out, uint32_t *places)
{
	struct err *e = push(k, 0);
	places[0] = 0;
	while (!e && k->stack_count) {
		uint32_t node = k->stack[--k->stack_count];
		for (uint32_t c = k->nodes[node].child; !e && c != TREE_NONE;
		     c = k->nodes[c].next) {
			e = tree_add(out, places[node], k->nodes[c].scope, &places[c]);
			if (!e)
				e = push(k, c);
		}
	}
	for (uint32_t i = 1; !e && i < k->count; i++) {
		const struct tree_node *n = &k->draft->nodes[i];
		places[i] = places[what_became_of(k, i)];
		if (n->called)
			tree_called(out, places[i], n->call_file, n->call_line);
	}
	return e;
}

struct err *align_make(const struct tree *draft, const uint64_t (*own)[2], struct tree **out,
		       uint32_t *places)
{
	struct aligner k = {.draft = draft};
	struct err *e = tree_new(draft->scopes, draft->metric_count, out);
	if (!e)
		e = begin(&k, own);
	k.changed = true;
	for (int i = 0; !e && i < PASSES && k.changed; i++) {
		k.changed = false;
		e = align_all(&k);
		if (!e)
			e = align_jumps(&k);
	}
	if (!e)
		e = finish(&k, *out, places);
	free(k.nodes);
	lookup_free(&k.moved);
	free(k.places[0].all);
	free(k.places[1].all);
	free(k.pairs);
	free(k.stack);
	if (e) {
		tree_free(*out);
		*out = NULL;
	}
	return e;
}
