/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Copies: samples that a target or the kernel left for us to walk, with registers and stack. scan.c and
   unsignalled.c add them; scan.c and agents.c have them walked. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct agents;
struct arena;
struct arena_copy;
struct arena_thread;
struct ring_copy;
struct process;

/* Whether the record has copies. */
bool copies_any(const struct arena_thread *record);
/* Takes the copies out of the arena, so that the thread can leave more. `owner`: the chunk of the record. */
void copies_take_out(struct agents *agents, struct arena *a, struct process *p, uint32_t owner,
		     struct arena_thread *record);
/* Adds a copy that came from the kernel; `from` describes it, too. False if there is no room. */
bool copies_add(struct agents *agents, struct arena *a, uint32_t owner, struct arena_copy *from,
		struct ring_copy *copy);
/* The same of a thread that waits since a time: it is no sample, but tells where (waits.h). */
bool copies_add_wait(struct agents *agents, struct arena *a, uint32_t owner,
		     struct arena_copy *from, struct ring_copy *copy, uint64_t since);
/* Walks all copies that were taken. `meanwhile` is called now and then. Pointers to threads (struct
   thread) are invalid afterwards. */
void copies_walk(struct agents *agents, void (*meanwhile)(struct agents *agents));
