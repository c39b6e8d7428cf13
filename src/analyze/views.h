/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The ways to look at a recording. All are trees (analyze/tree.h):
 *
 *    tree     from the roots of threads to where samples were taken
 *    callers  below the root every function; below it its callers, theirs, …: a caller's values are
 *             the function's own samples (self) and those below it (total) that came this way
 *    flat     below the root every function, and nothing below
 *
 * In callers and flat the samples below a recursive function count once. Loops are nodes of the
 * tree, and in callers they stand between a function and where it is called from; as they are part
 * of a function, it has their samples where functions are listed. By loop (attribution.h), loops
 * take the place of functions.
 */
#include <stdbool.h>
#include <stdint.h>

struct attribution;
struct err;
struct tree;

enum view { VIEW_TREE, VIEW_CALLERS, VIEW_FLAT };

/* What the samples are parted by first. */
enum view_group { GROUP_NONE, GROUP_THREAD, GROUP_PROCESS, GROUP_RANK, GROUP_REASON };

struct view_options {
	enum view view;
	enum view_group group;
	uint32_t metric;    /* that orders siblings */
	double min;         /* callers: smaller shares of the whole are not followed */
	uint64_t depth;     /* callers: how far to go up; 0: as far as sensible */
	const bool *thread; /* which threads count, by index; NULL: all */
};

/* `attribution` must outlive the result. Scopes of groups are added to it. */
struct err *view_make(struct attribution *attribution, const struct view_options *options,
		      struct tree **out);
