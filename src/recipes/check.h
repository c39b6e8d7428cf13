/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How well a binary can be unwound. The two sources of recipes, CFI and the analysis of the code, know nothing of each
 * other (but for the landing pads of exceptions), so each is the test of the other.
 */
#include <stdbool.h>
#include <stdint.h>

#include "recipes/analysis.h"
#include "recipes/cfi.h"
#include "recipes/compare.h"
#include "recipes/emit.h"
#include "recipes/procedures.h"
#include "recipes/rows.h"

struct err;
struct image;
struct symbols;

struct check_options {
	bool stripped, bounds; /* without its symbol table; with where procedures begin */
	uint64_t list;         /* so many disagreements of each cause */
	const char *emit;      /* a debug file to write, or NULL */
	int unwind;            /* what it has: 0: auto, 1: analysis */
};

/* All that is found out about one binary. */
struct check {
	const char *path;
	struct image *image, *debug;
	struct symbols *names; /* all there are */
	struct symbols *given; /* what the analysis gets to see */
	struct rows cfi;
	struct cfi_stats cfi_stats;
	struct analysis analysis;
	struct compare compare;
	uint64_t by_symbol, inferred; /* procedures */
	bool has_bounds, bounds_by_cfi;
	struct procedures truth;
	struct procedures_match match;
	struct emit_stats emitted;
};

/* check_free in any case. */
struct err *check_look(const char *path, const struct check_options *o, struct check *c);
/* Writes the debug file that was asked for. */
struct err *check_emit(struct check *c, const struct check_options *o);
void check_free(struct check *c);
