/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The functions and paths of a result, the costliest first: by the instructions that were executed in them. */
#include <stddef.h>
#include <stdint.h>

#include "paths/files.h"
#include "paths/flow_check.h"

struct err;
struct path_function;
struct path_result;

struct ranked_path {
	uint64_t number, count;
	uint64_t length; /* instructions of it */
};

struct ranked_function {
	const struct path_function *function;
	char *name;                /* for people, not shortened; never NULL */
	struct path_file *file;    /* NULL: it cannot be read */
	struct flow_counts flow;   /* of this and the rest, nothing is known if it was refused */
	uint32_t *lengths;         /* by block: its instructions */
	uint64_t instructions;     /* that were executed, on paths that ended */
	struct ranked_path *paths; /* those that were taken */
	size_t path_count;
};

struct ranking {
	struct ranked_function *functions; /* those that were refused come last, by name */
	size_t count, refused;
	size_t wrong;          /* functions that have counts that do not add up */
	uint64_t instructions; /* of all */
	struct path_files files;
};

struct err *ranking_make(const struct path_result *result, struct ranking *out);
void ranking_free(struct ranking *ranking);

/* The instructions of all times a path was taken. */
uint64_t ranked_path_cost(const struct ranked_path *path);
/* The same of the first paths of a function, at most so many. */
uint64_t ranked_function_cost(const struct ranked_function *function, size_t count);
/* Puts the paths in the order of their counts instead. */
void ranked_function_by_count(struct ranked_function *function);
