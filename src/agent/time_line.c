/* SPDX-License-Identifier: Apache-2.0 */
/* The time line: when each sample came, and in which node. The collector reads it now and then. If it is
   too late, the line has a gap, and the missing samples are counted. */
#include "agent/agent.h"

#include <time.h>

static struct arena_time *time_slot(struct agent_thread *t)
{
	struct arena_chunk *chunk = t->times ? arena_at(agent.arena, t->times) : NULL;
	uint32_t used = chunk ? atomic_load_explicit(&chunk->used, memory_order_relaxed) : 0;
	if (!chunk || used + sizeof(struct arena_time) > ARENA_CHUNK) {
		uint32_t more = arena_take_times(agent.arena);
		if (!more)
			return NULL;
		/* As soon as this is set, the collector may give the full chunk back. */
		atomic_store_explicit(chunk ? &chunk->next : &t->shared.times, more,
				      memory_order_release);
		t->times = more;
		used = sizeof *chunk;
	}
	return (struct arena_time *)((char *)arena_at(agent.arena, t->times) + used);
}

bool time_line_add(struct agent_thread *t, uint32_t node, uint64_t weight)
{
	struct arena_time *slot = time_slot(t);
	if (!slot)
		return false;
	*slot = (struct arena_time){agent_ns(CLOCK_MONOTONIC), node, (uint32_t)weight};
	struct arena_chunk *chunk = arena_at(agent.arena, t->times);
	uint32_t used = (uint32_t)((char *)(slot + 1) - (char *)chunk);
	atomic_store_explicit(&chunk->used, used, memory_order_release);
	return true;
}
