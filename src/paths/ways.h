/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How paths go, for people: `12-18 -> 21 -> stl_vector.h:30`. Ranges are of lines that have code of the function: in `12-18`,
 * lines 13 to 17 were come to as well, unless they have no code.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct graph;
struct numbering_path;
struct path_file;

struct way_line {
	uint32_t file; /* index + 1 in `files`; ways of one function only */
	uint32_t line;
};

enum way_detail {          /* inlined code is */
		  WAY_OWN, /* at its own lines if these are in the file of the function; else at the line that it was called on */
		  WAY_OUTER, /* at the line of the function that it was called on */
		  WAY_INNER, /* at its own lines */
};

struct ways {
	const struct graph *graph;
	char **files; /* their paths */
	size_t file_count, file_room;
	uint32_t
		main; /* the file that most lines are of: it is not named again and again; 0: none */
	struct way_line *known; /* all lines, ascending, each once */
	size_t known_count;
	uint32_t *ranks; /* of blocks: indexes in `known`, ascending */
	uint32_t *first; /* by block: where its ranks begin; one more at the end */
};

/* Without lines there are none, and ways are told by addresses. `file` may be NULL. */
struct err *ways_open(const struct graph *graph, struct path_file *file, enum way_detail detail,
		      struct ways *out);
/* The same from lines that are known: those of block b are lines[first[b]] up to lines[first[b + 1]]. */
struct err *ways_make(const struct graph *graph, const struct way_line *lines,
		      const uint32_t *first, struct ways *out);
void ways_close(struct ways *ways);
/* Names files as the other one does. */
void ways_agree(struct ways *ways, const struct ways *other);

/* Appends the lines that a path comes by; addresses of its blocks where there are none. */
void ways_print(const struct ways *ways, const struct numbering_path *path, struct buf *out);
/* Appends the first line of a block, or its address. */
void ways_print_block(const struct ways *ways, uint32_t block, struct buf *out);
