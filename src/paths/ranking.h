/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The functions and paths of a result, the costliest first: by what was sampled of a metric (path_result.by), or else by the
 * instructions that were executed in them.
 *
 * A path is hot if it has at least a hundredth of the metric. It is dense if it has more of it per instruction than all
 * functions have together: there the code itself is slow. Else it is sparse: it is executed very often.
 */
#include <stddef.h>
#include <stdint.h>

#include "paths/files.h"
#include "paths/flow_check.h"
#include "paths/result.h"

struct err;
struct path_function;

struct ranked_path {
	uint64_t number, count;
	uint64_t length;           /* instructions of it */
	struct path_value sampled; /* of the metric */
};

struct ranked_function {
	const struct path_function *function;
	char *name;                  /* for people, not shortened; never NULL */
	struct path_file *file;      /* NULL: it cannot be read */
	struct flow_counts flow;     /* of this and the rest, nothing is known if it was refused */
	uint32_t *lengths;           /* by block: its instructions */
	uint64_t instructions;       /* that were executed, on paths that ended */
	struct path_metered metered; /* of the metric, but for its list */
	struct ranked_path *paths;   /* those that were taken */
	size_t path_count;
};

struct ranking {
	struct ranked_function *functions; /* those that were refused come last, by name */
	size_t count, refused;
	size_t wrong;                     /* functions that have counts that do not add up */
	uint64_t instructions;            /* of all */
	const struct path_metric *metric; /* NULL: none was sampled */
	struct path_metered metered;      /* of all functions */
	struct path_files files;
};

struct err *ranking_make(const struct path_result *result, struct ranking *out);
void ranking_free(struct ranking *ranking);

/* The name of a function for people, malloc'ed. `symbol`: "" if it has none. */
char *ranking_name(const char *symbol, uint64_t address);

/* The instructions of all times a path was taken. */
uint64_t ranked_path_cost(const struct ranked_path *path);
/* The same of the first paths of a function, at most so many. */
uint64_t ranked_function_cost(const struct ranked_function *function, size_t count);
/* The same of the metric. */
uint64_t ranked_function_value(const struct ranked_function *function, size_t count);

enum path_heat { PATH_COLD, PATH_SPARSE, PATH_DENSE };
/* Of what has so much of the metric, and was so many instructions. */
enum path_heat ranking_heat(const struct ranking *ranking, uint64_t value, uint64_t instructions);
const char *path_heat_name(enum path_heat heat);

/* Puts the paths in the order of their counts instead. */
void ranked_function_by_count(struct ranked_function *function);
