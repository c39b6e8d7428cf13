/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* From the tree that a thread has counted in its arena to that of the profile. */
#include <stdbool.h>
#include <stdint.h>

struct arena;
struct arena_thread;
struct err;
struct harvest;
struct process;
struct recording;
struct thread;

/* Adds a record's tree. `last`: it is complete, the numbers for the summary are added too. */
void trees_take(struct recording *recording, struct harvest *h, struct process *p, struct thread *t,
		struct arena *a, const struct arena_thread *record, bool last);
/* Adds what was lost in the arena; `last`: likewise. */
void trees_lose(struct recording *recording, struct harvest *h, struct arena *a, bool last);
/* Where in the profile the samples of a thread that goes on go to; false where they cannot. */
bool trees_find_thread(struct recording *recording, struct thread *t,
		       const struct arena_thread *record, uint32_t *index);
/* Weights of the first event in the part of a tree that is partial. */
uint64_t trees_count_partial(const struct arena *a, const struct arena_thread *record);
