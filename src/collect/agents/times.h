/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The time lines of threads: from the arena to the profile. scan.c and agents.c call it. */
struct agents;
struct arena;
struct arena_thread;
struct thread;

/* Takes what a thread has noted since the last call. */
void times_take(struct agents *agents, struct arena *a, struct thread *t,
		struct arena_thread *record);
/* The same for all live threads. */
void times_take_all(struct agents *agents);
void times_close(struct agents *agents);
