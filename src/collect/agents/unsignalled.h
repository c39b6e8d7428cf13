/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Samples that come without a signal, mostly while the kernel works for a thread: see unsignalled.c.
   sampling.c opens and closes their events for each thread; agents.c takes the samples. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct agents;
struct arena;
struct err;
struct unsignalled;

/* Prepares the rings, if there is an event that needs them. */
struct err *unsignalled_start(struct agents *agents);
/* A descriptor that is readable if samples have come; -1: there are no rings. */
int unsignalled_fd(const struct agents *agents);
/* Takes all samples that have come, to be walked. */
void unsignalled_hear(struct agents *agents);
void unsignalled_stop(struct agents *agents);
/* Opens the events of a thread, with one period for each event. They are not enabled yet. `first`: the
   period of the sample by chance; 0: none. `whole`: those in the thread's own code, too. NULL if it fails: see errno. */
struct unsignalled *unsignalled_open(struct agents *agents, pid_t tid, const uint64_t *periods,
				     uint64_t first, bool whole);
/* Whether all samples of the event come this way, also those in the thread's own code. */
bool unsignalled_takes_all(const struct agents *agents, size_t event);
void unsignalled_enable(const struct unsignalled *u);
/* Tells to which record (`owner`) of which arena the thread belongs. Before that, its samples wait. */
void unsignalled_adopt(struct agents *agents, struct unsignalled *u, struct arena *a,
		       uint32_t owner);
void unsignalled_change_period(const struct unsignalled *u, size_t event, uint64_t period);
/* Closes the event for the sample by chance. */
void unsignalled_end_chance(struct unsignalled *u);
/* How many samples were taken so far. */
uint64_t unsignalled_samples(const struct unsignalled *u);
int unsignalled_event(const struct unsignalled *u, size_t event); /* its descriptor */
/* Takes the samples that have come, to be walked. */
void unsignalled_take(struct agents *agents, struct unsignalled *u);
/* The same for all threads. */
void unsignalled_take_all(struct agents *agents);
/* Takes what is left, and closes. NULL is fine. */
void unsignalled_close(struct agents *agents, struct unsignalled *u);
