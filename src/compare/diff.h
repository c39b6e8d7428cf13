/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What changed between some runs and others: each row's cost before and after,
 * and whether the difference is more than chance (compare/test.h). Many rows are
 * looked at, so some would look changed by luck: each interval is so wide that the
 * chance that any at all misses what is true is below `alpha` (Bonferroni). All that
 * is said of a row follows from its interval: it changed if "no change" is not in
 * it, and it is too slow if all of it is above what is allowed.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compare/counts.h"
#include "compare/test.h"

struct buf;
struct err;
struct json;
struct runs;
struct text_options;

struct diff_options {
	size_t old_runs; /* the first ones of the runs; the others are new */
	double min;      /* rows with a smaller share (the mean of both sides) are not looked at */
	double alpha;    /* 0.05 */
	double noise;    /* test.h */
	bool shares;     /* compare shares of the samples, not costs */
	double fail_above;  /* how much slower is too much, as a part; < 0: nothing is */
	bool fail_on_total; /* only all together can be too slow */
};

struct diff_row {
	const struct row *row;  /* NULL: all together */
	const uint64_t *counts; /* by run; of rows */
	uint64_t old_samples, new_samples;
	double old_cost, new_cost; /* of a run on average, in the metric's unit */
	double old_share, new_share;
	bool large;              /* enough to be looked at */
	bool tested;             /* and it can be told whether it changed */
	struct test_result test; /* of costs, or shares */
	double p;                /* corrected; < 0: not tested */
	bool changed;            /* more than chance */
	bool too_slow;           /* by more than fail_above, for sure */
};

struct diff {
	struct diff_options options;
	const char *metric, *unit; /* the runs' */
	struct diff_row total;
	struct diff_row *rows; /* those that changed first, then by difference */
	size_t count;
	size_t tests;        /* total and rows that were tested */
	double confidence;   /* of each interval, so that all together have 1 - alpha */
	size_t changed;      /* rows */
	size_t untested;     /* rows */
	bool too_slow;       /* total or a row */
	bool has_replicates; /* a side has several runs */
	bool amounts;        /* runs.h */
	bool untestable;     /* these, and a side has but one run: there are no verdicts */
};

/* `runs` and `rows` must outlive the result. */
struct err *diff_make(const struct runs *runs, const struct counts *rows,
		      const struct diff_options *options, struct diff *out);
void diff_free(struct diff *diff);

/* "slower", "faster", "more", "less", "new", "gone", "noise", "too few", "untested". */
const char *diff_verdict(const struct diff *diff, const struct diff_row *row);

/* Appends the table for people. */
void diff_text(const struct diff *diff, const struct runs *runs, const struct text_options *options,
	       struct buf *out);
/* Writes everything into the JSON object that is open. */
void diff_json(const struct diff *diff, const struct runs *runs, uint64_t limit, struct json *j);
