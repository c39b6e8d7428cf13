/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Going through a view of what is exported, parents before their children.
 */
#include <stddef.h>
#include <stdint.h>

#include "analyze/views.h"

struct err;
struct job;
struct tree;

/* The view of what the job exports; tree_free it. */
struct err *walk_view(struct job *job, enum view view, enum view_group group, struct tree **out);

struct tree_walk {
	const struct tree *tree;
	uint32_t top, at;
	size_t depth; /* of `at` below `top` */
};

/* The top itself; then what comes next below it, TREE_NONE at the end. */
uint32_t tree_walk_first(struct tree_walk *walk, const struct tree *tree, uint32_t top);
uint32_t tree_walk_next(struct tree_walk *walk);

/* The greatest depth below a node. */
size_t tree_walk_depth(const struct tree *tree, uint32_t top);
/* Frames of all paths that have samples, if each is written in full. */
uint64_t tree_walk_frames(const struct tree *tree, uint32_t metric);
