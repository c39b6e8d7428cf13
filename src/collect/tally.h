/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the kernel says of an event: how often it happened, and how much of the time it was counted. */
#include <stdbool.h>
#include <stdint.h>

#include "profile/coverage.h"

/* For perf_event_attr.read_format: what such a reading needs. */
#define TALLY_FORMAT (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)

struct tally_reading { /* as read() gives it */
	uint64_t count, enabled_ns, running_ns;
};

/* Of one event, since it was opened. False where it cannot be read (any more). */
bool tally_read(int fd, struct tally_reading *out);

struct tally { /* of events of one kind, on several CPUs or threads */
	struct coverage coverage;
	uint64_t count;
};

/* Adds what there was between two readings of an event. */
void tally_add(struct tally *t, const struct tally_reading *before,
	       const struct tally_reading *now);
