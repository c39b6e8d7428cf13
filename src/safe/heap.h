/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What an agent counts of allocations, in the arena. The agent (agent/heap.c) writes it, the collector
 * (collect/agents/heaps.c) reads it.
 *
 * A site is a call path that allocates. Its numbers change when its memory is freed, and that may be done by
 * another thread, after the one that allocated has ended. So they are not in the thread's tree: the node has
 * a reference to the site.
 *
 *    header->heaps -> struct arena_heap -> struct arena_heap …    one for each process
 *                        `sites` -> chunk -> chunk …              struct arena_site, one after another
 */
#include "safe/arena.h"

/* Numbers are estimates for all allocations, if only some are sampled. The first eight are for those who allocate,
   the others for those who free: each has a line of the CPU's cache. */
struct arena_site {
	/* Only the thread that allocates adds to these. */
	_Atomic uint64_t bytes, calls;
	_Atomic uint64_t wasted; /* bytes that the blocks have more than was asked for */
	_Atomic uint64_t grown;  /* calls of realloc for more than the block had */
	_Atomic uint64_t mapped; /* bytes that the program has mapped itself */
	_Atomic uint64_t unmapped;
	/* Bytes that were not freed when the process had the most, if `serial` is the heap's. Else nothing has
	   changed since then. */
	_Atomic uint64_t peak;
	_Atomic uint32_t serial;
	uint32_t thread; /* a number of the thread that allocates: agent/heap.h */

	/* Of memory that the same thread has freed. Only this thread adds to these. */
	_Atomic uint64_t freed;     /* bytes */
	_Atomic uint64_t ended;     /* calls */
	_Atomic uint64_t lifetime;  /* of these, in ticks: safe/ticks.h */
	_Atomic uint64_t brief;     /* of these, those that lived for less than wire_heap.brief */
	_Atomic uint64_t temporary; /* of these, those that were freed at once */
	/* Of memory that other threads have freed. */
	_Atomic uint64_t freed_elsewhere, ended_elsewhere, lifetime_elsewhere;
};
_Static_assert(sizeof(struct arena_site) == 128, "two lines of the cache");

#define HEAP_NAME 512u

struct arena_heap {
	struct arena_chunk chunk; /* next: of the heap that was linked before this one */
	_Atomic int32_t process;  /* 0: nobody's, to be taken again */
	_Atomic uint32_t
		sites; /* the chunk that sites are taken from; its `next` is the one before */
	_Atomic uint64_t live, peak;
	_Atomic uint32_t
		serial; /* raised when memory is freed for the first time after a new peak */
	_Atomic uint32_t at_peak;   /* there was never more than now */
	_Atomic uint64_t untracked; /* samples for which there was no memory */
	char other
		[HEAP_NAME]; /* the file whose malloc the program calls instead of ours; "": none */
};

/* References are in units of 8 bytes from the arena's start, as in cct/cct.h. */
static inline struct arena_site *arena_site(const struct arena_header *arena, uint64_t reference)
{
	return (struct arena_site *)((char *)arena + reference * 8);
}

/* Bytes of a site that are not freed. */
static inline uint64_t arena_site_live(const struct arena_site *site)
{
	return atomic_load_explicit(&site->bytes, memory_order_relaxed) -
	       atomic_load_explicit(&site->freed, memory_order_relaxed) -
	       atomic_load_explicit(&site->freed_elsewhere, memory_order_relaxed);
}

/* Takes a heap for a process; NULL if the arena is full. */
struct arena_heap *arena_heap_take(struct arena_header *arena, int32_t process);
/* Gives back all chunks of a heap. */
void arena_heap_free(struct arena_header *arena, struct arena_heap *heap);
/* Takes a site, with all numbers zero. Returns a reference; 0 if the arena is full. */
uint32_t arena_site_take(struct arena_header *arena, struct arena_heap *heap);
