/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Paths of a function in words: how each of them goes, and what tells it from the others. */
#include <stddef.h>
#include <stdint.h>

#include "paths/numbering.h"
#include "paths/way_ends.h"
#include "paths/ways.h"

struct err;
struct ranked_function;

struct told_path {
	struct numbering_path path;
	char *text;
	char *difference; /* to those with the same text; NULL: there is none */
};

struct told {
	const struct ranked_function *f;
	struct ways own, outer, inner;
	struct way_ends ends;
	struct told_path *all; /* in the order of the numbers */
	size_t count;
};

/* Tells the paths with these numbers. `out` must not move, and is to be closed in any case. */
struct err *told_open(const struct ranked_function *function, const uint64_t *numbers, size_t count,
		      struct told *out);
void told_close(struct told *told);
/* The file that most lines of the function are of; NULL: not known. */
const char *told_file(const struct told *told);
