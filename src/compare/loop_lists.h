/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which loops of a function are the same in different builds of it. A loop has no name, and its line
 * changes with every line above it. So the loops of one build, in the order in which they are
 * written, are laid beside those of another, so that those that are alike come together: by what
 * they contain (called and inlined functions, statements by their distance from the loop's first line), by
 * where they begin in the function, by their length and by how they are nested. A loop that only one
 * build has, around others or beside them, does not shift the rest.
 *
 * What a compiler makes several of (all with one line) is one loop. Without lines, the order is that of
 * addresses.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/lookup.h"

struct answer;
struct err;
struct scope;

struct loop_lists {
	struct loop *all;
	size_t count, room;
	struct loop_content *contents;
	size_t content_count, content_room;
	struct lookup by_place;   /* -> loop */
	struct lookup procedures; /* whose loops are all known */
};

/* Where a loop was met. */
struct loop_where {
	uint32_t function; /* a number that is the same in all builds */
	uint32_t module;
	uint32_t last_run;           /* that has this build */
	const struct scope *written; /* the function in this build */
	const struct answer *answer; /* of an instruction in the loop; NULL: not known */
	bool nameless;               /* the function has no name, in any build: its loops are one */
};

/* Adds a loop, and the other ones that its function has in the procedure where it is. */
struct err *loop_lists_add(struct loop_lists *loops, const struct scope *loop,
			   const struct loop_where *where, uint32_t *number);
/* Says what a loop contains: a number that is the same in all builds. */
struct err *loop_lists_contain(struct loop_lists *loops, uint32_t number, uint64_t what);
/* Finds which are the same, after all were added. */
struct err *loop_lists_match(struct loop_lists *loops);
/* The number that is the same for all that are. */
uint32_t loop_lists_same(const struct loop_lists *loops, uint32_t number);
void loop_lists_free(struct loop_lists *loops);
