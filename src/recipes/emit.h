/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Unwind information as a file that debuggers load: an ELF debug file with the
 * image's build-id, a .debug_frame made from recipes, and a symbol for every
 * procedure.
 */
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct image;
struct rows;
struct symbols;

struct emit_input {
	struct image *image;
	const struct rows *rows; /* finished */
	const struct symbols *symbols;
	const uint64_t *starts; /* where procedures begin, ascending; those without a symbol are
				   named culprit_proc_ADDRESS */
	size_t start_count;
};

struct emit_stats {
	uint64_t entries; /* FDEs written */
	uint64_t symbols; /* of these, invented names: */
	uint64_t invented;
};

/* Appends the file to `out`. Recipes that say nothing to a debugger (signal frames, which it knows
   by itself, and CFI that no recipe can say) are left out. */
struct err *emit_debug_file(const struct emit_input *input, struct buf *out,
			    struct emit_stats *stats);
