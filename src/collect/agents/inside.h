/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Samples that no signal brings: see inside.c. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct agents;
struct arena;
struct err;
struct inside;

/* Where the kernel tells what comes while it works for a target. */
struct err *inside_start(struct agents *agents);
int inside_fd(
	const struct agents *agents); /* readable where something has come; -1: nothing ever does */
void inside_hear(struct agents *agents); /* takes that, to be walked */
void inside_stop(struct agents *agents);
/* For the thread, with these periods, one for each event; not enabled. `first`: of the first event's
   sample by chance; 0: none. NULL where it cannot be: errno says why. */
struct inside *inside_open(struct agents *agents, pid_t tid, const uint64_t *periods,
			   uint64_t first);
/* All samples of the event come so, also those in the thread's own code. */
bool inside_is_whole(const struct agents *agents, size_t event);
void inside_enable(const struct inside *in);
/* Whose they are. Until this is known they wait. */
void inside_adopt(struct agents *agents, struct inside *in, struct arena *a, uint32_t owner);
void inside_change_period(const struct inside *in, size_t event, uint64_t period);
/* The sample by chance will not come any more. */
void inside_end_chance(struct inside *in);
uint64_t inside_samples(const struct inside *in);
int inside_event(const struct inside *in, size_t event); /* its descriptor */
/* Takes what has come, to be walked. */
void inside_take(struct agents *agents, struct inside *in);
/* The same for all threads. */
void inside_take_all(struct agents *agents);
/* Takes what is there and closes; NULL is fine. */
void inside_close(struct agents *agents, struct inside *in);
