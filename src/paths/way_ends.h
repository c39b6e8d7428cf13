/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where a path comes from and where it leads, in words: "loop 21: ", ", goes round", ", returns". */
#include <stdbool.h>
#include <stdint.h>

#include "flow/loops.h"

struct buf;
struct err;
struct numbering;
struct numbering_path;
struct ways;

struct way_ends {
	const struct numbering *numbering;
	const struct ways *outer, *inner;
	struct loops loops;
	uint32_t *loop_of; /* by block: the loop that it is the header of */
	bool *caught;      /* by block: exceptions come there */
	bool *cut;         /* by block: paths that were cut go on there */
};

/* Blocks are named by `outer`; those that have the same name there by `inner`. Both must outlive the result. */
struct err *way_ends_open(const struct numbering *numbering, const struct ways *outer,
			  const struct ways *inner, struct way_ends *out);
void way_ends_close(struct way_ends *ends);

/* Appends what stands before the lines; nothing for a path from the entry. */
void way_ends_print_start(const struct way_ends *ends, const struct numbering_path *path,
			  struct buf *out);
/* Appends what stands after them. */
void way_ends_print_end(const struct way_ends *ends, const struct numbering_path *path,
			struct buf *out);
