/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How much the rows of several runs vary: sum, mean, standard deviation, smallest, largest, and the
 * normalised range (largest - smallest) / sum. Few samples have a large range by chance alone, so rows
 * that vary by more than chance come first.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compare/numbers.h"

struct buf;
struct err;
struct json;
struct row;
struct counts;
struct runs;
struct text_options;

struct stats_row {
	const struct row *row;
	const uint64_t *counts; /* by run */
	struct moments moments; /* of samples, in the first run's period */
	double range;           /* (max - min) / sum */
	double share;           /* of all samples */
	double expected;        /* the deviation that sampling alone would give */
	double p;               /* the chance of such a deviation by sampling alone */
	bool varies;            /* by more than that, however many rows there are */
};

struct stats {
	/* Those that vary, the largest deviation first; then the others, the largest sum first. */
	struct stats_row *rows;
	size_t count;
	size_t hidden; /* rows with a smaller share */
	struct stats_row total;
	uint64_t *totals;
};

/* Rows with a smaller share of all samples than `min` are left out. `runs` and `rows` must outlive
   the result. */
struct err *stats_make(const struct runs *runs, const struct counts *rows, double min,
		       struct stats *out);
void stats_free(struct stats *stats);

void stats_text(const struct stats *stats, const struct runs *runs,
		const struct text_options *options, struct buf *out);
void stats_json(const struct stats *stats, const struct runs *runs, uint64_t limit, struct json *j);
