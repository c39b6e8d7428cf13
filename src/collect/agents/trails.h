/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Trails that threads have left (agent/follow.c), for the profile. */

struct agents;
struct arena;
struct arena_thread;
struct thread;

/* Takes those of one thread, up to now. */
void trails_take(struct agents *agents, struct arena *a, struct thread *t, struct arena_thread *r);
/* Takes those of all threads. */
void trails_take_all(struct agents *agents);
