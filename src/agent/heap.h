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
	int64_t left;    /* bytes until the next sample */
	uint64_t events; /* allocations and frees */
	bool begun;
	bool busy;       /* we are at work: the program's handlers may interrupt us, and allocate */
	uint64_t period; /* mean bytes from sample to sample */
	uint64_t random;
	uint64_t last_ns; /* when the last sample was */
};
extern AGENT_OWN struct heap_own heap_own;
/* Not 0 if some block whose address has this hash is sampled. */
extern uint8_t heap_filter[1u << HEAP_FILTER_BITS] __attribute__((visibility("hidden")));

static inline uint64_t heap_hash(const void *block)
{
	return ((uint64_t)block >> 4) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Counts down. Whether the allocation may have a sample: then heap_note is called for its memory. */
static inline bool heap_count(size_t size)
{
	heap_own.events++;
	heap_own.left -= (int64_t)(size < INT64_MAX / 2 ? size : INT64_MAX / 2) + HEAP_BESIDES;
	return __builtin_expect(heap_own.left < 0, 0);
}

/* Whether memory that is about to be freed may belong to a sample: then heap_forget is called for it. */
static inline bool heap_may_know(const void *block)
{
	heap_own.events++;
	return __builtin_expect(heap_filter[heap_hash(block) >> (64 - HEAP_FILTER_BITS)], 0);
}

/* A sampled block of memory. */
struct heap_block {
	uint64_t address;
	uint64_t bytes; /* that it stands for, and calls */
	uint64_t event; /* tells the allocation: thread and number */
	uint32_t site, calls;
};

/* alloc.c, if it is there: the file whose malloc the program calls instead of ours; NULL: it calls ours. */
const char *alloc_other(void) __attribute__((weak, visibility("hidden")));

void heap_note(void *block, size_t size);
/* Returns whether it was known. `out` gets it, for heap_keep. */
bool heap_forget(void *block, struct heap_block *out);
/* The memory was not freed after all. */
void heap_keep(const struct heap_block *block);
