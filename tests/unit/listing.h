/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Machine code as a listing: the bytes of each instruction, its text for the
 * reader, and what is expected to be known when it is about to run.
 *
 * Expected is a recipe in the words of `culprit check`, or
 *   "entry"  the recipe at the entry of a procedure
 *   "start"  the same, and that a procedure begins here
 *   "-"      nothing: the code is not reached
 *   ""       what the line before expects
 * A "~" before it means: inferred.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "flow/frame.h"
#include "isa/insn.h"
#include "recipes/compare.h"
#include "unit.h"
#include "unwind/recipe.h"

#define LISTING_START 0x1000u
#define LISTING_MAX 4096

struct line {
	const char *bytes; /* hex: an instruction word of aarch64, single bytes of x86-64 */
	const char *text;
	const char *expected;
};

static inline uint8_t hex_byte(const char *hex)
{
	unsigned byte;
	assert_int_equal(sscanf(hex, "%2x", &byte), 1);
	return (uint8_t)byte;
}

/* Puts the bytes of a line to `out`; returns how many. */
static inline size_t line_bytes(const struct isa *isa, const struct line *line, uint8_t *out)
{
	size_t size = strlen(line->bytes) / 2, unit = isa->insn_min;
	for (size_t i = 0; i < size; i++)
		out[i] = hex_byte(line->bytes + 2 * (i - i % unit + unit - 1 - i % unit));
	return size;
}

static inline size_t listing_bytes(const struct isa *isa, const struct line *lines, size_t count,
				   uint8_t out[LISTING_MAX])
{
	size_t size = 0;
	for (size_t i = 0; i < count; i++) {
		assert_true(size + strlen(lines[i].bytes) / 2 <= LISTING_MAX);
		size += line_bytes(isa, &lines[i], out + size);
	}
	return size;
}

#define WORDS_MAX (COMPARE_WORDS_MAX + 40)

/* A state in words. NULL: not reached. */
static inline const char *state_words(const struct isa *isa, const struct frame_state *state,
				      char out[WORDS_MAX])
{
	char words[COMPARE_WORDS_MAX], extra[32] = "";
	struct recipe r;
	if (!state)
		return strcpy(out, "-");
	frame_recipe(isa, state, &r);
	if (r.cfa == RECIPE_REG || r.cfa == RECIPE_DEREF)
		assert_int_equal(r.source, RECIPE_FROM_CODE);
	if (r.extra == RECIPE_AT_CFA)
		snprintf(extra, sizeof extra, " extra=[CFA%+d]", r.extra_offset);
	else if (r.extra != RECIPE_SAME)
		snprintf(extra, sizeof extra, " extra=%s",
			 r.extra == RECIPE_LOST ? "lost" : "elsewhere");
	snprintf(out, WORDS_MAX, "%s%s%s", state->guessed ? "~" : "", compare_words(isa, &r, words),
		 extra);
	return out;
}

/* What a line expects in full; `before` is what the line before does. */
static inline const char *expected_words(const struct isa *isa, const char *expected,
					 const char *before)
{
	const char *entry = isa->call_pushes ? "CFA=sp+8 ra=[CFA-8] fp=same"
					     : "CFA=sp ra=lr fp=same";
	if (!*expected)
		return before;
	if (!strcmp(expected, "~entry"))
		return isa->call_pushes ? "~CFA=sp+8 ra=[CFA-8] fp=same" : "~CFA=sp ra=lr fp=same";
	return !strcmp(expected, "entry") || !strcmp(expected, "start") ? entry : expected;
}

#define COUNT(array) (sizeof array / sizeof *(array))
