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
	uint64_t period; /* mean bytes from sample to sample */
	uint64_t random;
	uint64_t last_ns; /* when the last sample was */
};
extern AGENT_OWN struct heap_own heap_own;
/* Not 0 if some block is sampled whose address has this place. */
extern uint8_t heap_filter[1u << HEAP_FILTER_BITS] __attribute__((visibility("hidden")));

static inline uint64_t heap_filter_place(const void *block)
{
	return (uint64_t)block >> 4 & ((UINT64_C(1) << HEAP_FILTER_BITS) - 1);
}

/* Counts down. Whether the allocation may have a sample: then heap_note is called for its memory. */
static inline bool heap_count(size_t size)
{
	uint64_t bytes = size + HEAP_BESIDES;
	if (__builtin_expect(heap_own.left <= bytes, 0))
		return true;
	heap_own.left -= bytes;
	return false;
}

/* Whether memory that is about to be freed may belong to a sample: then heap_forget is called for it. */
static inline bool heap_may_know(const void *block)
{
	return __builtin_expect(heap_filter[heap_filter_place(block)], 0);
}

/* Sees to it that heap_may_know is true for this block. */
static inline void heap_always_ask(const void *block)
{
	heap_filter[heap_filter_place(block)] = UINT8_MAX;
}

/* A sampled block of memory. */
struct heap_block {
	uint64_t address;
	uint64_t bytes; /* that it stands for, and calls */
	uint32_t site, calls;
};

/* alloc.c: the file whose malloc the program calls instead of ours; NULL: it calls ours. */
const char *alloc_other(void);

/* Whether an allocation is counted now: then heap_note follows. NULL: it is not. */
struct agent_thread *heap_enter(void);
/* The caller has stored its registers (cpu_capture); this is its PC. */
void heap_note(struct agent_thread *t, uint64_t pc, void *block, size_t size);
/* Returns whether it was known. `out` gets it, for heap_keep. */
bool heap_forget(void *block, struct heap_block *out);
/* The memory was not freed after all. */
void heap_keep(const struct heap_block *block);
