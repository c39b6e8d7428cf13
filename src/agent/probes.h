/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Counts and times every call of chosen functions (`culprit probe`), by changing their first instruction to a jump.
 *
 * This is only in libculprit-probes.so. Elsewhere, AGENT_PROBES is 0 and nothing of it is left. probes.c says how;
 * probe_CPU.S has the stubs. All of that library uses general registers only, and no function of libc once it counts.
 */
#include "agent/agent.h"
#include "agent/probe_stubs.h"
#include "safe/probes.h"

/* The stubs, one after another, and what each one is for. */
extern const char probe_stubs[] __attribute__((visibility("hidden")));
struct probe_stub {
	uint64_t returns; /* the return address */
	uint64_t body;    /* where the function goes on */
};
extern struct probe_stub probe_table[PROBE_STUBS] __attribute__((visibility("hidden")));

static inline bool probe_is_stub(uint64_t word)
{
	return AGENT_PROBES && (word & ((UINT64_C(1) << 48) - 1)) - (uint64_t)probe_stubs <
				       PROBE_STUBS * PROBE_STUB_SIZE;
}
/* The return address that a stub stands for. The word may be signed. */
static inline uint64_t probe_see_through(uint64_t word)
{
	uint64_t offset = (word & ((UINT64_C(1) << 48) - 1)) - (uint64_t)probe_stubs;
	return probe_table[offset / PROBE_STUB_SIZE].returns;
}

#define PROBE_MEASURED 1u
#define PROBE_COUNTED UINT32_MAX

/* probe_islands.c: what we need to know of a probe at a call, where nobody else can write. */
struct probe {
	uint64_t function, body;
	struct arena_probe *asked;
	struct arena_probe_sums *sums; /* of all threads */
	uint32_t number;
	bool wrapped;
	/* A call is a special one if so many calls of its thread, or fewer, are left until one is measured: PROBE_MEASURED, or
	   PROBE_COUNTED if all are only counted, as asked->counted was when a call was measured last. */
	_Atomic uint32_t rare;
};
/* Puts in the probes that the collector asks for. The process must have one thread only. */
void probe_start(void);
/* The same for a process that runs: makes the islands of those that are new. The collector puts in the jumps. */
void probe_prepare(void);
/* Takes the islands away. No thread may be in them. */
void probe_unmap(void);

/* The calling thread has a new record. */
void probe_begin_thread(void);
/* Forgets what the parent's threads were in. */
void probe_after_fork(void);
/* Forgets all calls that have not ended. No thread is at work here. */
void probe_forget(void);

/* probe_CPU.S calls these. The function of this description is called; returns where it goes on. `slot`: SP at its first
   instruction; `fp`, `extra`: the registers that the walk wants to know. */
uint64_t probe_enter(struct probe *probe, uint64_t slot, uint64_t returns, uint64_t fp,
		     uint64_t extra);
/* The function that was called with this SP has returned. */
void probe_leave(uint64_t slot);
/* Islands jump to it. */
extern const char probe_entry[] __attribute__((visibility("hidden")));
