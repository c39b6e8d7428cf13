/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Numbers the paths through a procedure (Ball and Larus 1996), so that code can count them.
 *
 * A path starts at the entry of the procedure, or where the path before it was cut. It ends where the procedure is left,
 * or at the next cut. Before a call that may return several times, as setjmp, is a cut: what comes behind it is then another
 * path, each time. At least one edge of each cycle is cut, so no block comes twice in a path, and each procedure has a
 * bounded number of paths. If these are too many, more edges are cut, the coldest first: no execution is ever left
 * out.
 *
 * Code counts paths by a sum, in a register. At the start of a path the sum is set. Some edges add to it. At the end of
 * the path the sum is the number of the path. The edges that add are chosen so that hot ones do not.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct graph;

struct numbering_input {
	const struct graph *graph;
	const double *
		weights; /* how often each edge of the graph is taken, in any unit; NULL: guessed from its loops */
	uint64_t most;    /* paths with the same start, at most: more are cut; 0: 4096 */
	const bool *cuts; /* edges of the graph that are cut in any case; NULL: none */
};

struct numbering_edge { /* what is done on an edge of the graph */
	int64_t add;    /* to the sum */
	bool cut;       /* then the sum is counted, and it is set: */
	int64_t set;
	/* By an exception that leaves a call which never returns: the path before it has ended before the call, and the sum
	   is only set. */
	bool thrown;
};

struct numbering_start {
	uint32_t block;
	uint64_t first; /* its paths have the numbers from here on */
	int64_t set;    /* the sum at the start */
};

struct numbering {
	const struct graph *graph;
	struct numbering_edge *edges; /* as those of the graph */
	int64_t *
		leave; /* by block: what is added before the sum is counted, if the procedure is left there */
	struct numbering_start *starts; /* the entry first; the others are targets of cut edges */
	size_t start_count;
	uint64_t path_count;
	uint64_t *ways;     /* by block: how many paths lead on from it */
	int64_t *behind;    /* by block: the number of a path up to here, less its sum */
	uint32_t cut_count; /* edges that were cut because of too many paths */
};

struct err *numbering_make(const struct numbering_input *input, struct numbering *out);
void numbering_free(struct numbering *numbering);

/* Makes a numbering again, as it was, for telling paths: of its cuts (one for each edge) and the blocks of its starts, in their
   order. What code adds to the sum is not known, so this is 0, and `leave` and `behind` are NULL. An error if edges that are
   not cut go in a circle, or if there are more paths than `most`. */
struct err *numbering_restore(const struct graph *graph, const bool *cuts, const uint32_t *starts,
			      size_t start_count, uint64_t most, struct numbering *out);

/* Whether the procedure can be left at the end of a block. */
bool numbering_leaves(const struct graph *graph, uint32_t block);

/* How a path goes: block after block, then by `edge`, which is cut, or out of the procedure (NUMBERING_OUT). */
#define NUMBERING_OUT UINT32_MAX
struct numbering_path {
	uint32_t *blocks;
	size_t count, room;
	uint32_t edge;
};
/* Tells the path with this number, which must be smaller than path_count. `out` may be used again. */
struct err *numbering_decode(const struct numbering *numbering, uint64_t number,
			     struct numbering_path *out);
void numbering_path_free(struct numbering_path *path);

/* Tells the blocks of a path that is still going on: it is at the end of `block`, where the register has this sum.
   An error if there is no such path. */
struct err *numbering_decode_open(const struct numbering *numbering, uint32_t block, int64_t sum,
				  struct numbering_path *out);
