/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The tree of scopes of a recording and its samples by thread and line. Nodes
 * are in preorder, siblings with the largest total of the first metric first, so
 * that a subtree is a range and what is read first matters most.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct attribution;
struct comparison;
struct err;
struct lines;
struct profile;
struct profile_value;
struct tree;

/* Samples of one node in one thread and one line, and why the thread waited there. */
struct context_row {
	uint32_t node; /* its place in the order */
	uint32_t thread, line, metric;
	uint8_t reason; /* enum reason (analyze/reasons.h) */
	uint64_t count;
};

struct contexts {
	struct tree *tree;
	uint32_t *order;          /* place -> node of the tree */
	uint32_t *depths;         /* of the node at each place; the root's is 0 */
	struct context_row *rows; /* ascending by node, thread, line, reason, metric; each once */
	size_t row_count;
	uint32_t *of_node; /* place of each node of the profile */
};

/* `attribution` must outlive the result. Where there is a comparison (NULL: none), scopes that are the
   same are one, and a level that one side has does not part what is below it (view/align.h). */
struct err *contexts_make(struct attribution *attribution, const struct lines *lines,
			  const struct comparison *comparison, struct contexts *out);
void contexts_free(struct contexts *contexts);

/* Compares all but the metric and the count: rows that are equal in it are one row of the page. */
int contexts_compare(const struct context_row *a, const struct context_row *b);
/* The row of a node, thread and metric of the profile; NULL: there is none. */
const struct context_row *contexts_find(const struct contexts *contexts,
					const struct attribution *attribution,
					const struct lines *lines,
					const struct profile_value *value);
/* By row, its number on the page. To be freed; NULL without memory. */
uint32_t *contexts_number(const struct contexts *contexts);

/* By node of a profile: whether it or one below it has samples. To be freed; NULL without memory. */
bool *contexts_wanted(const struct profile *profile);
