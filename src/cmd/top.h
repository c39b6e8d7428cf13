/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `culprit top`, in two: its command line (top.c) and what it does (top_run.c).
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/args.h"

struct top_options {
	const char *path, *interval_text, *metric, *filter, *output;
	struct arg_list pids;
	uint64_t hz, count, limit;
	int by, sort;
	bool so_far, json;
	double interval;
};

/* The exit status. */
int top_run(const struct top_options *options);
