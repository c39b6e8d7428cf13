/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The trees of two builds as one. Nodes with equal scopes below equal nodes are the same: so the tree
 * comes in. But one build may have a level that the other has not: a loop around what was there
 * before, a function that was taken out of another, a call that a compiler turned into a jump. What is
 * below such a level is the same as what is below its parent in the other build. The essay is in
 * align.c.
 */
#include <stdint.h>

struct err;
struct tree;

/* Makes another tree, with the same samples. `own`: by node of the draft, its samples in the old and in
   the new runs. `places` gets the node of the new tree for each one of the draft. */
struct err *align_make(const struct tree *draft, const uint64_t (*own)[2], struct tree **out,
		       uint32_t *places);
