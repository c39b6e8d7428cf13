/* SPDX-License-Identifier: Apache-2.0 */
#include "safe/arena.h"

#define CHUNK(head) ((uint32_t)(head))
#define TAGGED(tag_of, chunk) ((((tag_of) >> 32) + 1) << 32 | (chunk))

static uint32_t chunk_count(const struct arena_header *arena)
{
	return (uint32_t)(arena->size >> ARENA_CHUNK_BITS);
}

void arena_format(struct arena_header *arena, uint64_t size, uint32_t metrics)
{
	arena->version = ARENA_VERSION;
	arena->metrics = metrics;
	arena->size = size;
	arena->fresh = 1;
	arena->magic = ARENA_MAGIC;
}

bool arena_is_sane(const struct arena_header *arena, uint64_t size)
{
	return size >= 2 * ARENA_CHUNK && arena->magic == ARENA_MAGIC &&
	       arena->version == ARENA_VERSION && arena->size == size && size % ARENA_CHUNK == 0 &&
	       size / 8 <= UINT32_MAX && /* references to nodes count words */
	       arena->metrics >= 1 && arena->metrics <= ARENA_METRICS_MAX;
}

/* The upper half of free_chunks is a tag that changes with every exchange. Without it, a head that was
   taken and given back meanwhile would be mistaken for the one that was read (the ABA problem). */
static uint32_t take_returned(struct arena_header *arena)
{
	uint64_t head = atomic_load(&arena->free_chunks);
	while (CHUNK(head)) {
		if (CHUNK(head) >= chunk_count(arena))
			return 0;
		struct arena_chunk *chunk = arena_at(arena, CHUNK(head));
		uint64_t next = TAGGED(head, atomic_load(&chunk->next));
		if (atomic_compare_exchange_weak(&arena->free_chunks, &head, next))
			return CHUNK(head);
	}
	return 0;
}

static uint32_t take_fresh(struct arena_header *arena)
{
	uint32_t fresh = atomic_load(&arena->fresh);
	do {
		if (fresh >= chunk_count(arena))
			return 0;
	} while (!atomic_compare_exchange_weak(&arena->fresh, &fresh, fresh + 1));
	return fresh;
}

uint32_t arena_take(struct arena_header *arena)
{
	uint32_t number = take_returned(arena);
	if (!number)
		number = take_fresh(arena);
	if (number) {
		struct arena_chunk *chunk = arena_at(arena, number);
		atomic_store(&chunk->next, 0);
		atomic_store(&chunk->used, sizeof *chunk);
	}
	return number;
}

void arena_give(struct arena_header *arena, uint32_t first)
{
	/* A target may have overwritten the list, so it may lead anywhere or in a circle. */
	for (uint32_t left = chunk_count(arena); first && first < chunk_count(arena) && left;
	     left--) {
		struct arena_chunk *chunk = arena_at(arena, first);
		uint32_t after = atomic_load(&chunk->next);
		uint64_t head = atomic_load(&arena->free_chunks);
		do
			atomic_store(&chunk->next, CHUNK(head));
		while (!atomic_compare_exchange_weak(&arena->free_chunks, &head,
						     TAGGED(head, first)));
		first = after;
	}
}

uint32_t arena_take_times(struct arena_header *arena)
{
	uint32_t chunk = 0;
	if (atomic_fetch_add(&arena->times, 1) < arena->times_max)
		chunk = arena_take(arena);
	if (!chunk)
		atomic_fetch_sub(&arena->times, 1);
	return chunk;
}

void arena_give_times(struct arena_header *arena, uint32_t chunk)
{
	struct arena_chunk *head = arena_at(arena, chunk);
	atomic_store(&head->next, 0);
	arena_give(arena, chunk);
	atomic_fetch_sub(&arena->times, 1);
}

static void give_time_line(struct arena_header *arena, uint32_t first)
{
	for (uint32_t left = chunk_count(arena); first && first < chunk_count(arena) && left;
	     left--) {
		struct arena_chunk *chunk = arena_at(arena, first);
		uint32_t after = atomic_load(&chunk->next);
		arena_give_times(arena, first);
		first = after;
	}
}

static struct arena_thread *take_free_record(struct arena_header *arena)
{
	uint32_t number = atomic_load(&arena->threads);
	for (uint32_t left = chunk_count(arena); number && number < chunk_count(arena) && left;
	     left--) {
		struct arena_thread *thread = arena_at(arena, number);
		uint32_t state = ARENA_FREE;
		if (atomic_load_explicit(&thread->state, memory_order_relaxed) == ARENA_FREE &&
		    !atomic_load_explicit(&thread->timer, memory_order_relaxed) &&
		    atomic_compare_exchange_strong(&thread->state, &state, ARENA_TAKEN))
			return thread;
		number = atomic_load(&thread->chunk.next);
	}
	return NULL;
}

static struct arena_thread *take_new_record(struct arena_header *arena)
{
	uint32_t number = arena_take(arena);
	if (!number)
		return NULL;
	struct arena_thread *thread = arena_at(arena, number);
	thread->generation = 0;
	atomic_store(&thread->state, ARENA_TAKEN);
	uint32_t head = atomic_load(&arena->threads);
	do
		atomic_store(&thread->chunk.next, head);
	while (!atomic_compare_exchange_weak(&arena->threads, &head, number));
	return thread;
}

struct arena_thread *arena_thread_take(struct arena_header *arena)
{
	struct arena_thread *thread = take_free_record(arena);
	if (!thread)
		thread = take_new_record(arena);
	if (!thread)
		return NULL;
	thread->generation++;
	thread->process = thread->parent = thread->tid = 0;
	thread->nodes = thread->scratch = thread->times = thread->timer = thread->marks = 0;
	thread->trails = thread->trail_chunks = 0;
	thread->list_place = 0;
	thread->stack_top = thread->handler_stack = thread->start_ns = 0;
	thread->cpu_start_ns = thread->cpu_ns = 0;
	thread->weight = thread->ticks = thread->walked = thread->reused = 0;
	thread->lost = thread->untimed = 0;
	thread->moved = thread->waited_ns = thread->end_ns = thread->wait.since = 0;
	for (int i = 0; i < ARENA_METRICS_MAX; i++)
		thread->samples[i] = 0;
	for (int i = 0; i < ARENA_COPIES; i++)
		thread->copies[i] = 0;
	return thread;
}

void arena_thread_free(struct arena_header *arena, struct arena_thread *thread)
{
	arena_give(arena, atomic_exchange(&thread->nodes, 0));
	arena_give(arena, atomic_exchange(&thread->scratch, 0));
	give_time_line(arena, atomic_exchange(&thread->times, 0));
	arena_give(arena, atomic_exchange(&thread->trails, 0));
	for (int i = 0; i < ARENA_COPIES; i++)
		if (atomic_load_explicit(&thread->copies[i], memory_order_relaxed))
			arena_give(arena, atomic_exchange(&thread->copies[i], 0));
	atomic_store(&thread->state, ARENA_FREE);
}
