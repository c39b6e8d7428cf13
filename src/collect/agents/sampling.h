/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The perf events of the threads that agents sample. scan.c opens and closes them, and agents.c calls
   the rest. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct agents;
struct process;
struct recording_event;
struct tally;
struct thread;

/* Whether events are opened twice for this process: one for its own code, one for the time in which the
   kernel works for it. */
bool sampling_is_split(const struct agents *agents, const struct process *p);
/* Whether all samples of the event come by signals, also those while the kernel works. */
bool sampling_signals_bring_all(const struct agents *agents, const struct process *p,
				const struct recording_event *event);
/* Whether a signal may come while the kernel works for the process. */
bool sampling_interrupts(const struct agents *agents, const struct process *p,
			 const struct recording_event *event);
/* Must be called first. */
void sampling_start(struct agents *agents);
/* Opens and enables the events of a thread; and closes them. */
void sampling_open(struct agents *agents, struct thread *t);
void sampling_close(struct agents *agents, struct thread *t);
/* The same for the first thread of a program that waits for our answer to HELLO. Later sampling_open takes
   over its events. */
void sampling_open_early(struct agents *agents, struct process *p);
void sampling_close_early(struct agents *agents, struct process *p);
/* Must be called ten times a second. It changes periods now and then, and reopens events that bring no
   samples any more. */
void sampling_tick(struct agents *agents);
/* Adds what the events have counted so far; `tallies` has one for each event. */
void sampling_tally(const struct agents *agents, struct tally *tallies);
/* The cost of a signal without its handler, in nanoseconds. */
uint64_t sampling_delivery(void);
