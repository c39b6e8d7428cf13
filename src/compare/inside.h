/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is inside of functions, in each build: all loops and all lines of those functions that have samples
 * (compare/pieces.h). What makes them alike:
 *
 *    loop    what it contains (called and inlined functions, statements by their distance from the loop's
 *            first line), where it begins in the function, how long it is and how it is nested. What a
 *            compiler makes several of, all with one line, is one
 *    line    the loop that it is in and what it calls, how far it is from the first line of its loop and of its
 *            function, from the lines beside it and from the last one, and how many loops it is in
 */
#include <stdbool.h>
#include <stdint.h>

#include "analyze/lookup.h"
#include "compare/pieces.h"

struct answer;
struct err;
struct scope;

struct inside {
	struct pieces loops, lines;
	struct inside_line *inner; /* lines that are in loops */
	size_t inner_count, inner_room;
	struct lookup scanned; /* procedures, and functions in them, of which all is known */
};

/* Where something was met. */
struct inside_where {
	uint32_t function; /* a number that is the same in all builds */
	uint32_t module;
	uint32_t last_run;      /* that has this build */
	const char *first_file; /* where the function is written in this build; NULL: not known */
	int first_line;         /* 0: not known */
	const struct answer *answer; /* of an instruction there; NULL: nothing else is added */
	bool nameless;               /* the function has no name, in any build: its loops are one */
};

/* Adds a loop, and all others that its function has in the procedure where it is. */
struct err *inside_add_loop(struct inside *inside, const struct scope *loop,
			    const struct inside_where *where, uint32_t *number);
/* The same for a line of a function that is inlined into so many others there. */
struct err *inside_add_line(struct inside *inside, const struct scope *line, uint32_t inlined,
			    const struct inside_where *where, uint32_t *number);
/* Finds which are the same, after all were added. */
struct err *inside_match(struct inside *inside);
void inside_free(struct inside *inside);
