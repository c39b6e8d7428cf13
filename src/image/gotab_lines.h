/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What Go's own table says, in the terms of lines.h and inlines.h: internal to those. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gotab;
struct inline_procedure;
struct line_row;
struct lines_files;

/* The rows of [start, end), as lines_range() gives them; false: no memory. */
bool gotab_rows(const struct gotab *table, struct lines_files *files, uint64_t start, uint64_t end,
		struct line_row **rows, size_t *count);

/* A function and what was inlined into it; false: no memory, or no such function. */
bool gotab_tree(const struct gotab *table, size_t index, struct lines_files *files,
		struct inline_procedure *out);
