/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The unwind information and the exception tables of copies, made from those of their functions: the contents of
 * .gcc_except_table, .eh_frame and .eh_frame_hdr, one after the other.
 *
 * A piece of a copy has an entry if its code in the function has one. All pointers count from where they are.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct copy;
struct err;
struct frames;

struct unwind_copy {
	struct buf bytes; /* of all three */
	size_t exceptions_size;
	size_t frames, frames_size; /* where it begins; its size */
	size_t search, search_size;
};

/* Writes them for `copies`, which ascend by address, to lie at `address`, a multiple of 8. An error says why
   there can be no such copy, and names the function. */
struct err *unwind_copy_write(const struct frames *frames, const struct copy *copies, size_t count,
			      uint64_t address, struct unwind_copy *out);
void unwind_copy_free(struct unwind_copy *unwind);
