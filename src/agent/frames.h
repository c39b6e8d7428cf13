/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Lists of frames in scratch chunks of the arena. sample.c and script.c use them. */
#include "agent/agent.h"

#define INLINE static inline __attribute__((always_inline))

INLINE struct agent_frame *frame_at(const struct agent_frames *list, uint32_t index)
{
	struct agent_frame *first = arena_at(agent.arena, list->chunks[index / FRAMES_PER_CHUNK]);
	return first + 1 + index % FRAMES_PER_CHUNK;
}

/* Takes a chunk that is given back with the thread's record; 0: there is no room. */
uint32_t scratch_take(struct agent_thread *t);
/* Makes room for more frames; false: there is none. */
bool frames_grow(struct agent_thread *t, struct agent_frames *list);

INLINE struct agent_frame *frames_add(struct agent_thread *t, struct agent_frames *list)
{
	if (__builtin_expect(list->count == list->chunk_count * FRAMES_PER_CHUNK, 0) &&
	    !frames_grow(t, list))
		return NULL;
	return frame_at(list, list->count++);
}
