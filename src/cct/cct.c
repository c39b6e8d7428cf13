/* SPDX-License-Identifier: Apache-2.0 */
#include "cct/cct.h"

/* Odd, so that different keys have different ranks. */
#define RANK(key) ((key)*0x9e3779b97f4a7c15u)

static uint32_t node_new(struct cct *t, uint32_t parent, uint64_t key)
{
	struct arena_chunk *chunk = arena_at(t->arena, t->last);
	uint32_t used = atomic_load_explicit(&chunk->used, memory_order_relaxed);
	if (used + t->node_size > ARENA_CHUNK) {
		uint32_t more = arena_take(t->arena);
		if (!more)
			return 0;
		atomic_store_explicit(&chunk->next, more, memory_order_release);
		t->last = more;
		chunk = arena_at(t->arena, more);
		used = sizeof *chunk;
	}
	uint64_t at = ((uint64_t)t->last << ARENA_CHUNK_BITS) + used;
	struct cct_node *node = (struct cct_node *)((char *)t->arena + at);
	*node = (struct cct_node){.key = key, .parent = parent};
	for (uint32_t i = 0; i < t->arena->metrics; i++)
		atomic_store_explicit(&cct_values(node)[i], 0, memory_order_relaxed);
	atomic_store_explicit(&chunk->used, used + t->node_size, memory_order_release);
	return (uint32_t)(at / 8);
}

bool cct_begin(struct cct *t, struct arena_header *arena, struct arena_thread *thread)
{
	uint32_t first = arena_take(arena);
	*t = (struct cct){
		.arena = arena,
		.node_size = (uint32_t)(sizeof(struct cct_node) + 8 * arena->metrics),
		.last = first,
	};
	if (!first)
		return false;
	t->root = node_new(t, 0, 0);
	atomic_store_explicit(&thread->nodes, first, memory_order_release);
	return true;
}

/* Where the child is linked, or would be. */
static uint32_t *child_link(const struct cct *t, uint32_t parent, uint64_t key)
{
	uint32_t *link = &cct_node(t, parent)->child;
	while (*link) {
		struct cct_node *node = cct_node(t, *link);
		if (node->key == key)
			break;
		link = RANK(key) < RANK(node->key) ? &node->left : &node->right;
	}
	return link;
}

uint32_t cct_find(const struct cct *t, uint32_t parent, uint64_t key)
{
	return *child_link(t, parent, key);
}

uint32_t cct_child(struct cct *t, uint32_t parent, uint64_t key)
{
	uint32_t *link = child_link(t, parent, key);
	if (!*link)
		*link = node_new(t, parent, key);
	return *link;
}
