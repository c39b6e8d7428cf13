/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How much of the time events were counted (profile/coverage.h), over several spans. A total has it
 * only where that is not all of it: `enabled` and `running` of all others are NULL.
 */
#include "profile/coverage.h"
#include "store/internal.h"

struct covered {
	struct covered_event {
		int64_t event; /* number in the database */
		uint64_t samples;
		struct coverage coverage;
	} items[STORE_EVENT_MAX];
	size_t count;
};

/* Adds what a span says of its events. */
struct err *covered_add(struct store *store, int64_t segment, struct covered *sum);
/* Makes it what a span says, which has its totals already. */
struct err *covered_write(struct store *store, int64_t segment, const struct covered *sum);
/* Of an event; of one that is not there: always. */
struct coverage covered_find(const struct covered *sum, uint64_t event);
/* Whether any span says anything. */
struct err *covered_any(struct store *store, bool *any);
