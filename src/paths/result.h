/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What was counted of the functions of a program. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flow/graph.h"
#include "paths/numbering.h"

struct err;

enum path_state {
	PATH_EXACT,   /* all its paths were counted */
	PATH_REFUSED, /* it runs as it is; `reason` says why */
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
	struct graph graph;
	struct numbering numbering; /* of that graph */
	uint32_t *lengths;          /* by block: its instructions; NULL: to be seen in the file */
	uint64_t entries;           /* how often it was called */
	uint64_t *counts; /* how often each path was taken: numbering.path_count numbers */
	uint64_t
		unknown; /* paths that are not known: their sum was lost, as where a thread changes its stack */
};

struct path_result {
	struct path_function *functions; /* in no order */
	size_t count, room;
	/* Processes that were forked: each may have gone on with paths that its parent had begun. Such a path begins once,
	   and ends in both. */
	uint64_t forks;
};

/* Moves a function into the result: it takes all that is the function's, and frees it if there is no memory. Functions that are
   in the result may move meanwhile; their numberings stay those of their graphs. */
struct err *path_result_add(struct path_result *result, struct path_function *function);
/* Makes functions that are the same one: counted in several programs, with equal paths. */
void path_result_join(struct path_result *result);
/* Removes the functions whose `keep` is false; there is one for each. */
void path_result_keep(struct path_result *result, const bool *keep);
void path_function_free(struct path_function *function);
void path_result_free(struct path_result *result);
