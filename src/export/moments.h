/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * When the samples of a thread came: by the time line, where one was recorded
 * and it knows of every sample; else one after the other, each as long as its
 * weight. Sums over them are the same in both cases.
 */
#include <stddef.h>
#include <stdint.h>

struct err;
struct job;

struct moment {
	uint32_t node;
	uint64_t count; /* samples */
	double ms;      /* since the recording began */
};

struct moments {
	struct moment *all; /* ascending by time */
	size_t count;
};

/* `values`: indices of the thread's values that are exported, all of one metric; `step_ms`: what a
   sample stands for. */
struct err *moments_make(const struct job *job, uint32_t thread, const size_t *values,
			 size_t value_count, double step_ms, struct moments *out);
void moments_free(struct moments *moments);
