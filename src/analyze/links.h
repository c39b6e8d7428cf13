/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How well the code bears out the paths of a profile: each step from a frame
 * to its caller is a link (flow/evidence.h), and counts once for every sample
 * whose path has it. Invalid ones are paths that cannot have been.
 */
#include <stddef.h>
#include <stdint.h>

#include "flow/evidence.h"

struct buf;
struct err;
struct json;
struct modules;
struct profile;

/* Two places, whatever their context. */
struct link_pair {
	uint32_t caller, callee; /* nodes of the profile that have them */
	enum link link;
	uint64_t samples;
};

struct link_totals {
	const struct profile *profile;
	struct modules *modules;
	uint64_t samples[LINK_COUNT]; /* by class */
	struct link_pair *pairs;      /* invalid ones first, the most frequent first */
	size_t pair_count;
};

/* Counts the links of one metric's samples. `profile` and `modules` must outlive the result. */
struct err *link_totals_make(const struct profile *profile, struct modules *modules,
			     uint32_t metric, struct link_totals *out);
void link_totals_free(struct link_totals *totals);

/* Appends a line with the counts, and one for each of the invalid pairs (0: any number of them). */
void link_totals_print(const struct link_totals *totals, uint64_t limit, struct buf *out);
/* Writes "links" into the object that is open. */
void link_totals_json(const struct link_totals *totals, uint64_t limit, struct json *out);
