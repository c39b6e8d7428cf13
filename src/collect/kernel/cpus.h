/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The events on each CPU, which run the sampler. */
#include <stdbool.h>
#include <sys/types.h>

struct err;
struct kernel;
struct recording_event;
struct tally;

/* All of them, not enabled. */
struct err *cpus_open(struct kernel *k);
void cpus_close(struct kernel *k); /* after object_detach, which closes the descriptors */
void cpus_enable(const struct kernel *k);
void cpus_disable(const struct kernel *k);
/* Opens those of CPUs that were switched on, also when the machine slept. */
void cpus_follow(struct kernel *k);
/* What the events have counted, one for each; `anew`: what comes now is for the next time. */
void cpus_tally(struct kernel *k, struct tally *tallies, bool anew);
/* A descriptor, or -1 (errno); `pid`, `cpu`: as for perf_event_open. */
int cpus_open_event(const struct recording_event *event, pid_t pid, int cpu);
