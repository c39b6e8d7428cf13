/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The calling context tree of one thread, in an arena. A node is a frame in
 * the context of its callers, with a value for each metric; two call sites of
 * a procedure are two nodes.
 *
 *    struct cct_node | uint64_t values[metrics]      one after another in the thread's chunks
 *
 * A node's key is what the frame is, and the same in every process of a
 * recording:
 *
 *    kind (1 bit) | module (15) | address in the module (48)
 *
 * The children of a node are a binary tree ordered by a hash of their keys, so
 * that it is balanced whatever the keys are and grows without moving anything.
 */
#include <stdbool.h>
#include <stdint.h>
#include "safe/arena.h"

/* References are in units of 8 bytes from the arena's start; 0 is none. */
struct cct_node {
	uint64_t key;
	uint32_t parent;
	uint32_t child;       /* root of the children's tree */
	uint32_t left, right; /* siblings */
};

#define CCT_ADDRESS_BITS 48
#define CCT_ADDRESS ((1ull << CCT_ADDRESS_BITS) - 1)
#define CCT_CALL (1ull << 63) /* the address is a return address; else the instruction itself */

/* Module 0 is code of no module; its addresses are those of the process. Keys of module
   CCT_PARTIAL are no frames: they stand right under the root where a path does not reach its root, and the
   address is the reason (enum walk_end). */
#define CCT_PARTIAL 0x7fffull
/* Set in a key of a module: the frame runs interpreted functions. No module has such addresses. */
#define CCT_HOST (1ull << 47)
/* Module CCT_KERNEL is the kernel, where no frame of the program is left. */
#define CCT_KERNEL 0x7ffeull

/* Module CCT_SCRIPT is an interpreted function: the address has its copy in the arena (struct
   arena_script), as a reference, and the instruction, by number. */
#define CCT_SCRIPT 0x7ffdull
#define CCT_SCRIPT_BITS 16
#define CCT_SCRIPT_UNIT ((1ull << CCT_SCRIPT_BITS) - 1)

/* Module CCT_OBJECT is no code, but what a thread does or waits for: the address has what it is done to (struct
   arena_object), as a reference or 0, and what is done (enum arena_act). */
#define CCT_OBJECT 0x7ffcull
#define CCT_OBJECT_BITS 8
#define CCT_OBJECT_ACT ((1ull << CCT_OBJECT_BITS) - 1)

static inline uint64_t cct_key(bool call, uint32_t module, uint64_t address)
{
	return (call ? CCT_CALL : 0) | (uint64_t)module << CCT_ADDRESS_BITS |
	       (address & CCT_ADDRESS);
}
static inline uint32_t cct_key_module(uint64_t key)
{
	return (uint32_t)(key >> CCT_ADDRESS_BITS) & 0x7fff;
}

struct cct {
	struct arena_header *arena;
	uint32_t node_size; /* bytes, values included */
	uint32_t last;      /* chunk that nodes are taken from */
	uint32_t root;
};

static inline struct cct_node *cct_node(const struct cct *t, uint32_t ref)
{
	return (struct cct_node *)((char *)t->arena + (uint64_t)ref * 8);
}
static inline _Atomic uint64_t *cct_values(struct cct_node *node)
{
	return (_Atomic uint64_t *)(node + 1);
}

/* Starts an empty tree for a record; false where there is no room. */
bool cct_begin(struct cct *tree, struct arena_header *arena, struct arena_thread *thread);
/* The child of `parent` with this key, made where there was none; 0 where there is no room. */
uint32_t cct_child(struct cct *tree, uint32_t parent, uint64_t key);
/* The child if there is one, else 0. */
uint32_t cct_find(const struct cct *tree, uint32_t parent, uint64_t key);

/* For readers (the collector): visits every node of a record's tree, parents before children,
   whatever the memory holds. `index` counts the nodes from 0 (the root); `parent` is the index of
   the parent. Returns false where the memory is no tree (what was visited until then is good).
   `thread` must be a chunk of the arena of `size` bytes. */
bool cct_read(const struct arena_header *arena, uint64_t size, const struct arena_thread *thread,
	      void (*visit)(void *context, uint32_t index, uint32_t parent, uint64_t key,
			    const uint64_t *values),
	      void *context);
