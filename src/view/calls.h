/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * From which lines the nodes of the page's tree are called: a function by the
 * instruction of its caller, an inlined function where it was inlined. Most are
 * called from one line. Of the others it is told how many samples each line has.
 * So the page finds what a line has in any part of the tree.
 */
#include <stddef.h>
#include <stdint.h>

struct attribution;
struct contexts;
struct err;
struct lines;
struct strings;

/* Samples of a node that is called from several lines, from one of these. */
struct call_row {
	uint32_t node; /* its place in the order */
	uint32_t line, metric;
	uint64_t count;
};

struct calls {
	uint32_t *line;        /* by place of a node; 0: several, or not known */
	struct call_row *rows; /* ascending by node, line, metric; each once */
	size_t row_count, room;
};

/* `strings` has the texts of `lines`. */
struct err *calls_make(const struct attribution *attribution, const struct contexts *contexts,
		       const struct lines *lines, struct strings *strings, struct calls *out);
void calls_free(struct calls *calls);
