/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Counts returns (record --calls), by csprof's sentinel: the return address of one frame of each thread is that
 * of a stub of ours. When the procedure returns, the stub counts it, puts the sentinel into the caller's frame,
 * and goes on where the procedure would have returned to.
 *
 * This is only in libculprit-agent-calls.so. In libculprit-agent.so, AGENT_CALLS is 0 and nothing of it is left.
 * sentinel.c says how; sentinel_CPU.S has the stubs.
 */
#include "agent/agent.h"

#ifndef AGENT_CALLS
#define AGENT_CALLS 0
#endif

#define SENTINELS WIRE_STUBS
#define SENTINEL_STUB WIRE_STUB

/* The stubs, one after another: the address in a stack word tells which sentinel it is. */
extern const char sentinel_stubs[] __attribute__((visibility("hidden")));

/* Finds the true word for a word that was read from a stack or a register, if it is the address of a stub. */
static inline bool sentinel_is_stub(uint64_t word)
{
	return AGENT_CALLS && word - (uint64_t)sentinel_stubs < SENTINELS * SENTINEL_STUB;
}
uint64_t sentinel_see_through(uint64_t word);

/* Prepares counting, and finds out whether the machine allows it. */
void sentinel_start(void);
/* A child of fork counts, too. */
void sentinel_begin_process(void);

/* For sample.c. The registers as they would be without a sentinel; `room` may be used to store them. */
const uint64_t *sentinel_registers(const uint64_t *registers, uint64_t *room);
/* The node for a sample that came while a stub works; 0: it came elsewhere. */
uint32_t sentinel_busy_node(uint64_t sp);
/* How many of the memo's outermost frames are there for sure, if the sentinel is still in its place: the word in
   *slot is *stub. */
uint32_t sentinel_guarded(const struct agent_thread *t, uint64_t *slot, uint64_t *stub);
/* After a walk, when the memo is complete: finds out which of its frames can have the sentinel. `known`: how many
   were there before. */
void sentinel_judge(struct agent_thread *t, uint32_t known, const uint64_t *registers);
/* After that: puts the sentinel into the innermost frame that can have it. */
void sentinel_place(struct agent_thread *t, uint64_t pc, uint64_t sp);

/* Takes the sentinel out. `sp`: frames below it are gone. */
void sentinel_withdraw(uint64_t sp);
/* The same before a function that leaves frames, or looks at return addresses. None is put in before the thread
   is out of it: `sp` and `pc` are those of its caller; pc 0: not known. */
void sentinel_leave(uint64_t sp, uint64_t pc);

/* sentinel_CPU.S calls these. A procedure has returned to a stub. Returns the true address. */
uint64_t sentinel_returned(uint64_t stub, uint64_t sp);
/* leaves.c, called by sentinel_CPU.S: the program calls one of the functions there. `link`: where its return
   address is. Returns the address of the real function. */
void *leaves_begin(uint64_t which, uint64_t sp, uint64_t *link);
