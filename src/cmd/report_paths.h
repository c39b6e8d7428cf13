/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* `culprit report --by=path`: what `culprit paths -o` has counted, shown as `culprit paths` does. */
#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#define REPORT_PATHS_LIMIT 10 /* by default */

struct report_paths_options {
	const char *path;              /* of the profile */
	uint64_t limit;                /* paths of a function; 0: all, of all functions */
	const char *metric;            /* that they are ordered by; NULL: the first */
	const regex_t *focus, *ignore; /* names of functions; NULL: all, none */
	bool json, pager;
};

/* Returns the exit status. */
int report_paths(const struct report_paths_options *options);
