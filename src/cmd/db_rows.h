/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Samples of a database added up into rows for people. */
#include "cmd/db.h"

enum db_by {
	DB_BY_PROCEDURE,
	DB_BY_IMAGE,
	DB_BY_PROCESS,
	DB_BY_USER,
	DB_BY_CONTAINER,
	DB_BY_HOST,
	DB_BY_ALL
};

struct db_row {
	const char *name, *detail; /* `detail`: of a procedure its image; else "" */
	uint32_t process;          /* DB_BY_ALL: whose */
	uint64_t *counts;          /* by event */
	uint64_t key[3];           /* what makes rows equal */
};

struct db_rows {
	struct db_row *items; /* by the samples of one event, the most first */
	size_t count;
	uint64_t *totals, *counts;
	char **texts; /* names that were made */
	size_t text_count;
};

struct err *db_rows_make(const struct read_samples *samples, enum db_by by, size_t event,
			 struct db_rows *out);
void db_rows_free(struct db_rows *rows);

/* An error where there are no spans or no samples. */
struct err *db_nothing(const char *file, const struct read_samples *samples);

/* Begins the JSON object: when, events with their sums, losses. */
void db_head_json(const char *file, const struct read_samples *samples, const struct db_rows *rows,
		  struct json *j);
/* The member "samples" of a row: an array, by event. */
void db_samples_json(const struct read_samples *samples, const struct db_row *row, struct json *j);
