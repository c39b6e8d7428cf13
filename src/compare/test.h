/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Did it change? Samples of one function in some runs before and some after,
 * and how sure it is that more than chance made them differ. The essay is in
 * test.c.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One function in the runs of one side. Its cost in run i is counts[i] * scales[i]. */
struct test_side {
	const uint64_t *counts;
	const double *scales; /* what a sample stands for: nanoseconds, or a part of the whole */
	size_t runs;
};

struct test_options {
	double noise;      /* how much a run differs from the next by itself, as a part of the cost:
			 assumed where no side has several runs to tell */
	double confidence; /* of the interval, and of what is called changed */
	bool shares;       /* scales are parts of a whole */
	bool amounts; /* counts are no samples: only the scatter of runs tells of chance; each side has several */
};

struct test_result {
	double before, after; /* mean cost of a run */
	double p;             /* two-sided, of "nothing changed"; not corrected */
	double low, high;     /* interval of after / before; high may be INFINITY */
	bool changed;         /* 1 is not in it */
	double error;         /* standard error of after - before */
	double df; /* degrees of freedom, INFINITY where nothing was estimated from runs */
};

void test_compare(const struct test_side *before, const struct test_side *after,
		  const struct test_options *options, struct test_result *out);

/* Fewer samples than this on both sides together decide nothing. */
#define TEST_LEAST 10
