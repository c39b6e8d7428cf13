/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Recipes from the machine code alone: runs the trace of flow/ over a module
 * and reads a recipe off every state.
 */
#include <stdbool.h>
#include "flow/survey.h"
#include "flow/trace.h"

struct err;
struct image;
struct isa;
struct rows;
struct symbols;

struct analysis {
	const struct isa *isa;
	struct survey survey;
	struct trace *trace;
	struct trace_landing *landings;
	size_t landing_count;
	struct trace_input input;
	struct analysis_range
		*pointers; /* ascending: code that keeps frame pointers, whatever else it does */
	size_t pointer_count;
};

struct analysis_range {
	uint64_t start, end;
};

/* Analyses the code of `image`. `symbols` (may be NULL) say where procedures begin. The exception
   tables are used to see where control may go (landing pads), not for how to unwind. */
struct err *analysis_run(struct image *image, const struct symbols *symbols, struct analysis *out);
void analysis_free(struct analysis *analysis);

/* Adds a row for every run of instructions with the same recipe. */
void analysis_rows(const struct analysis *analysis, struct rows *rows);
