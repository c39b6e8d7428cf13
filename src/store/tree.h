/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The call paths of an epoch in memory. Node 0 is the root; a node's parent has a smaller number. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/pack.h"

struct tree {
	struct pack_node *nodes; /* [0] is the root */
	uint32_t count, room;
	uint32_t *slots; /* numbers by hash; 0: free */
	size_t slot_room;
};

/* Empties it, but for the root; false without memory. */
bool tree_clear(struct tree *tree);
void tree_free(struct tree *tree);
/* The node that is this frame, made where there is none; UINT32_MAX without memory. */
uint32_t tree_child(struct tree *tree, const struct pack_node *node);
/* Forgets nodes from `count` on. */
void tree_cut(struct tree *tree, uint32_t count);
