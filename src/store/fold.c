/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is rare is folded where spans become long. Samples are without end, and so
 * are the different places and paths that they meet: most paths are met once.
 * In a span with n samples,
 *
 *  - an instruction with less than n / FOLD_COUNTS counts at the beginning of its function, or at
 *    0, for all that is rare in an image, where no function is known there;
 *  - a call path with less than n / FOLD_PATHS is counted below the innermost caller that has
 *    at least FOLD_CALLERS times that, as if that had called the function where the sample
 *    is; callers between are left out;
 *  - where a function below such a caller has less than a FOLD_REST-th of that in a process, it is counted
 *    at 0 there, for all that is so rare in its image.
 *
 * Code that was made at run time is told in fold_jit.c.
 *
 * So sums stay exact: of the span, of each event, process and image, and of each caller
 * that is not rare; of each function by the counts. What is lost is detail of
 * what nobody could tell from chance.
 */
#include <stdlib.h>

#include "base/err.h"
#include "profile/profile.h"
#include "store/fold.h"

#define FOLD_COUNTS 16384
#define FOLD_PATHS 4096
#define FOLD_CALLERS 32 /* a caller that stays has so many times more than a path that does */
#define FOLD_REST 32

/* Where the function with this address begins; 0 where that is not known. */
static struct err *function_start(struct names *n, uint64_t image, uint64_t address,
				  uint64_t *start)
{
	uint32_t place = 0;
	struct err *e = names_image(n, image, &place);
	const struct store_symbol *y = e ? NULL : read_symbol(&n->images[place], address);
	*start = y ? y->start : 0;
	return e;
}

static struct err *fold_counts(struct names *n, struct segment *x)
{
	uint64_t sum = 0;
	struct err *e = NULL;
	for (size_t i = 0; i < x->count_count; i++)
		sum += x->counts[i].count;
	for (size_t i = 0; !e && i < x->count_count; i++) {
		struct pack_count *c = &x->counts[i];
		if (c->count < sum / FOLD_COUNTS)
			e = function_start(n, c->image, c->address, &c->address);
	}
	x->count_count = pack_settle_counts(x->counts, x->count_count);
	return e;
}

/* Samples in each node and below it; malloc'ed. */
static uint64_t *inclusive(const struct calltree *tree, const struct segment *x)
{
	uint64_t *sums = calloc(tree->count, sizeof *sums);
	for (size_t i = 0; sums && i < x->path_count; i++)
		if (x->paths[i].node < tree->count)
			sums[x->paths[i].node] += x->paths[i].count;
	for (uint32_t i = tree->count; sums && i-- > 1;)
		sums[tree->nodes[i].parent] += sums[i];
	return sums;
}

/* The node that stands for a rare one; UINT32_MAX without memory. */
static struct err *fold_node(struct names *n, struct calltree *tree, const uint64_t *sums,
			     uint64_t least, uint64_t *node)
{
	struct pack_node leaf = tree->nodes[*node];
	uint32_t caller = leaf.parent;
	while (caller && sums[caller] < least * FOLD_CALLERS)
		caller = tree->nodes[caller].parent;
	/* Below the root, what is not known of the callers stays that way. */
	for (uint32_t at = leaf.parent; !caller && at; at = tree->nodes[at].parent)
		if (tree->nodes[at].kind == PROFILE_PARTIAL)
			caller = at;
	if (leaf.kind == PROFILE_PARTIAL)
		return NULL;
	uint64_t address = leaf.address;
	struct err *e = leaf.image ? function_start(n, leaf.image,
						    address - (leaf.kind == PROFILE_CALL), &address)
				   : NULL;
	leaf = pack_node(caller, leaf.image, PROFILE_EXACT, address);
	uint32_t made = e ? 0 : calltree_child(tree, &leaf);
	if (made == UINT32_MAX)
		return err_new("out of memory");
	*node = made;
	return e;
}

/* What is left of functions that hardly ever ran; `known`: nodes from here on are of rare ones. */
static struct err *fold_rest(struct calltree *tree, const uint64_t *sums, uint32_t known,
			     uint64_t least, struct segment *x)
{
	for (size_t i = 0; i < x->path_count; i++) {
		struct pack_path *p = &x->paths[i];
		if (!p->node || p->node >= tree->count || p->count >= least / FOLD_REST ||
		    (p->node < known && sums[p->node] >= least))
			continue;
		struct pack_node leaf = tree->nodes[p->node];
		if (leaf.kind != PROFILE_EXACT || !leaf.image)
			continue;
		leaf.address = 0;
		p->node = calltree_child(tree, &leaf);
		if (p->node == UINT32_MAX)
			return err_new("out of memory");
	}
	return NULL;
}

