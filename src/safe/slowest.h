/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The slowest calls of a function, as its program keeps them in the arena (agent/probes.c). All threads and handlers of all
 * processes that share the arena keep calls in one list, without a lock.
 *
 * A place of the list belongs to who changes its mark to an odd number. Nobody else touches it until the mark is even again,
 * so nobody waits. Who finds the fastest call in the middle of such a change takes the place of the next one instead. The list
 * has some places more than were asked for: so the slowest are there as long as at most so many are being changed.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define ARENA_SLOWEST_SPARE 8u
#define ARENA_SLOWEST_MAX (32u + ARENA_SLOWEST_SPARE)

struct arena_slow {
	_Atomic uint64_t
		mark; /* twice its time in ns; odd: the rest is being written. 0: the place is free */
	uint64_t since; /* when it began, in ticks */
	/* Chunk and generation of the thread's record, and the sums of its path; 0: the path is not known. */
	uint32_t record, generation, sums;
	int32_t process, tid;
	uint32_t reserved;
};

struct arena_slowest {
	uint32_t count, reserved; /* places */
	struct arena_slow all[];
};

/* Keeps a call if it is one of the slowest. `call` has no mark. Returns a time: calls that take no longer need not be kept. */
uint64_t slowest_keep(struct arena_slowest *list, uint64_t ns, const struct arena_slow *call);
/* Reads a place as it was at one moment, and its time. False: there is nothing, or it is being written. */
bool slowest_read(const struct arena_slow *place, struct arena_slow *out, uint64_t *ns);
