/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Allocations: which of them are sampled, and what becomes of their memory. alloc.c uses it for each call of
 * malloc, free and so on.
 *
 * All the work for an allocation that is not sampled is to count down bytes; for memory that is freed, it is one
 * look into a small table (heap_filter).
 */
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "agent/blocks.h"

#define HEAP_FILTER_BITS 17
/* Added to each size: also an allocation of 0 bytes takes memory, and must have a chance of a sample. */
#define HEAP_BESIDES 16

/* Of the calling thread. */
struct heap_own {
	uint64_t left; /* bytes until the next sample */
	/* The last sampled block, if nothing sampled was freed since, and `left` after it. It is temporary if
	   it is freed while both are still so. */
	uint64_t last, last_left;
	bool begun;
	uint32_t
		number; /* no other thread of the process has the same; 0: it has allocated nothing */
	uint64_t period; /* mean bytes from sample to sample */
	uint64_t random;
	uint64_t last_ns; /* when the last sample was */
	/* Of paths that free: how many there were, how many frees have none until the next one, how many the next one
	   stands for, when the last one was. */
	uint64_t frees, free_rest, free_weight, free_ticks;
};
extern AGENT_OWN struct heap_own heap_own;
/* A bit is set if some block is sampled whose address has this place. Neighbours in memory have neighbouring bits,
   so that the bits for what a program uses are in the CPU's cache. */
extern uint64_t heap_filter[(1u << HEAP_FILTER_BITS) / 64] __attribute__((visibility("hidden")));
/* Where all allocations are sampled, all blocks have the same place. */
extern uint64_t heap_filter_mask __attribute__((visibility("hidden")));

static inline uint64_t heap_filter_place(const void *block)
{
	return (uint64_t)block >> 4 & heap_filter_mask;
}

/* Counts down. Whether the allocation may have a sample: then heap_note is called for its memory. */
static inline bool heap_count(size_t size)
{
	uint64_t left;
	if (__builtin_expect(
		    __builtin_sub_overflow(heap_own.left, (uint64_t)size + HEAP_BESIDES, &left), 0))
		return true;
	heap_own.left = left;
	return false;
}

/* Whether memory that is about to be freed may belong to a sample. */
static inline bool heap_may_know(const void *block)
{
	uint64_t place = heap_filter_place(block);
	return __builtin_expect(heap_filter[place / 64] >> (place % 64) & 1, 0);
}

/* Sees to it that heap_may_know is true for this block from now on. */
void heap_always_ask(const void *block);

/* alloc.c: the file whose malloc the program calls instead of ours; NULL: it calls ours. */
const char *alloc_other(void);
/* alloc.c: looks who the allocator is. Called once, before the program begins. */
void alloc_start(void);
/* alloc.c: how many bytes a block has; 0 if its allocator does not tell. */
size_t alloc_usable(void *block);
/* alloc.c: whether this address is in the allocator's code. */
bool alloc_has_code(const void *address);

/* maps.c: memory that the program maps by itself. */
void maps_start(void);
void maps_after_fork(void);

/* What this process counts; NULL if there is no room. */
struct arena_heap *heap_here(void);

/* ---- allocations ---- */

/* Whether an allocation is counted now: then heap_note follows. NULL: it is not. */
struct agent_thread *heap_enter(void);
/* The caller has stored its registers (cpu_capture); this is its PC. `grown`: realloc had to find more memory. */
void heap_note(struct agent_thread *t, uint64_t pc, void *block, size_t size, bool grown);

/* ---- memory that is freed ---- */

/* A block that is about to be freed, and not in the table of blocks any more. */
struct heap_taken {
	struct heap_block block;
	bool temporary;
};

/* Whether memory that is freed is counted now: then heap_free or heap_freed follows. NULL: it is not. */
struct agent_thread *heap_enter_free(void);
/* Counts what is known of a block that the caller is about to free. */
void heap_free(struct agent_thread *t, uint64_t pc, void *block);

/* The same in two steps, for realloc. Returns whether the block is known; */
bool heap_take(void *block, struct heap_taken *out);
/* then it was freed, */
void heap_freed(struct agent_thread *t, uint64_t pc, const struct heap_taken *taken);
/* or it was not. */
void heap_keep(const struct heap_taken *taken);
