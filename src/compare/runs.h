/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Several recordings as one profile (so that what they have in common is named once), in which each
 * still has its own threads.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/coverage.h"

struct buf;
struct err;
struct profile;

struct run {
	const char *path;         /* the caller's */
	uint32_t metric;          /* in the profile of all */
	uint64_t period;          /* of it: what a sample stands for */
	struct coverage coverage; /* of it */
	uint64_t *periods;        /* the same by metric of the profile of all; 0: it has none */
	size_t period_count;
	uint64_t samples;      /* of it, in the tree */
	uint64_t lost;         /* of all metrics */
	uint32_t first_thread; /* in the profile of all; they end where the next run's begin */
	bool user_only, complete, shortened;
	char *damage; /* NULL: all is well */
};

struct runs {
	struct profile *profile;
	struct run *all;
	size_t count;
	uint32_t *of_thread; /* by thread of the profile: its run */
	const char *metric, *unit;
	/* The metric counts no samples, but what they stand for (bytes, say): how far chance goes is told by runs alone. */
	bool amounts;
	const char *sampled; /* what counts its samples */
};

/* Reads the files. `metric` is a name, or a number in the first file; NULL: the first one's first.
   The others must have one of that name and unit. */
struct err *runs_read(const char *const *paths, size_t count, const char *metric, struct runs *out);
void runs_free(struct runs *runs);

/* Appends a line for each reason not to trust a comparison of them. */
void runs_notes(const struct runs *runs, struct buf *out);
