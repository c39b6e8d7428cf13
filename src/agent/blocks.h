/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Sampled blocks of memory that are not freed yet, by address. If all allocations are counted, this table is as large
 * as the program's own use of the heap allows, and each allocation and each free looks into it. So most of their cost is
 * how much of the CPU's caches it takes: an entry has 24 bytes, and blocks that are neighbours in memory, which are
 * mostly used together, are neighbours in the table.
 */
#include <stdbool.h>
#include <stdint.h>

/* A sampled block of memory. */
struct heap_block {
	uint64_t address;
	uint64_t bytes;       /* that it stands for, */
	uint32_t calls, site; /* and calls */
	uint64_t ticks;       /* how its life began: agent/heap.c */
};

/* An entry has no room for all large numbers: these return the largest one that it can have, and is not more. Numbers
   of bytes below 2^33, and of calls below 2^15, are as they are. */
uint64_t blocks_bytes(uint64_t bytes);
uint32_t blocks_calls(uint64_t calls);

/* Brings the place of a block into the CPU's cache. */
void blocks_prefetch(const void *address);
/* Adds a block, whose numbers an entry can have. *old gets one that was at the same address, whose end was missed; or
   its address is 0. Returns false if there is no room. */
bool blocks_add(const struct heap_block *block, struct heap_block *old);
/* Takes a block out. Returns whether it was there. */
bool blocks_take(const void *address, struct heap_block *out);
/* In a forked child: it has allocated nothing. */
void blocks_after_fork(void);
