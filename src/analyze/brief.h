/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A tree that fits on a screen. Recursion is folded, what is small is hidden, and a chain of nodes takes one line: from a
 * node to its only child and on, as long as little was spent on the way.
 */
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct tree;

/* The same samples, but a function that is called again below itself is one node: the first. What it calls at any depth is
   below that. Nodes say how often they were folded. Siblings are sorted by total. */
struct err *brief_fold(const struct tree *tree, uint32_t metric, struct tree **out);

/* Hides nodes with a smaller share than `min`, and more than that if needed to draw at most so many lines. Returns the share
   below which nodes are hidden, and counts those that have samples, without those below hidden ones. */
double brief_fit(struct tree *tree, uint32_t metric, double min, size_t lines, size_t *hidden);

/* Appends the names of a chain before its last one, each with an arrow behind it, in `most` columns if possible: names that
   have no room become their number, but the first name is always there. Returns the columns.

       read → … 9 … → vfs_read →  */
size_t brief_way(const char *const *names, size_t count, size_t most, struct buf *out);

/* The last node of the chain that begins at this one. A chain goes on if fewer samples than `least` leave it. */
uint32_t brief_chain(const struct tree *tree, uint32_t metric, double least, uint32_t node);
