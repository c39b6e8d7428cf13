/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A view as text for people, and as JSON.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct json;
struct profile;
struct tree;

struct show_options {
	uint32_t metric;
	const char *derived; /* text: a quotient to show beside it (derived.h); NULL: what fits */
	bool flat;           /* rows without a tree */
	uint64_t limit;      /* rows; 0: all */
	unsigned width;      /* columns to fit into; 0: no matter */
	bool colour;
	bool full_names; /* of C++, with parameters and template arguments */
	bool functions;  /* say which function a loop is in */
	bool rows;       /* JSON: a tree as rows (base/json_tree.h) */
	bool brief;      /* a chain of nodes (brief.h) on one line */
	double least;    /* brief: fewer samples may leave a chain */
};

/* Appends a line of titles and one for each node that is not hidden. Returns how many more there
   were than `limit`. */
size_t show_text(const struct tree *tree, const struct profile *profile,
		 const struct show_options *options, struct buf *out);

/* Writes "metrics", and "tree" or "rows", into the object that is open. False: no memory. */
bool show_json(const struct tree *tree, const struct profile *profile,
	       const struct show_options *options, struct json *out);
