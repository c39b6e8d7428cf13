/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * When the samples of a thread came: by the time line, where one was recorded
 * and it knows of every sample; else one after the other, each as long as its
 * weight. Sums over them are the same in both cases.
 *
 *     moments_open(job, metric, &timing)
 *     moments_make(&timing, thread, &moments) ... moments_free(&moments)
 *     moments_close(&timing)
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct job;

/* The samples of one metric that are exported. */
struct timing {
	const struct job *job;
	uint32_t metric;
	double step_ms;        /* that a sample stands for; 1 where it is no time */
	bool is_time;          /* it is some */
	size_t *order, *first; /* values by thread */
};

struct err *moments_open(const struct job *job, uint32_t metric, struct timing *out);
void moments_close(struct timing *timing); /* also after an error */
/* Whether a thread has any. */
bool moments_any(const struct timing *timing, uint32_t thread);

struct moment {
	uint32_t node;
	uint64_t count;       /* samples */
	double ms, length_ms; /* when it begins, since the recording began, and how long it is */
};

struct moments {
	struct moment *all; /* ascending by time */
	size_t count;
	bool timed; /* by the time line */
};

struct err *moments_make(const struct timing *timing, uint32_t thread, struct moments *out);
void moments_free(struct moments *moments);
