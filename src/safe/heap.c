/* SPDX-License-Identifier: Apache-2.0 */
#include "safe/heap.h"

static struct arena_heap *take_free_heap(struct arena_header *arena, int32_t process)
{
	uint32_t count = (uint32_t)(arena->size >> ARENA_CHUNK_BITS), left = count;
	for (uint32_t number = atomic_load(&arena->heaps); number && number < count && left;
	     left--) {
		struct arena_heap *heap = arena_at(arena, number);
		int32_t nobody = 0;
		if (atomic_compare_exchange_strong(&heap->process, &nobody, process))
			return heap;
		number = atomic_load(&heap->chunk.next);
	}
	return NULL;
}

static struct arena_heap *take_new_heap(struct arena_header *arena, int32_t process)
{
	uint32_t number = arena_take(arena);
	if (!number)
		return NULL;
	struct arena_heap *heap = arena_at(arena, number);
	atomic_store(&heap->process, process);
	uint32_t head = atomic_load(&arena->heaps);
	do
		atomic_store(&heap->chunk.next, head);
	while (!atomic_compare_exchange_weak(&arena->heaps, &head, number));
	return heap;
}

struct arena_heap *arena_heap_take(struct arena_header *arena, int32_t process)
{
	struct arena_heap *heap = take_free_heap(arena, process);
	if (!heap)
		heap = take_new_heap(arena, process);
	if (!heap)
		return NULL;
	heap->sites = heap->serial = heap->at_peak = 0;
	heap->live = heap->peak = heap->untracked = 0;
	heap->other[0] = 0;
	return heap;
}

void arena_heap_free(struct arena_header *arena, struct arena_heap *heap)
{
	arena_give(arena, atomic_exchange(&heap->sites, 0));
	atomic_store(&heap->process, 0);
}

/* Puts an empty chunk in front of the full one `before`. Another thread may do the same: then one of the two
   chunks remains nearly empty. */
static bool add_chunk(struct arena_header *arena, struct arena_heap *heap, uint32_t before)
{
	uint32_t number = arena_take(arena);
	if (!number)
		return false;
	struct arena_chunk *chunk = arena_at(arena, number);
	atomic_store(&chunk->used, sizeof(struct arena_site)); /* so that they are aligned */
	do
		atomic_store(&chunk->next, before);
	while (!atomic_compare_exchange_weak(&heap->sites, &before, number));
	return true;
}

uint32_t arena_site_take(struct arena_header *arena, struct arena_heap *heap)
{
	for (;;) {
		uint32_t number = atomic_load(&heap->sites);
		struct arena_chunk *chunk = number ? arena_at(arena, number) : NULL;
		uint32_t at = chunk ? atomic_fetch_add(&chunk->used, sizeof(struct arena_site)) : 0;
		if (chunk && at + sizeof(struct arena_site) <= ARENA_CHUNK) {
			uint64_t offset = ((uint64_t)number << ARENA_CHUNK_BITS) + at;
			*arena_site(arena, offset / 8) = (struct arena_site){
				.serial = atomic_load(&heap->serial)};
			return (uint32_t)(offset / 8);
		}
		if (chunk)
			atomic_store(&chunk->used, ARENA_CHUNK);
		if (!add_chunk(arena, heap, number))
			return 0;
	}
}
