/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Paths of recent calls of a thread, for events that come by calls. Programs allocate and lock at the same few
 * places again and again, by turns. So a path is kept with the stack words that its walk has read. If a thread calls
 * us with the same SP, and all these words are unchanged, the path is the same, and need not be walked.
 *
 *      outermost                          innermost
 *      main   run   parse   expr   new   malloc
 *      `---- the memo ---'   `--- words ---'
 *                   joint
 *
 * As with the memo (sample.c), a path that meets the memo has words of its inner frames only. From the joint
 * outwards, the words of the memo are compared.
 */
#include "agent/agent.h"

/* Returns the node of the path by which the thread has called us; 0: it must be walked. */
uint32_t recent_find(struct agent_thread *t, uint64_t pc, uint64_t sp);
/* Keeps the path that was walked and has this node. `known`: how many frames it shares with the memo before. */
void recent_keep(struct agent_thread *t, uint32_t known, uint32_t node);
