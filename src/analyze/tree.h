/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A tree of scopes with the samples of each metric: what every view is, and
 * what is printed. Node 0 is the root; a parent's index is below its
 * children's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/lookup.h"

struct err;
struct scopes;

#define TREE_NONE UINT32_MAX

struct tree_node {
	uint32_t scope;
	uint32_t parent;      /* TREE_NONE for the root */
	uint32_t child, next; /* TREE_NONE: none */
	bool hidden;          /* left out of what is shown, with all below it */
	bool called;          /* of an inlined function: tree_called was told something */
	uint32_t folded;      /* calls of itself that were folded, one below the other (brief.h) */
	int call_line;        /* 0: not known, or in several places */
	const char *call_file;
};

struct tree {
	const struct scopes *scopes;
	struct tree_node *nodes;
	size_t count, room;
	size_t metric_count;
	uint64_t *self, *total; /* of node i and metric m: [i * metric_count + m] */
	uint64_t *whole;        /* samples of each metric in the recording: what shares relate to */
	struct lookup children; /* parent and scope -> node */
};

/* An empty tree: a root. */
struct err *tree_new(const struct scopes *scopes, size_t metric_count, struct tree **out);
void tree_free(struct tree *tree); /* NULL is fine */

/* The child with this scope, made where there was none. */
struct err *tree_child(struct tree *tree, uint32_t parent, uint32_t scope, uint32_t *node);
/* The same where the parent is known to have none yet; tree_child does not find it. */
struct err *tree_add(struct tree *tree, uint32_t parent, uint32_t scope, uint32_t *node);

/* Where the call was that an inlined function stands for. Calls in several places are none. */
void tree_called(struct tree *tree, uint32_t node, const char *file, int line);

static inline uint64_t tree_self(const struct tree *t, uint32_t node, uint32_t metric)
{
	return t->self[node * t->metric_count + metric];
}
static inline uint64_t tree_total(const struct tree *t, uint32_t node, uint32_t metric)
{
	return t->total[node * t->metric_count + metric];
}

/* Makes every node's total from its self and the totals of its children. */
void tree_sum(struct tree *tree);
/* Orders siblings: the largest self (or total) first, then the other, then by name. */
struct err *tree_sort(struct tree *tree, uint32_t metric, bool by_self);
/* Hides nodes with a smaller share of the whole than `min`, and those deeper than `depth` (0: any
   depth; the root's children have depth 1). Returns how many with samples are hidden as too small,
   without those below hidden ones. */
size_t tree_prune(struct tree *tree, uint32_t metric, double min, uint64_t depth);
/* Hides all but the hot path: from the root to the child with the largest total, as long as that
   is at least half of its parent's. Returns the last node. The tree must be sorted by total. */
uint32_t tree_hot_path(struct tree *tree, uint32_t metric);

/* The first child that is not hidden, the next sibling that is not; TREE_NONE: none. */
uint32_t tree_first(const struct tree *tree, uint32_t node);
uint32_t tree_next(const struct tree *tree, uint32_t node);
