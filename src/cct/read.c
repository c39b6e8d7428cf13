/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's reading of a tree that its owner may be writing, or may have written over. */
#include "cct/cct.h"

#include <stdlib.h>

struct reader {
	const struct arena_header *arena;
	uint32_t chunks, metrics, node_size, per_chunk;
	uint32_t *base; /* for each chunk the index of its first node + 1; 0: not visited */
};

/* The index of the node that a reference means, if it was visited already. */
static bool find_index(const struct reader *r, uint32_t ref, uint32_t visited, uint32_t *index)
{
	uint64_t at = (uint64_t)ref * 8;
	uint64_t chunk = at >> ARENA_CHUNK_BITS;
	if (chunk >= r->chunks || !r->base[chunk])
		return false;
	uint32_t offset = (uint32_t)(at & (ARENA_CHUNK - 1));
	if (offset < sizeof(struct arena_chunk) ||
	    (offset - sizeof(struct arena_chunk)) % r->node_size)
		return false;
	uint32_t slot = (uint32_t)((offset - sizeof(struct arena_chunk)) / r->node_size);
	*index = r->base[chunk] - 1 + slot;
	return slot < r->per_chunk && *index < visited;
}

static bool read_chunks(struct reader *r, uint32_t chunk,
			void (*visit)(void *, uint32_t, uint32_t, uint64_t, const uint64_t *),
			void *context)
{
	uint32_t visited = 0;
	while (chunk) {
		if (chunk >= r->chunks || r->base[chunk])
			return false;
		struct arena_chunk *head = arena_at(r->arena, chunk);
		uint32_t used = atomic_load_explicit(&head->used, memory_order_acquire);
		if (used > ARENA_CHUNK)
			return false;
		r->base[chunk] = visited + 1;
		for (uint32_t at = sizeof *head; at + r->node_size <= used; at += r->node_size) {
			struct cct_node *node = (struct cct_node *)((char *)head + at);
			uint64_t values[ARENA_METRICS_MAX];
			uint32_t parent = 0;
			if (visited ? !find_index(r, node->parent, visited, &parent) : node->parent)
				return false;
			for (uint32_t i = 0; i < r->metrics; i++)
				values[i] = atomic_load_explicit(&cct_values(node)[i],
								 memory_order_relaxed);
			visit(context, visited++, parent, node->key, values);
		}
		chunk = atomic_load_explicit(&head->next, memory_order_acquire);
	}
	return true;
}

bool cct_read(const struct arena_header *arena, uint64_t size, const struct arena_thread *thread,
	      void (*visit)(void *context, uint32_t index, uint32_t parent, uint64_t key,
			    const uint64_t *values),
	      void *context)
{
	struct reader r = {.arena = arena, .chunks = (uint32_t)(size >> ARENA_CHUNK_BITS)};
	r.metrics = *(const volatile uint32_t *)&arena->metrics;
	if (!r.metrics || r.metrics > ARENA_METRICS_MAX)
		return false;
	r.node_size = (uint32_t)(sizeof(struct cct_node) + 8 * r.metrics);
	r.per_chunk = (uint32_t)(ARENA_CHUNK - sizeof(struct arena_chunk)) / r.node_size;
	r.base = calloc(r.chunks ? r.chunks : 1, sizeof *r.base);
	if (!r.base)
		return false;
	bool whole = read_chunks(&r, atomic_load(&((struct arena_thread *)thread)->nodes), visit,
				 context);
	free(r.base);
	return whole;
}
