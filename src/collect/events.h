/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Makes events from names: "cpu-clock", "page-faults@100", "cycles:u", "sched:sched_wakeup", "r1a8", or any
 * name that libpfm4 knows for this CPU. The number after '@' is a rate in samples per second for clocks and
 * cycles. For other events, every Nth one is sampled. The recorder, the daemon and `culprit list` use it;
 * both samplers use event_attr().
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "harvest/recording.h"

struct err;
struct perf_event_attr;
struct probes;

/* Fills one event. `hz` is the rate if the text has none. An error says what is wrong, and what the
   machine has. If the kernel allows only user code, event->user_only is set. */
struct err *event_parse(const char *text, uint64_t hz, struct recording_event *out);

/* Fills the default event: cycles if the CPU counts them, else cpu-clock. *timers is set if perf events
   are refused altogether. Then `why` (size bytes) gets one line that says what is missing, and the exact
   setting that provides it; else "". */
struct err *event_default(uint64_t hz, struct recording_event *out, bool *timers, char *why,
			  size_t size);

/* Returns what perf_event_open must know in any case: the event is not enabled, and counts are read with
   their times (tally.h). */
struct perf_event_attr event_attr(const struct recording_event *event);

/* Whether an event is of time off the CPU alone: then there is no perf event for it. */
bool event_is_off(const struct recording_event *event);
/* Whether there is a perf event for it. */
bool event_is_sampled(const struct recording_event *event);

/* Fills in the metrics of probed functions. Returns how many there are. */
#define EVENT_PROBES (2 + 6)
size_t event_probes(const struct probes *probes, struct recording_event out[EVENT_PROBES]);
/* Fills the events that are always recorded with another one, as metrics of their own. Returns how many. */
#define EVENT_COMPANIONS 14
size_t event_companions(const struct recording_event *event,
			struct recording_event out[EVENT_COMPANIONS]);

/* Whether two events count the same. */
bool event_same(const struct recording_event *a, const struct recording_event *b);

/* Fills one of the kernel's own events by its name or alias. It is not opened, and has no rate. False:
   there is no such event. */
bool event_known(const char *name, struct recording_event *out);

/* Whether an event can be sampled here. */
struct event_answer {
	bool available, user_only;
	int error;       /* of perf_event_open */
	char state[160]; /* "user and kernel code", or why not */
	char fix[200];   /* what would give it, or more of it; "" if nothing is missing */
};

/* Opens the event on our own process. In containers and virtual machines only that tells the truth. */
void event_ask(const struct recording_event *event, struct event_answer *out);
/* The same for tracepoints in general. */
void event_ask_tracepoints(struct event_answer *out);

/* Returns why an event is refused that can be sampled by itself (event_ask), and what helps. `error` is
   that of perf_event_open. */
const char *event_refused(int error);

/* Returns kernel.perf_event_paranoid; 0 if the kernel has no such setting. */
int event_paranoid(void);

/* Returns how often a POSIX timer on CPU time can fire: the kernel's tick, per second. */
uint64_t event_tick_hz(void);
