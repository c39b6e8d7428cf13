/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What `record`, `import` and `merge` tell of the profile that they made.
 */
#include <stdbool.h>
#include <stdio.h>

struct buf;
struct output;
struct profile;

struct outcome {
	const struct profile *profile;
	const char *path;            /* the file, as it was asked for */
	const struct output *output; /* NULL: it could not be written */
	const char *notes;           /* for people, one line each */
};

/* One line of JSON: "file", "bytes", and "summary" and "metrics" as `culprit report --json` has them. */
void outcome_json(const struct outcome *outcome, FILE *out);

/* The notes as lines below a summary that begins with `name`: after as many spaces. */
void outcome_put_notes(const char *notes, const char *name, struct buf *out);

/* The line of a summary about a file with counts of paths: how large it is, and what shows them. */
void outcome_put_paths_file(const char *name, const char *path, const struct output *output,
			    struct buf *out);

/* -1 to go on: a summary as JSON and no summary at all exclude each other. */
int outcome_check(const char *command, bool json, bool quiet);
