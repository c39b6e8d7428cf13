/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How the time of a call depends on a value: constant, n, n log n or n^2. findings.c and show.c use it. */
#include <stdbool.h>
#include <stdint.h>

struct probe_measure;

enum fit_shape { FIT_NONE, FIT_CONSTANT, FIT_LINEAR, FIT_N_LOG_N, FIT_SQUARE };

struct fit {
	enum fit_shape shape; /* FIT_NONE: there are too few different values */
	double sure;          /* chance that this shape is the right one of the four */
	enum fit_shape other; /* the next best, if its chance is worth a word; else FIT_NONE */
	double explained;     /* part of the variation between values that it explains */
	double base_ns;       /* of a call with n = 0 */
	double each_ns;       /* for each n, n log2 n, or n^2 */
	bool cpu;             /* of CPU time; else of all time */
	double covered;       /* the time that it says for all calls, as a part of their time */
	unsigned points;      /* different values, or ranges of them */
	double from, to;      /* the least and the largest */
};

/* Fits the time of the calls with values that are not negative. It is CPU time if that was measured. */
struct fit fit_make(const struct probe_measure *measure);
/* Returns the time that it says for a value, in ns. */
double fit_time(const struct fit *fit, double n);
/* Returns "constant", "n", "n log n" or "n^2"; NULL: there is none. */
const char *fit_name(enum fit_shape shape);
