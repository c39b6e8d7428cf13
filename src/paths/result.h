/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What was counted of the functions of a program. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flow/graph.h"
#include "paths/contexts.h"
#include "paths/numbering.h"

struct err;

enum path_state {
	PATH_EXACT,   /* all its paths were counted */
	PATH_REFUSED, /* it runs as it is; `reason` says why */
};

#define PATH_METRICS_MAX 16u /* of a result; of one run, fewer */

struct path_metric { /* something that was sampled */
	char *name, *unit;
};

struct path_value { /* of a path, in the metric's unit */
	uint64_t value;
	uint64_t
		sure; /* of that: by samples that were on no other path. The rest was shared out (paths/spots.h) */
};

struct path_metered { /* of a function, without what it calls */
	uint64_t samples;
	uint64_t
		placed; /* of these: on paths that were counted. The others were on paths that never ended, or are unknown */
	uint64_t sure;  /* of these: on a path that is known */
	uint64_t value; /* of all samples */
	struct path_value *paths; /* numbering.path_count; NULL: no path has any */
};

struct path_function {
	char *name;     /* as symbols have it, not demangled; "" if it has none */
	char *module;   /* the path of its file */
	char *build_id; /* of that file, in hexadecimal; NULL or "": not known */
	uint64_t
		until; /* seconds since 1970: a file without one that was written later is another one; 0: not known */
	uint64_t address;   /* its entry, in the addresses of the file */
	uint8_t state;      /* enum path_state */
	const char *reason; /* whoever made the function owns that */
	/* The rest is of those that are PATH_EXACT. */
	bool no_context; /* its contexts are not told apart, though those of others are */
	struct graph graph;
	struct numbering numbering; /* of that graph */
	uint32_t *lengths;          /* by block: its instructions; NULL: to be seen in the file */
	uint64_t entries;           /* how often it was called */
	uint64_t *counts; /* how often each path was taken: numbering.path_count numbers */
	uint64_t
		unknown; /* paths that are not known: their sum was lost, as where a thread changes its stack */
	struct path_metered
		*metered; /* as the metrics of the result; those from metered_count on are 0 */
	size_t metered_count;
};

struct path_result {
	struct path_function *functions; /* in no order */
	size_t count, room;
	/* Processes that were forked: each may have gone on with paths that its parent had begun. Such a path begins once,
	   and ends in both. */
	uint64_t forks;
	struct path_metric metrics[PATH_METRICS_MAX];
	size_t metric_count;
	struct path_contexts contexts; /* their counts are in those of the functions, too */
	size_t by; /* that functions and paths are ordered by, if there is one */
};

/* Moves a function into the result: it takes all that is the function's, and frees it if there is no memory. Functions that are
   in the result may move meanwhile; their numberings stay those of their graphs. */
struct err *path_result_add(struct path_result *result, struct path_function *function);
/* Returns the index of a metric, which is added if it is not there; SIZE_MAX: there is no room, or no memory. */
size_t path_result_metric(struct path_result *result, const char *name, const char *unit);
/* Makes functions that are the same one: counted in several programs, with equal paths. */
void path_result_join(struct path_result *result);
/* Removes the functions whose `keep` is false; there is one for each. */
void path_result_keep(struct path_result *result, const bool *keep);
/* NULL: nothing was sampled of it. */
const struct path_metered *path_function_metered(const struct path_function *function,
						 size_t metric);
void path_function_free(struct path_function *function);
void path_result_free(struct path_result *result);
