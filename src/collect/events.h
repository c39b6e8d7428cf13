/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Events by name: "cpu-clock", "page-faults@100", "cycles:u", "sched:sched_wakeup",
 * "r1a8", or any name that libpfm4 knows for this CPU. After '@' stands a rate:
 * samples per second for clocks and cycles, else every Nth event is sampled.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "harvest/recording.h"

struct err;
struct perf_event_attr;

/* Fills one event; `hz` is the rate where none is given. An error says what is wrong and what the
   machine has; where the kernel allows only user code, event->user_only is set. */
struct err *event_parse(const char *text, uint64_t hz, struct recording_event *out);

/* What record uses by itself: cycles where they are counted, else cpu-clock. *timers is set where
   perf events are refused altogether; `why` (size bytes) then gets one line: what is missing, and
   the exact setting that provides it; else "". */
struct err *event_default(uint64_t hz, struct recording_event *out, bool *timers, char *why,
			  size_t size);

/* What perf_event_open has to know of it in any case: not enabled, and counts are read with their times (tally.h). */
struct perf_event_attr event_attr(const struct recording_event *event);

/* Whether two count the same. */
bool event_same(const struct recording_event *a, const struct recording_event *b);

/* One of the kernel's own events by its name or alias, not opened and without a rate; false where
   there is none of this name. */
bool event_known(const char *name, struct recording_event *out);

struct event_answer {
	bool available, user_only;
	int error;       /* of perf_event_open */
	char state[160]; /* "user and kernel code", or why not */
	char fix[200];   /* what would give (more of) it; "" where nothing is missing */
};

/* Opens the event on ourselves: only that tells the truth in containers and virtual machines. */
void event_ask(const struct recording_event *event, struct event_answer *out);
/* The same for tracepoints in general. */
void event_ask_tracepoints(struct event_answer *out);

/* Why an event that can be sampled by itself (event_ask) is refused nevertheless, by the error of
   perf_event_open, and what helps. */
const char *event_refused(int error);

/* kernel.perf_event_paranoid; 0 where the kernel has none. */
int event_paranoid(void);

/* How often a POSIX timer on CPU time can fire: the kernel's tick, per second. */
uint64_t event_tick_hz(void);
