/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* From the tree that a thread has counted in its arena to the tree of the profile. scan.c and agents.c
   call it, and it finds threads in the profile for times.c and copies.c. */
#include <stdbool.h>
#include <stdint.h>

struct arena;
struct arena_thread;
struct harvest;
struct process;
struct recording;
struct thread;

/* Adds the tree of a record. `last`: the thread has ended, and the numbers for the summary are added, too. */
void trees_take(struct recording *recording, struct harvest *h, struct process *p, struct thread *t,
		struct arena *a, const struct arena_thread *record, bool last);
/* Adds the samples that were lost in the arena. `last`: as above. */
void trees_lose(struct recording *recording, struct harvest *h, struct arena *a, bool last);
/* Finds or adds a live thread in the profile; *index is its place there. False if that fails. */
bool trees_find_thread(struct recording *recording, struct thread *t,
		       const struct arena_thread *record, uint32_t *index);
/* The weight of the first event's samples whose paths are partial. */
uint64_t trees_count_partial(const struct arena *a, const struct arena_thread *record);
