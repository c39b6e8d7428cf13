/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Recipes from the unwind information that compilers and assemblers wrote:
 * .eh_frame, .debug_frame, .sframe.
 */
#include <stddef.h>
#include <stdint.h>

#include "recipes/cfi_stats.h"

struct err;
struct image;
struct rows;

/* Adds the recipes of all code that `image` (or, for .debug_frame, `debug`; may be NULL) describes. Where
   several sections describe an address, .eh_frame goes before .debug_frame before .sframe.
   `rows` is not finished afterwards. Damage is counted, not fatal. */
struct err *cfi_read(struct image *image, struct image *debug, struct rows *rows,
		     struct cfi_stats *stats);

/* A call site of C++ (Rust, …) exception tables: a throw from a call that returns to an
   address in (start, end] goes on at `landing_pad`, in the same frame. */
struct cfi_landing {
	uint64_t start, end, landing_pad;
};

/* All call sites with a landing pad, in ascending order; malloc'ed, the caller's. */
struct err *cfi_landings(struct image *image, struct cfi_landing **out, size_t *count);

/* The code that one entry (FDE) of .eh_frame or .debug_frame describes: a procedure, or a part
   of one that was moved away. */
struct cfi_range {
	uint64_t start, end;
};

/* All of them, ascending; malloc'ed, the caller's. `debug` as for cfi_read. */
struct err *cfi_ranges(struct image *image, struct image *debug, struct cfi_range **out,
		       size_t *count);
