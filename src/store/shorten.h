/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Fewer call paths, for a span of time that has very many. Rare ones lose callers: each counts below the
 * innermost caller that has a usual share of the samples. So a function has all its samples, and a caller
 * lacks less than a CALLER_SHARE-th of all. Recursion that is deeper than SHORTEN_REPEATED is folded: a
 * call that is repeated more often counts at the one before it. So no sample is lost, and each counts for
 * the same functions.
 */
#include <stddef.h>
#include <stdint.h>

struct calltree;
struct err;
struct pack_path;

#define SHORTEN_REPEATED 32

/* Sets `out` to the tree that is left, and the rows' nodes to those in it. Rows refer to nodes of `tree`. */
struct err *shorten_paths(const struct calltree *tree, struct pack_path *rows, size_t count,
			  struct calltree *out);
