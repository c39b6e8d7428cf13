/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a recording is, in numbers: how many samples, how sure their paths are,
 * what taking them cost. `record` ends with these lines, `report` begins with
 * them, and JSON has them under "summary".
 */
#include <stdbool.h>
#include <stdint.h>

#include "unwind/walk.h"

struct buf;
struct json;
struct profile;

#define SUMMARY_ENDS (WALK_COUNTED + 1)

struct summary {
	const char *metric; /* what was sampled; the profile's; "" where there is none */
	uint64_t samples;   /* in the tree: complete + partial */
	uint64_t complete;  /* with a path that reaches its root */
	uint64_t partial;   /* all others, and each by its reason (enum walk_end) */
	uint64_t by_reason[SUMMARY_ENDS];
	uint64_t lost; /* in no tree */
	uint64_t processes, threads;
	double seconds;
	uint64_t hz;
	double handler_ns; /* mean time in our handler per sample */
	double overhead;   /* share of the CPU time that sampling took; < 0: not known */
	/* All time of the threads, as the kernel counts it, if one of the metrics is of waiting and it was counted. */
	bool timed;
	uint64_t blocked_ns, queued_ns, cpu_ns;
	double by_samples; /* seconds that the samples stand for; < 0: the metric is none of waiting */
};

/* The numbers of one metric of a profile (the first: 0), or of the one that counts its samples. */
void summary_make(const struct profile *profile, uint32_t metric, struct summary *out);

/* Appends the two lines for people, each ending with a line end, and a third about times if the metric is of waiting:

   culprit: 41 203 samples of cpu-clock at 1000 Hz in 41.3 s, 3 processes, 12 threads
            paths: 41 201 complete, 2 partial (1 no recipe, 1 bad frame); 0 lost; overhead 0.21% of CPU time

   `name` begins the first ("culprit: "), as many spaces the second. */
void summary_print(const struct summary *summary, const char *name, struct buf *out);

/* Appends the line about the file, after as many spaces as `name` is long:

            culprit.prof (212 kB)   next: culprit report */
void summary_print_file(const char *name, const char *path, uint64_t size, struct buf *out);

/* Appends a line for each reason not to trust the profile: no samples at all, more than 1 % partial
   or lost, an event that was not counted all of the time, cut short, a time line that is not as fine as the samples, the profile's own note. Returns how
   many. */
unsigned summary_warn(const struct summary *summary, const struct profile *profile,
		      struct buf *out);

/* The same as members of the JSON object that is open: "samples", "lost", … and "notes", which are
   the lines of that text. */
void summary_json(const struct summary *summary, const struct profile *profile, const char *notes,
		  struct json *out);

/* The metrics of the profile, with all their samples, as the member "metrics" of the JSON object that is open. */
void summary_json_metrics(const struct profile *profile, struct json *out);

#define SUMMARY_COUNT_MAX 32
/* "41 203" into out; returns out. */
const char *summary_count(char out[SUMMARY_COUNT_MAX], uint64_t count);
