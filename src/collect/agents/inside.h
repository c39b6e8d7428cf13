/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Samples that come without a signal, mostly while the kernel works for a thread: see inside.c. sampling.c
   opens and closes them for each thread; agents.c reads them. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct agents;
struct arena;
struct err;
struct inside;

/* Prepares the rings, if there is an event that needs them. */
struct err *inside_start(struct agents *agents);
/* A descriptor that is readable if samples have come; -1: there are no rings. */
int inside_fd(const struct agents *agents);
/* Takes all samples that have come, to be walked. */
void inside_hear(struct agents *agents);
void inside_stop(struct agents *agents);
/* Opens the events of a thread, with one period for each event. They are not enabled yet. `first`: the
   period of the sample by chance; 0: none. NULL if it fails: see errno. */
struct inside *inside_open(struct agents *agents, pid_t tid, const uint64_t *periods,
			   uint64_t first);
/* Whether all samples of the event come this way, also those in the thread's own code. */
bool inside_takes_all(const struct agents *agents, size_t event);
void inside_enable(const struct inside *in);
/* Tells to which record (`owner`) of which arena the thread belongs. Before that, its samples wait. */
void inside_adopt(struct agents *agents, struct inside *in, struct arena *a, uint32_t owner);
void inside_change_period(const struct inside *in, size_t event, uint64_t period);
/* Closes the event for the sample by chance. */
void inside_end_chance(struct inside *in);
/* How many samples were taken so far. */
uint64_t inside_samples(const struct inside *in);
int inside_event(const struct inside *in, size_t event); /* its descriptor */
/* Takes the samples that have come, to be walked. */
void inside_take(struct agents *agents, struct inside *in);
/* The same for all threads. */
void inside_take_all(struct agents *agents);
/* Takes what is left, and closes. NULL is fine. */
void inside_close(struct agents *agents, struct inside *in);
