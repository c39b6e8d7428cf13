/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the page compares from the start: runs before and after, in one profile in which each has its
 * own threads. The page does the arithmetic, since people choose there what they compare.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json;

struct comparison_run {
	const char *path;
	uint64_t samples;        /* of the metric that all have */
	const uint64_t *periods; /* what a sample of it stands for, by metric of the profile */
	size_t period_count;
};

struct comparison {
	const struct comparison_run *runs; /* old ones first */
	size_t count, old_count;
	const uint32_t *of_thread; /* by thread of the profile: its run */
	/* By scope: which stands for all that are the same code in other builds; what that is called
	   (NULL: by its own name); whether it is all of a module, so that calls inside of it are none. */
	const uint32_t *same;
	char *const *names;
	const bool *whole;
	double alpha, noise, min; /* what changes are taken for, as compare/diff.h has it */
};

/* The scope that stands for this one. The comparison may be NULL. */
uint32_t comparison_scope(const struct comparison *comparison, uint32_t scope);
/* Whether it is all of a module. */
bool comparison_whole(const struct comparison *comparison, uint32_t scope);
/* What a scope is called. */
const char *comparison_name(const struct comparison *comparison, uint32_t scope, const char *own);

/* Writes "comparison": {"runs": [{"path", "samples", "periods"}], "old": how many of them, "threads": [run of each
   thread], "alpha", "noise", "min"} into the JSON object that is open. */
void comparison_json(const struct comparison *comparison, size_t thread_count, struct json *out);
