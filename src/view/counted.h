/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Functions whose paths were counted: their control flow with exact counts (which goes into that of view/explained.h), and their
 * paths. As columns of numbers, as the page has them (view/pack.h). The costliest functions and paths come first; a page has so many.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "paths/ranking.h"
#include "paths/result.h"

struct buf;
struct code;
struct err;
struct explained;
struct profile;
struct strings;

/* What was counted of the paths of a profile. */
struct counted_paths {
	struct path_result result;
	struct ranking ranking;
};

/* Takes it from the profile, and adds to that how often instructions were executed (paths/executed.h): so lines and functions are shown as
   samples are. Appends lines to `notes` about what cannot be trusted. Nothing is done if no paths were counted. To be freed in any case,
   before the profile. */
struct err *counted_paths_take(struct profile *profile, struct counted_paths *out,
			       struct buf *notes);
void counted_paths_free(struct counted_paths *paths);

enum counted_column {
	PATHS_FLOW, /* its control flow: which of "flow" */
	PATHS_NAME, /* texts */
	PATHS_SHORT,
	PATHS_MODULE,
	PATHS_FILE, /* text: that most of its lines are of; 0: not known */
	PATHS_CALLS,
	PATHS_OPEN,    /* of those, calls that were not seen to end */
	PATHS_UNKNOWN, /* paths that are in no other count */
	PATHS_INSTRUCTIONS,
	PATHS_POSSIBLE,
	PATHS_TAKEN,
	PATHS_LISTED, /* so many of those that were taken are in the columns below */
	PATHS_WRONG,  /* 1: there are counts that do not add up */
	PATH_ID,      /* by function: of its paths */
	PATH_COUNT,
	PATH_LENGTH, /* instructions */
	PATH_TEXT,   /* how it goes, in words */
	PATH_BY,     /* text: what tells it from those with the same words; 0: nothing has to */
	PATH_NEXT,   /* 1 + the block with which the next path begins; 0: the call ends */
	PATH_BLOCKS, /* how many it has */
	PATH_BLOCK,  /* by path: its blocks, of its function */
	COUNTED_COLUMNS,
};
extern const char *const counted_columns[COUNTED_COLUMNS]; /* names */

struct counted {
	struct counted_numbers {
		uint64_t *all;
		size_t count, room;
	} columns[COUNTED_COLUMNS];
	bool failed;
};

/* `ranking` may be NULL: nothing was counted. */
struct err *counted_make(const struct ranking *ranking, const struct profile *profile,
			 const struct code *code, struct strings *strings,
			 struct explained *explained, struct counted *out);
void counted_free(struct counted *counted);
