/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The arenas (safe/arena.h) on the collector's side: one for each program, shared with the children that
   it forks. The other files of agents/ use them. */
#include <stdbool.h>
#include <stdint.h>

struct agents;
struct arena;
struct arena_thread;
struct err;
struct process;
struct thread;

/* Makes an arena for a new program. */
struct err *arena_open(struct agents *agents, struct arena **out);
/* Frees an arena whose contents are not needed any more. */
void arena_close(struct agents *agents, struct arena *a);
/* The thread record in a chunk; NULL if there is no such chunk. */
struct arena_thread *arena_record(const struct arena *a, uint32_t chunk);
/* Our struct thread for the record in a chunk; NULL if there is none. */
struct thread *arena_thread_of(const struct arena *a, uint32_t chunk);
typedef void arena_visit(struct agents *agents, struct arena *a, uint32_t chunk,
			 struct arena_thread *record, void *context);
/* Calls `each` for all records in use of one process; of all processes, if `process` is NULL. */
void arena_each(struct agents *agents, struct arena *a, const struct process *process,
		arena_visit *each, void *context);
/* Whether no process has the arena mapped any more. Then it is sealed against writing, and a->header may
   be NULL. */
bool arena_is_abandoned(struct arena *a);
