/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a recording that goes on, or a process, spends its time on now: a table in a terminal, or printed again and again.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/args.h"

struct err;

struct top_options {
	const char *path, *interval_text, *metric, *filter, *output;
	struct arg_list pids;
	uint64_t hz, count, limit;
	int by, sort;
	bool so_far, json;
	double interval;
	FILE *out; /* for tables, if there is no terminal */
};

struct top_end {
	struct err *problem; /* NULL: none */
	int died;            /* of this signal; 0: of none */
	bool busy; /* a thread is in the middle of something that nobody waits for: leave by _exit */
};

/* What is wrong with the filter, or NULL. */
struct err *top_check(const struct top_options *options);
void top_run(const struct top_options *options, struct top_end *out);
