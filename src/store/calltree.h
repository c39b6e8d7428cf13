/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The call paths of an epoch in memory. Node 0 is the root; a node's parent has a smaller number. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/pack.h"

struct calltree {
	struct pack_node *nodes; /* [0] is the root */
	uint32_t count, room;
	uint32_t hashed; /* so many nodes have a slot; the others get one when that is needed */
	uint32_t *slots; /* numbers by hash; 0: free */
	size_t slot_room;
};

/* Empties it, but for the root; false without memory. */
bool calltree_clear(struct calltree *tree);
void calltree_free(struct calltree *tree);
/* The node that is this frame, made where there is none; UINT32_MAX without memory. */
uint32_t calltree_child(struct calltree *tree, const struct pack_node *node);
/* Appends nodes as they are; false without memory. */
bool calltree_append(struct calltree *tree, const struct pack_node *nodes, size_t count);
