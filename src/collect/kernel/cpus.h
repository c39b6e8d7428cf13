/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The perf events on each CPU, which run the sampler. kernel.c opens and enables them, periods.c changes
   their periods. */
#include <stdbool.h>
#include <sys/types.h>

struct err;
struct kernel;
struct recording_event;
struct tally;

/* Opens all events on all CPUs. They are not enabled yet. */
struct err *cpus_open(struct kernel *k);
void cpus_close(struct kernel *k); /* call it after object_detach, which closes the descriptors */
void cpus_enable(const struct kernel *k);
void cpus_disable(const struct kernel *k);
/* Opens the events of CPUs that were switched on, also while the machine slept. Closes those of CPUs
   that were switched off. */
void cpus_follow(struct kernel *k);
/* Fills `tallies`, one for each event, with what the events have counted. `anew`: the next call counts
   from here. */
void cpus_tally(struct kernel *k, struct tally *tallies, bool anew);
/* Returns a descriptor, or -1 with errno. `pid` and `cpu` are those of perf_event_open. */
int cpus_open_event(const struct recording_event *event, pid_t pid, int cpu);
