/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Detail that long spans do not have. */
#include "store/reading.h"

struct folding {
	struct store *store;
	struct names names;
	struct made {
		struct made_slot *slots; /* a power of two */
		size_t count, room;
	} made; /* fold_jit.c: what was found out */
};

/* Code that was made at run time: the image of its group, and the address that its function has
   there. Other code stays what it is. */
struct err *fold_made(struct folding *folding, uint64_t *image, uint64_t *address);
/* The same for all call paths of a span, in the tree of its epoch, which is store->tree. */
struct err *fold_made_paths(struct folding *folding, struct segment *segment);
