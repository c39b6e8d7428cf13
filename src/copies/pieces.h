/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The pieces of a copy: each is made from code that one entry of the unwind information describes, or none. Its steps
 * ascend also by where they are from.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "copies/copy.h"

struct err;
struct frames;
struct frames_entry;

struct copy_piece {
	const struct copy *copy;
	const struct frames_entry *entry; /* NULL: none describes it */
	size_t first, last;               /* its steps: up to `last`, without it */
	uint32_t start, end;              /* in the code of the copy */
	uint64_t lsda;                    /* the address of its own exception table; 0: none */
};

struct copy_pieces {
	struct copy_piece *items; /* those of a copy follow each other, as in its code */
	size_t count, room;
};

/* Adds the pieces of a copy, with no exception table yet. */
struct err *copy_pieces_add(const struct frames *frames, const struct copy *copy,
			    struct copy_pieces *out);
void copy_pieces_free(struct copy_pieces *pieces);

/* Where in the code of the copy the first instruction is that is from `address` or behind it; the end of the piece if
   it has none. */
uint32_t piece_place(const struct copy_piece *piece, uint64_t address);

/* Where the instruction at `address` is in the code; false if it is in none of these pieces, which are of one copy. */
bool copy_pieces_find(const struct copy_piece *pieces, size_t count, uint64_t address,
		      uint32_t *out);
