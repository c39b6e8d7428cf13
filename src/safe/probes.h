/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Probes that an agent puts into its own program (agent/probes.c), as the collector describes them, and what they count.
 * All of it is in the arena.
 *
 *    header->probes -> chunk -> chunk …          descriptions: struct arena_probe, one after another
 *    values[0], values[1] of a function's node   references to struct arena_probe_sums: of calls on the thread's own
 *                                                stack, and on other stacks
 *    slowest                                     references to struct arena_slowest, one for each description
 */
#include <stdatomic.h>
#include <stdint.h>

#include "safe/arena.h"

#define ARENA_PROBE_TIMES 320u /* buckets of a histogram, as in harvest/probes.h */
#define ARENA_PROBES_MAX 4096u

/* The island of a probe, and the block of memory that it is in. Word 0 of a block is the address of the agent's code. Word 0
   of an island is what that code gets in a register, or on the stack. The agent fills in both. */
#define ARENA_ISLAND_BYTES 128u
#define ARENA_JUMP_BYTES 32u
#define ARENA_LEAD_BYTES 20u
#define ARENA_STEPS 8u

#define ARENA_PROBE_EACH 509u       /* a prime: few programs repeat themselves after so many */
#define ARENA_PROBE_COST_MAX 10000u /* ns: what is longer is an interruption */

enum arena_probe_state {
	ARENA_PROBE_ASKED,
	ARENA_PROBE_READY, /* its island is there, but not the jump. The collector puts that into a running process */
	ARENA_PROBE_ON,
	ARENA_PROBE_NO_ROOM, /* the island's memory cannot be had */
	ARENA_PROBE_CHANGED, /* the code is not what the file has */
	ARENA_PROBE_FIXED,   /* the code cannot be changed */
};

struct arena_probe {
	uint64_t function; /* its first instruction */
	uint64_t at;       /* where the jump goes */
	uint64_t block, block_size;
	uint64_t island, body; /* body: where the function goes on in the island */
	uint32_t number;       /* in the collector's list of functions */
	uint16_t island_size;
	uint8_t window, length; /* bytes of `original`, and of `jump` */
	uint32_t wrapped; /* the agent has a function of this name: its calls are the program's */
	_Atomic uint32_t state;
	/* Set by the collector: calls are only counted, without path and time. */
	_Atomic uint32_t counted;
	uint8_t original[ARENA_JUMP_BYTES], jump[ARENA_JUMP_BYTES];
	/* What is before `at`. If somebody else has changed it, calls do not come there. */
	uint8_t lead_size, lead[ARENA_LEAD_BYTES];
	/* Where instructions of the window stand in the island, in bytes from their beginnings. */
	uint8_t step_count, step_from[ARENA_STEPS];
	uint16_t step_to[ARENA_STEPS];
	/* One of ARENA_PROBE_EACH calls is measured, on each thread: how many were, and how long the agent was at work when they
	   began. The collector sets them to 0. They are not beside what each call reads: all threads write here. */
	_Atomic uint64_t measured, measured_ns;
	uint8_t code[ARENA_ISLAND_BYTES];
	/* Reference to the sums of calls whose path is not known, because a handler made them while the agent was at
	   work; and of ends on another thread than the call. All threads add to them. */
	uint64_t sums;
	uint64_t slowest; /* reference to the slowest calls; 0: they are not wanted */
	/* Calls whose path and end are not known: there was no room, or the thread has no record. */
	_Atomic uint64_t unknown;
};
/* Whether what is before the jump is as it was, but for breakpoints: calls go on behind these. `now`: as many bytes. */
static inline bool arena_probe_leads(const struct arena_probe *probe, const uint8_t *now)
{
	for (unsigned i = 0; i < probe->lead_size && i < ARENA_LEAD_BYTES; i++) {
#if defined(__aarch64__)
		bool is_breakpoint = now[i | 3u] == 0xd4 && now[(i & ~3u) + 2] >> 5 == 1;
#else
		bool is_breakpoint = now[i] == 0xcc;
#endif
		if (now[i] != probe->lead[i] && !is_breakpoint)
			return false;
	}
	return true;
}

#define ARENA_PROBES_PER_CHUNK \
	((uint32_t)((ARENA_CHUNK - sizeof(struct arena_chunk)) / sizeof(struct arena_probe)))

struct arena_probe_sums {
	uint32_t number;       /* of the function */
	_Atomic uint32_t kept; /* one of the slowest calls refers to these */
	_Atomic uint64_t calls, returned, unwound, abandoned;
	_Atomic uint64_t untimed; /* calls that were only counted: they are not among `calls` */
	_Atomic uint64_t ns, most, least; /* of those that returned */
	/* A call that takes longer may be one of the slowest, and where these are. The slower they are, the higher it is set. */
	_Atomic uint64_t threshold;
	uint64_t slowest;
	_Atomic uint32_t times[ARENA_PROBE_TIMES];
};
