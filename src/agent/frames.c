/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/frames.h"

uint32_t scratch_take(struct agent_thread *t)
{
	uint32_t chunk = arena_take(agent.arena);
	if (!chunk)
		return 0;
	struct arena_chunk *head = arena_at(agent.arena, chunk);
	atomic_store(&head->next, atomic_load(&t->shared.scratch));
	atomic_store(&t->shared.scratch, chunk);
	return chunk;
}

bool frames_grow(struct agent_thread *t, struct agent_frames *list)
{
	uint32_t chunk = list->chunk_count < FRAMES_CHUNKS ? scratch_take(t) : 0;
	if (chunk)
		list->chunks[list->chunk_count++] = chunk;
	return chunk;
}
