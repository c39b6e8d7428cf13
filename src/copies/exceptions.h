/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The exception table (LSDA) of a function for a piece of its copy. It says the same of the copy's calls as the table
 * says of those that they were made from.
 */
#include <stddef.h>
#include <stdint.h>

struct buf;
struct copy_piece;
struct err;
struct frames;

/* Appends the table of pieces[index] to `out`, which lies at `address` from its first byte on. `pieces` are all of one
   copy: exceptions may go on in others of them. An error names what cannot be said for the copy. */
struct err *exceptions_write(const struct frames *frames, const struct copy_piece *pieces,
			     size_t count, size_t index, uint64_t address, struct buf *out);
