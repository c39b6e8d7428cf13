/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Time off the CPU, where agents sample it (agent/pauses.c). An agent counts waits that have ended. What it cannot know
 * is added here, from the times of each thread:
 *
 *    waits that go on     when sampling or the process ends: waiting.c has seen where
 *    all the rest         off the CPU, but in no wait that was seen: rows of their own
 */
#include <stdbool.h>
#include <stdint.h>

struct arena;
struct arena_thread;
struct err;
struct harvest;
struct process;
struct profile_thread;
struct recording;
struct thread;

/* Whether time off the CPU is sampled. */
bool waits_wanted(const struct recording *r);
/* The key of the function at an address, as that of a caller; 0: it is not known. */
uint64_t waits_function_key(const struct process *p, uint64_t address);
/* Sets the times of a thread. */
void waits_describe(const struct recording *r, const struct process *p, const struct thread *t,
		    const struct arena_thread *record, struct profile_thread *out);
/* Counts the wait of a thread that goes on, and the rest. `samples`: of the first event, is raised. */
struct err *waits_count(struct recording *r, struct harvest *h, struct process *p,
			const struct thread *t, const struct arena *a,
			const struct arena_thread *record, uint32_t thread, uint64_t *samples);
