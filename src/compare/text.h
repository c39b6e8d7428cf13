/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the tables of stats and diff have in common. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct json;
struct row;

#define TEXT_DIM "\033[2m"
#define TEXT_RED "\033[31m"
#define TEXT_GREEN "\033[32m"
#define TEXT_PLAIN "\033[0m"

struct text_options {
	uint64_t limit; /* rows; 0: all */
	unsigned width; /* columns to fit into; 0: no matter */
	bool colour;
	bool full_names; /* of C++, with parameters and template arguments */
};

/* Appends foreign text without what would move a terminal's cursor. */
void text_harmless(const char *text, struct buf *out);

/* Appends the name of a row and what follows it ("solve  mesh.cc:12  (app)"), in `left` columns. */
void text_row(const struct row *row, const struct text_options *options, size_t left,
	      struct buf *out);

/* A cost for people: time where the unit is "ns", else a number. */
#define TEXT_COST_MAX 32
const char *text_cost(char out[TEXT_COST_MAX], double cost, const char *unit);

/* A ratio as a difference in per cent: "+10.0%", "x12" where it is large. */
#define TEXT_RATIO_MAX 16
const char *text_ratio(char out[TEXT_RATIO_MAX], double ratio);
/* The same, but if it is not 1, it never reads as none. */
const char *text_change(char out[TEXT_RATIO_MAX], double ratio);

/* What a row is, as members of the JSON object that is open. */
void text_row_json(const struct row *row, struct json *j);
/* The lines of a text as the array "notes". */
void text_notes_json(const char *notes, struct json *j);
