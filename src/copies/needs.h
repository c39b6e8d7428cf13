/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which registers callers need after a call, although the rules for calls let functions change them. Who calls a function of
 * the same file may know that it leaves a register alone: compilers look, and assembly has rules of its own. Who calls it from
 * elsewhere, or by a pointer, knows the rules only.
 *
 * And which registers code reads that is jumped to. It can be a part of the function that jumps, as its cold code.
 */
#include <stdbool.h>
#include <stdint.h>

struct err;
struct graph;
struct live;
struct original;

struct needs {               /* by procedure */
	uint32_t *registers; /* that callers need after a call */
	uint32_t *reads;     /* registers that it reads, if others jump to its beginning */
	bool *sure;          /* nothing else is needed: all calls by code of this file were seen */
};

/* Of the procedures that are wanted: those that have a graph in `graphs`. */
struct err *needs_find(const struct original *original, struct graph *const *graphs,
		       struct needs *out);
void needs_free(struct needs *needs);
/* live_find() of a procedure, by what is needed of it. */
struct err *needs_live(const struct needs *needs, const struct original *original,
		       uint32_t procedure, const struct graph *graph, struct live *out);
