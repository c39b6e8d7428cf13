/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The time lines of threads. */
struct agents;
struct arena;
struct arena_thread;
struct thread;

/* Takes what a thread has noted since the last time. */
void times_take(struct agents *agents, struct arena *a, struct thread *t,
		struct arena_thread *record);
/* That of all live threads. */
void times_take_all(struct agents *agents);
void times_close(struct agents *agents);
