/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The samples of every function (loop, line, module) in each of several runs. What is one row: what
 * is the same code in all runs (compare/matches.h), wherever it lies and whether it is inlined or not.
 * Samples are a row's own, so that rows add up to all.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct runs;

enum counts_by { COUNTS_FUNCTION, COUNTS_LOOP, COUNTS_LINE, COUNTS_MODULE };

struct counts_options {
	enum counts_by by;
	size_t old_runs; /* the first ones of the runs; 0: there are no sides */
	bool no_inline;  /* inlined functions count for the function that they are in */
	bool debuginfod; /* download missing debug information */
};

struct row {
	char *name;       /* plain */
	char *function;   /* of a loop: the function that it is in, plain; else NULL */
	char *module;     /* file name; NULL: none */
	const char *kind; /* "function", "loop", … */
	char *file;       /* where it is written, as the last run has it; NULL: not known */
	int line;         /* 0: not known */
};

struct counts {
	struct row *all;
	size_t count, room;
	size_t runs;
	uint64_t *counts; /* of row i in run r: [i * runs + r] */
};

/* Also appends to `notes` what could not be named and why. */
struct err *counts_make(const struct runs *runs, const struct counts_options *options,
			struct counts *out, struct buf *notes);
void counts_free(struct counts *rows);
