/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The samples of every function (loop, line, module) in each of several runs. What is one row: code
 * with the same plain name (compare/names.h) in modules of the same file name, wherever it lies and
 * whether it is inlined or not. Samples are a row's own, so that rows add up to all.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/lookup.h"

struct buf;
struct err;
struct modules;
struct runs;

enum counts_by { COUNTS_FUNCTION, COUNTS_LOOP, COUNTS_LINE, COUNTS_MODULE };

struct counts_options {
	enum counts_by by;
	bool no_inline;  /* inlined functions count for the function that they are in */
	bool debuginfod; /* download missing debug information */
};

struct row {
	char *name;        /* plain */
	char *function;    /* of a loop: the function that it is in, plain; else NULL */
	char *module;      /* file name; NULL: none */
	const char *kind;  /* "function", "loop", … */
	char *file;        /* where it is written, as the last run has it; NULL: not known */
	int line;          /* 0: not known */
	uint32_t last_run; /* that told where it is written */
};

struct counts {
	struct row *all;
	size_t count, room;
	size_t runs;
	uint64_t *counts;     /* of row i in run r: [i * runs + r] */
	struct lookup by_key; /* hash of what makes rows equal -> row */
};

/* Also appends to `notes` what could not be named and why. */
struct err *counts_make(const struct runs *runs, const struct counts_options *options,
			struct counts *out, struct buf *notes);
void counts_free(struct counts *rows);
