/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which part of a profile a command looks at, by what its options say.
 */
#include <stdbool.h>
#include <stdint.h>

struct buf;
struct err;
struct profile;
struct profile_spare;
struct summary;

/* The metric of this name or number; the first where `wanted` is NULL. */
struct err *choose_metric(const struct profile *profile, const char *path, const char *wanted,
			  uint32_t *metric);

/* The error that the file has no such metric, only those that it names. */
struct err *choose_no_metric(const struct profile *profile, const char *path, const char *wanted);

/* An error if the profile has only counts of paths (culprit paths -o): it says what shows them. */
struct err *choose_check_samples(const struct profile *profile, const char *path);

/* Reads it, chooses the metric (which may be serial time, analyze/serial.h), and sums that up. What makes it
   unreliable is appended to `notes`, a line each. */
struct err *choose_profile(const char *path, const char *wanted, struct profile **profile,
			   uint32_t *metric, struct summary *summary, struct buf *notes);
/* The same; some of the profile may be missing. */
struct err *choose_profile_without(const char *path, const struct profile_spare *spare,
				   const char *wanted, struct profile **profile, uint32_t *metric,
				   struct summary *summary, struct buf *notes);
/* The same, after `run` may have added something to the profile. */
struct choose_prepare {
	struct err *(*run)(struct profile *profile, void *context); /* NULL: nothing is added */
	void *context;
};
struct err *choose_profile_prepared(const char *path, const struct profile_spare *spare,
				    const char *wanted, const struct choose_prepare *prepare,
				    struct profile **profile, uint32_t *metric,
				    struct summary *summary, struct buf *notes);

/* *threads: which ones count (malloc'ed), those of this name or number, in processes of this name
   or number; NULL where both are, and all count. An error where there are none. */
struct err *choose_threads(const struct profile *profile, const char *path, const char *thread,
			   const char *process, bool **threads);

/* Is there no such file? What is not in a file (profile_source) is not missing. */
bool choose_is_missing(const char *path);

/* Does this file begin as a profile does, or is it one that is in no file? */
bool choose_is_profile(const char *path);

/* The path of the file with the most nodes: the program, mostly. NULL: none. */
const char *choose_main_module(const struct profile *profile);
