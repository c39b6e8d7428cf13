/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Cuts the code of a procedure into pieces that have one answer to all
 * questions: which line, which inlined function, which loop.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "structure/weave.h"

struct control;
struct line_row;

struct piece_part {
	uint64_t start, end;
};

struct piece_span { /* code of a context; inner ones have the larger depth */
	uint64_t start, end;
	uint32_t context, depth;
};

struct pieces_input {
	const struct piece_part *parts; /* ascending, without overlaps */
	size_t part_count;
	const struct line_row *rows; /* ascending, without overlaps */
	size_t row_count;
	const struct control *code;
	const struct piece_span *spans; /* in any order, overlapping */
	size_t span_count;
};

/* False: out of memory. *out is the caller's to free. */
bool pieces_cut(const struct pieces_input *input, struct weave_piece **out, size_t *count);

/* The innermost of overlapping spans, for every address that has one: ascending, without overlaps;
   the deepest wins, of equals the one that begins later. The caller frees *out. */
bool spans_flatten(const struct piece_span *spans, size_t count, struct piece_span **out,
		   size_t *out_count);
