/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The memory that targets count in (safe/arena.h), one for each program. */
#include <stdbool.h>
#include <stdint.h>

struct agents;
struct arena;
struct arena_thread;
struct err;
struct process;
struct thread;

struct err *arena_open(struct agents *agents, struct arena **out);
/* Nothing in it is of interest any more. */
void arena_close(struct agents *agents, struct arena *a);
/* The record in a chunk, or NULL where there can be none. */
struct arena_thread *arena_record(const struct arena *a, uint32_t chunk);
/* What we know of the thread that has it; NULL: none has. */
struct thread *arena_thread_of(const struct arena *a, uint32_t chunk);
typedef void arena_visit(struct agents *agents, struct arena *a, uint32_t chunk,
			 struct arena_thread *record, void *context);
/* Calls `each` for the records of one process (NULL: of all) that are in use. */
void arena_each(struct agents *agents, struct arena *a, const struct process *process,
		arena_visit *each, void *context);
/* Whether no process has the arena any more; it is sealed then, and may have lost its header. */
bool arena_is_abandoned(struct arena *a);
