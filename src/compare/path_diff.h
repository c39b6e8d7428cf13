/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What changed between paths that were counted, and others: those that are new, gone, more or less frequent. Counts are exact,
 * so nothing is said of chance.
 *
 * Functions are matched by path_pairs.h, their blocks by block_pairs.h. Paths are the same if they come by the same blocks,
 * of those that both builds have, and end alike. So if a build has another branch in a block's place, several paths of it may
 * be the same as one path of the other: these are one row.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "paths/ranking.h"

struct buf;
struct err;
struct json;
struct text_options;

struct path_diff_side { /* of a row */
	uint64_t count; /* how often the paths were taken */
	uint64_t cost;  /* instructions of all that */
	uint32_t paths; /* how many there are */
	uint32_t path;  /* the costliest: its index in the function's; nothing if there are none */
};

struct path_diff_row {
	struct path_diff_side old, new;
};

struct path_diff_function {
	const struct ranked_function *old, *new; /* NULL: it is not there */
	bool counted;    /* on all sides that have it, that is, not refused */
	bool other_code; /* not all blocks of both are pairs, or these differ */
	uint64_t old_cost, new_cost;
	struct path_diff_row *rows; /* those that differ first, by what they differ by in cost */
	size_t count;
	size_t fresh, gone, more, fewer; /* rows that differ */
	bool changed;                    /* one of these, or calls, or it was refused on one side */
	bool too_slow;
};

struct path_diff_options {
	double fail_above; /* how many more instructions are too many, as a part; < 0: any number is fine */
	bool fail_on_total; /* only all together can be too many */
};

struct path_diff {
	struct path_diff_options options;
	const char *old_name, *new_name; /* the caller's: files */
	const struct ranking *old, *new;
	struct path_diff_function
		*functions; /* those that changed first, by what they differ by in cost */
	size_t count, changed;
	uint64_t old_cost, new_cost; /* of all that were counted on the sides that have them */
	bool total_too_slow, too_slow;
};

/* Both rankings must outlive the result. */
struct err *path_diff_make(const struct ranking *old, const struct ranking *new,
			   const struct path_diff_options *options, struct path_diff *out);
void path_diff_free(struct path_diff *diff);

/* "new", "gone", "more", "fewer", "same". */
const char *path_diff_verdict(const struct path_diff_row *row);
/* "new", "gone", "changed", "same"; "refused before", "refused now". */
const char *path_diff_function_verdict(const struct path_diff_function *function);

/* Appends the table for people. At most `limit` paths of a function; 0: all, of all functions. */
struct err *path_diff_text(const struct path_diff *diff, const struct text_options *options,
			   struct buf *out);
/* Writes everything into the JSON object that is open. */
struct err *path_diff_json(const struct path_diff *diff, uint64_t limit, struct json *j);
