/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writes the code of a copy: block after block as in the function, with the code that counts in between.
 *
 * What the code needs of its thread, x86-64:
 *    %gs:0   counters, 8 bytes each (`counters`)
 *    %gs:-8  where its path stack ends. That grows upwards. An entry has a sum and the SP of the call that it waits for. The
 *            lowest one has an SP that is larger than any.
 */
#include <stddef.h>
#include <stdint.h>

#include "copies/copy.h"
#include "copies/live.h"
#include "copies/sums.h"

struct buf;
struct err;
struct graph;
struct image;

struct write_input {
	struct image *image;
	const struct graph *graph;
	const struct live *live;
	const struct sums *sums;
	const struct graph_part *parts; /* as in struct copy */
	size_t part_count;
	uint64_t address; /* of the copy */
	uint64_t tables;  /* address of what is written to the buffer of tables next */
	uint64_t bias;    /* as in struct object_input */
	uint64_t
		counters; /* bytes from the first counter of a thread to ours: of calls, then sums->words of paths */
};

/* Sets code and steps of `out`, which are malloc'ed, and adds to `tables`. *refused: why it cannot be written; then `out` and `tables`
   are as before. */
struct err *write_copy(const struct write_input *input, struct copy *out, struct buf *tables,
		       const char **refused);
