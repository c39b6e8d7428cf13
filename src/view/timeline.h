/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The time line for the viewer: spans of the profile, each as one of the rows that
 * stand for its context, thread and line (view/pack.h).
 */
#include <stddef.h>
#include <stdint.h>

struct attribution;
struct contexts;
struct err;
struct lines;

struct timeline_span {
	uint32_t row;
	uint32_t thread, metric, samples;
	uint32_t waker; /* as in profile/profile.h */
	uint64_t start_us, duration_us;
};

struct timeline {
	struct timeline_span *all; /* by thread and start */
	size_t count;
	uint64_t unplaced; /* samples in contexts without a row: their values were damaged */
};

struct err *timeline_make(const struct attribution *attribution, const struct contexts *contexts,
			  const struct lines *lines, struct timeline *out);
void timeline_free(struct timeline *timeline);

/* Columns, in the order in which they are packed, and the numbers in them. */
enum timeline_column {
	TIMELINE_ROW, /* distance from that of the span before, as 2n, or 2n - 1 where it is -n */
	TIMELINE_START, /* µs after the end of the thread's span before, or of the recording's start */
	TIMELINE_DURATION, /* µs */
	TIMELINE_SAMPLES,
	TIMELINE_METRIC,
	TIMELINE_WAKER,
	TIMELINE_COLUMNS,
};
extern const char *const timeline_columns[TIMELINE_COLUMNS];
uint64_t timeline_number(const struct timeline *timeline, size_t i, enum timeline_column column);