static struct err *fold_paths(struct names *n, struct calltree *tree, struct segment *x)
{
	uint64_t *sums = inclusive(tree, x);
	uint32_t known = tree->count;
	struct err *e = sums ? NULL : err_new("out of memory");
	uint64_t least = e ? 0 : sums[0] / FOLD_PATHS;
	for (size_t i = 0; !e && i < x->path_count; i++) {
		struct pack_path *p = &x->paths[i];
		if (p->node && p->node < known && sums[p->node] < least)
			e = fold_node(n, tree, sums, least, &p->node);
	}
	x->path_count = pack_settle_paths(x->paths, x->path_count);
	if (!e)
		e = fold_rest(tree, sums, known, least, x);
	free(sums);
	x->path_count = pack_settle_paths(x->paths, x->path_count);
	return e;
}

static struct err *fold_made_counts(struct folding *f, struct segment *x)
{
	struct err *e = NULL;
	for (size_t i = 0; !e && i < x->count_count; i++)
		e = fold_made(f, &x->counts[i].image, &x->counts[i].address);
	x->count_count = pack_settle_counts(x->counts, x->count_count);
	return e;
}

/* The tree gets the nodes that stand for others. */
static struct err *fold_tree(struct folding *f, struct segment *x)
{
	struct store *s = f->store;
	uint32_t before = s->tree.count;
	struct err *e = fold_made_paths(f, x);
	if (!e)
		e = fold_paths(&f->names, &s->tree, x);
	if (!e && s->tree.count > TREE_NODES_MAX) {
		s->trouble = STORE_OTHER;
		e = err_new("%s: epoch %lld has too many call paths", s->path, (long long)x->epoch);
	}
	return e ? e : trees_append(s, x->epoch, &s->tree, before);
}

struct err *fold_segment(struct store *s, struct segment *x)
{
	struct folding f = {.store = s};
	struct err *e = s->tree_epoch == x->epoch ? NULL : trees_load(s, x->epoch);
	if (!e)
		e = names_open(&f.names, s);
	if (!e)
		e = fold_made_counts(&f, x);
	if (!e)
		e = fold_counts(&f.names, x);
	if (!e)
		e = fold_tree(&f, x);
	if (!e)
		e = sql_do(s, "UPDATE epoch SET compact = 0 WHERE id = ?", "d", x->epoch);
	free(f.made.slots);
	names_close(&f.names);
	return e;
}

/* ---- nodes that nobody refers to any more ---- */

#define COMPACT_SPANS_MAX 400

struct compaction {
	struct store *s;
	int64_t epoch;
	int64_t ids[COMPACT_SPANS_MAX];
	size_t count;
	bool *used;   /* by old number */
	uint32_t *to; /* new numbers */
};

static struct err *list_spans(struct compaction *c)
{
	sqlite3_stmt *r;
	bool row = true;
	struct err *e = sql_prepare(c->s, &r, "SELECT id FROM segment WHERE epoch = ?", "d",
				    c->epoch);
	while (!e && row) {
		e = sql_step(c->s, r, &row);
		if (!e && row && c->count < COMPACT_SPANS_MAX)
			c->ids[c->count++] = sqlite3_column_int64(r, 0);
		else if (!e && row)
			e = err_new("too many spans in epoch %lld", (long long)c->epoch);
	}
	sql_done(c->s, r);
	return e;
}

static struct err *mark(struct compaction *c)
{
	struct calltree *tree = &c->s->tree;
	struct err *e = NULL;
	for (size_t i = 0; !e && i < c->count; i++) {
		struct segment x;
		e = segment_read(c->s, c->ids[i], SEGMENT_ALL, &x);
		for (size_t k = 0; !e && k < x.path_count; k++)
			if (x.paths[k].node < tree->count)
				c->used[x.paths[k].node] = true;
		segment_free(&x);
	}
	for (uint32_t i = tree->count; i-- > 1;)
		c->used[tree->nodes[i].parent] |= c->used[i];
	return e;
}

