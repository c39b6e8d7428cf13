/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Samples that a target left for us to walk, with a copy of its stack. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct agents;
struct arena;
struct arena_snapshot;
struct arena_thread;
struct process;

/* Whether the record has such samples. */
bool unwalked_any(const struct arena_thread *record);
/* Takes them out of the arena, so that the thread can leave more. `owner`: the record's chunk. */
void unwalked_keep(struct agents *agents, struct arena *a, struct process *p, uint32_t owner,
		   struct arena_thread *record);
/* One of which the stack is here: `from` without its chunks. `copied`: bytes of it that are of the sample's time, the
   rest was read later. False where there is no room. */
bool unwalked_add(struct agents *agents, struct arena *a, uint32_t owner,
		  const struct arena_snapshot *from, const uint8_t *stack, size_t copied);
/* Walks all that were taken out. Threads may be elsewhere in memory afterwards. `meanwhile` is called now and then. */
void unwalked_walk(struct agents *agents, void (*meanwhile)(struct agents *agents));
