/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The perf events of the threads that agents sample. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct agents;
struct process;
struct recording_event;
struct tally;
struct thread;

/* What comes in the process's own code is told apart from what comes while the kernel works for it. */
bool sampling_is_split(const struct agents *agents, const struct process *p);
/* Samples of the event that a signal brings are all that there are. */
bool sampling_is_whole(const struct agents *agents, const struct process *p,
		       const struct recording_event *event);
/* A signal may come while the kernel works for the process. */
bool sampling_interrupts(const struct agents *agents, const struct process *p,
			 const struct recording_event *event);
/* Before anything else. */
void sampling_start(struct agents *agents);
void sampling_open(struct agents *agents, struct thread *t);
void sampling_close(struct agents *agents, struct thread *t);
/* For the first thread of a program that waits for our answer; sampling_open adopts it. */
void sampling_open_early(struct agents *agents, struct process *p);
void sampling_close_early(struct agents *agents, struct process *p);
/* Ten times a second: now and then another period, and events that went silent anew. */
void sampling_tick(struct agents *agents);
/* Adds what the events have counted until now, to one for each event. */
void sampling_tally(const struct agents *agents, struct tally *tallies);
/* What a signal costs apart from its handler, in nanoseconds. */
uint64_t sampling_delivery(void);