/* Nodes that are in use, each after its parent and before the parent's next child, children by their
   frames: what is alike lies together then, which packs to half. */
struct orderly {
	const struct pack_node *node;
	uint32_t number;
};

static int compare_siblings(const void *a, const void *b)
{
	const struct pack_node *x = ((const struct orderly *)a)->node;
	const struct pack_node *y = ((const struct orderly *)b)->node;
	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	if (x->image != y->image)
		return x->image < y->image ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return (x->kind > y->kind) - (x->kind < y->kind);
}

/* By parent; *count says how many. first[n]: where the children of node n begin. malloc'ed. */
static struct orderly *list_children(const struct compaction *c, uint32_t *first, size_t *count)
{
	const struct calltree *old = &c->s->tree;
	struct orderly *list = calloc(old->count, sizeof *list);
	size_t used = 0, at = 0;
	for (uint32_t i = 1; list && i < old->count; i++)
		if (c->used[i])
			list[used++] = (struct orderly){&old->nodes[i], i};
	if (used)
		qsort(list, used, sizeof *list, compare_siblings);
	for (uint32_t parent = 0; list && parent < old->count; parent++) {
		first[parent] = (uint32_t)at;
		while (at < used && list[at].node->parent == parent)
			at++;
	}
	*count = used;
	return list;
}

/* first[n] goes on as the children of n are taken. */
static bool take_in_order(struct compaction *c, const struct orderly *list, size_t count,
			  uint32_t *first, struct calltree *tree)
{
	const struct calltree *old = &c->s->tree;
	uint32_t at = 0;
	for (size_t taken = 0; taken < count;) {
		uint32_t next = first[at];
		if (next >= count || list[next].node->parent != at) {
			at = old->nodes[at].parent; /* it has no more */
			continue;
		}
		struct pack_node node = *list[next].node;
		first[at]++;
		at = list[next].number;
		node.parent = c->to[node.parent];
		c->to[at] = calltree_child(tree, &node);
		if (c->to[at] == UINT32_MAX)
			return false;
		taken++;
	}
	return true;
}

static struct err *renumber(struct compaction *c)
{
	struct calltree tree = {0};
	size_t count = 0;
	uint32_t *first = calloc(c->s->tree.count, sizeof *first);
	struct orderly *list = first ? list_children(c, first, &count) : NULL;
	bool good = list && calltree_clear(&tree) && take_in_order(c, list, count, first, &tree);
	struct err *e = good ? NULL : err_new("out of memory");
	free(list);
	free(first);
	if (!e)
		e = sql_do(c->s, "DELETE FROM node WHERE epoch = ?", "d", c->epoch);
	if (!e)
		e = sql_do(c->s, "UPDATE epoch SET nodes = 0 WHERE id = ?", "d", c->epoch);
	if (!e)
		e = trees_finish(c->s, c->epoch, &tree, 1);
	calltree_free(&tree);
	return e;
}

static struct err *rewrite(struct compaction *c)
{
	struct err *e = NULL;
	for (size_t i = 0; !e && i < c->count; i++) {
		struct segment x;
		e = segment_read(c->s, c->ids[i], SEGMENT_ALL, &x);
		for (size_t k = 0; !e && k < x.path_count; k++)
			x.paths[k].node = x.paths[k].node < c->s->tree.count
						  ? c->to[x.paths[k].node]
						  : 0;
		if (!e)
			e = segment_replace_paths(c->s, &x);
		segment_free(&x);
	}
	return e;
}

struct err *fold_compact(struct store *s, int64_t epoch)
{
	struct compaction c = {.s = s, .epoch = epoch};
	struct err *e = list_spans(&c);
	if (!e)
		e = trees_load(s, epoch);
	if (!e) {
		c.used = calloc(s->tree.count, sizeof *c.used);
		c.to = calloc(s->tree.count, sizeof *c.to);
		if (!c.used || !c.to)
			e = err_new("out of memory");
	}
	if (!e)
		e = mark(&c);
	if (!e)
		e = renumber(&c);
	if (!e)
		e = rewrite(&c);
	if (!e)
		e = sql_do(s, "UPDATE epoch SET compact = 1 WHERE id = ?", "d", epoch);
	s->tree_epoch = 0; /* its numbers are the old ones */
	free(c.used);
	free(c.to);
	return e;
}
