/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How often an event happened, and for how much of the time the kernel counted it: if there are more
   events than counters, they take turns. Both samplers read their events by it. session.c puts the sums
   into the profile. */
#include <stdbool.h>
#include <stdint.h>

#include "profile/coverage.h"

/* For perf_event_attr.read_format: what such a reading needs. */
#define TALLY_FORMAT (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)

struct tally_reading { /* as read() returns it */
	uint64_t count, enabled_ns, running_ns;
};

/* Reads an event, since it was opened. False: it cannot be read (any more). */
bool tally_read(int fd, struct tally_reading *out);

struct tally { /* sum for one event, over several CPUs or threads */
	struct coverage coverage;
	uint64_t count;
};

/* Adds what happened between two readings of an event. */
void tally_add(struct tally *t, const struct tally_reading *before,
	       const struct tally_reading *now);
