/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Rows of a database, as people and scripts see them. */
#include "cmd/db.h"
#include "store/read_sums.h"

/* An error where there are no spans or no samples. */
struct err *db_nothing(const char *file, const struct read_samples *samples);

/* Begins the JSON object: when, events with their sums, losses. */
void db_head_json(const char *file, const struct read_samples *samples,
		  const struct read_sums *rows, struct json *j);
/* The member "samples" of a row: an array, by event. */
void db_samples_json(const struct read_samples *samples, const struct read_sum *row,
		     struct json *j);
