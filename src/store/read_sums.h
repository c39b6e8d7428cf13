/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Samples of a database added up into rows for people. */
#include <stddef.h>
#include <stdint.h>

struct err;
struct read_samples;

enum read_by {
	READ_BY_PROCEDURE,
	READ_BY_IMAGE,
	READ_BY_PROCESS,
	READ_BY_USER,
	READ_BY_CONTAINER,
	READ_BY_HOST,
	READ_BY_ALL
};

struct read_sum {
	const char *name, *detail; /* `detail`: of a procedure its image; else "" */
	uint32_t process;          /* READ_BY_ALL: whose */
	uint64_t *counts;          /* by event */
	uint64_t key[3];           /* what makes rows equal */
};

struct read_sums {
	struct read_sum *items; /* by the samples of one event, the most first */
	size_t count;
	uint64_t *totals, *counts;
	char **texts; /* names that were made */
	size_t text_count;
};

struct err *read_sums_make(const struct read_samples *samples, enum read_by by, size_t event,
			   struct read_sums *out);
void read_sums_free(struct read_sums *rows);
