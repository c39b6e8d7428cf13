/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How often the blocks and edges of a function were executed, from how often its paths were taken; and whether that adds up.
 *
 * A path is counted at its end. So these are the counts of all that was executed, but for paths that never ended: those of calls
 * that still went on when the program ended, and those that an exception, longjmp or exit left.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct path_function;

struct flow_start {
	uint64_t
		begun; /* paths that are known to have started here: by calls, and after paths that were cut */
	uint64_t ended; /* paths that started here and came to their end */
	bool freely; /* others come here, too, by an exception or by longjmp: how often is not counted */
};

enum flow_law {
	FLOW_CALLS,  /* more calls have ended than began */
	FLOW_STARTS, /* more paths that start at `block` have ended than began */
};

struct flow_problem { /* `ended` is at most `begun`, but it is not */
	enum flow_law law;
	uint32_t block;
	uint64_t begun, ended;
};

struct flow_counts {
	uint64_t *edges;           /* as those of the graph; 0 for those that exceptions take */
	uint64_t *blocks;          /* as those of the graph */
	uint64_t *leaves;          /* by block: how often the function was left there */
	struct flow_start *starts; /* as those of the numbering */
	uint64_t taken;            /* different paths that were taken */
	uint64_t ended;            /* paths that were taken, each as often as it was */
	uint64_t
		left; /* calls that were seen to end: without those at calls that never return, but may be caught here */
	uint64_t open; /* the other calls */
	struct flow_problem *problems;
	size_t problem_count;
};

/* Of a function that is PATH_EXACT. `forks`: see struct path_result. */
struct err *flow_check(const struct path_function *function, uint64_t forks,
		       struct flow_counts *out);
void flow_counts_free(struct flow_counts *counts);
/* Appends a problem as a sentence, without a full stop. */
void flow_problem_print(const struct path_function *function, const struct flow_problem *problem,
			struct buf *out);
