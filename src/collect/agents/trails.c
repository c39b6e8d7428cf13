/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/agents/trails.h"

#include "base/err.h"
#include "cct/cct.h"
#include "collect/agents/arenas.h"
#include "collect/agents/state.h"
#include "harvest/harvest.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "profile/profile.h"

/* A trail that the target may be overwriting: everything is read once. */
static struct err *keep(struct agents *agents, const volatile struct arena_trail *trail,
			uint32_t count)
{
	struct recording *r = agents->recording;
	uint64_t begin = trail->begin;
	struct profile_edge edge = {.begin = begin & CCT_ADDRESS, .count = 1};
	struct err *e = harvest_module(r, &r->harvest, begin, &edge.begin_module);
	if (!e && edge.begin_module)
		e = profile_edge(r->harvest.profile, &edge);
	for (uint32_t i = 0; !e && edge.begin_module && i < count; i++) {
		uint64_t from = trail->edges[i].from, to = trail->edges[i].to;
		e = harvest_module(r, &r->harvest, from, &edge.module);
		edge.from = from & CCT_ADDRESS;
		edge.to = to & CCT_ADDRESS;
		if (!e && edge.module)
			e = profile_edge(r->harvest.profile, &edge);
	}
	return e;
}

/* Takes what is in a chunk from `at` on. Returns where the rest begins. */
static uint32_t take_chunk(struct agents *agents, const char *chunk, uint32_t at, uint32_t used)
{
	const struct arena_trail *trail;
	while (used <= ARENA_CHUNK && at + sizeof *trail <= used) {
		trail = (const void *)(chunk + at);
		uint32_t count = *(const volatile uint32_t *)&trail->edge_count;
		size_t size = sizeof *trail + (size_t)count * sizeof *trail->edges;
		if (count > ARENA_TRAIL_EDGES || size > used - at)
			return used;
		recording_note_error(agents->recording, keep(agents, trail, count));
		at += (uint32_t)size;
	}
	return at;
}

void trails_take(struct agents *agents, struct arena *a, struct thread *t, struct arena_thread *r)
{
	uint64_t left = a->size >> ARENA_CHUNK_BITS; /* a target may have overwritten the list */
	if (!agents->recording->options.follow)
		return;
	for (; left; left--) {
		uint32_t first = atomic_load_explicit(&r->trails, memory_order_acquire);
		struct arena_chunk *chunk = (void *)arena_record(a, first);
		if (!chunk)
			return;
		/* If there is a next one, nothing comes into this one any more. */
		uint32_t next = atomic_load_explicit(&chunk->next, memory_order_acquire);
		uint32_t used = atomic_load_explicit(&chunk->used, memory_order_acquire);
		uint32_t at = t->trails_read ? t->trails_read : sizeof *chunk;
		t->trails_read = take_chunk(agents, (const char *)chunk, at, used);
		if (!next)
			return;
		atomic_store(&r->trails, next);
		atomic_store(&chunk->next, 0);
		arena_give(a->header, first);
		atomic_fetch_sub(&r->trail_chunks, 1);
		t->trails_read = 0;
	}
}

void trails_take_all(struct agents *agents)
{
	for (struct arena *a = agents->arenas; agents->recording->options.follow && a; a = a->next)
		for (size_t i = 0; a->header && i < a->thread_count; i++) {
			struct thread *t = &a->threads[i];
			struct arena_thread *r = arena_record(a, t->chunk);
			if (r && r->generation == t->generation)
				trails_take(agents, a, t, r);
		}
}
