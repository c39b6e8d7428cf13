/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Samples of a function whose paths are counted: where they met it, until the counts are known. Then each sample goes to the
 * path that it was on.
 *
 * A sample says where it was, and mostly the sum of the path that far. That leaves the paths that go on from there: their numbers
 * follow each other. If only one of these was ever taken, the sample was on it: that is *sure*. Else each of them gets as
 * much of the sample as it was often taken, of all of them. The same holds for the paths through a block, if no more than
 * that is known.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct path_function;

struct path_spot {
	uint64_t first, count; /* paths with these numbers; count 0: those through the block */
	uint32_t block;        /* SPOT_NO_BLOCK: that is not known either */
};
#define SPOT_NO_BLOCK UINT32_MAX

struct spot_total { /* of all samples at a spot */
	struct path_spot spot;
	uint32_t metric;
	uint64_t samples, value;
};

struct path_spots { /* start with = {0} */
	struct spot_total *totals;
	size_t count, room;
	uint32_t *table; /* of indices, plus 1; 0: free */
	size_t table_size;
};

/* False: there is no memory. */
bool path_spots_add(struct path_spots *spots, const struct path_spot *spot, uint32_t metric,
		    uint64_t value);
void path_spots_free(struct path_spots *spots);

/* Gives all samples to the paths of a function that is PATH_EXACT, for so many metrics. */
struct err *path_spots_give(const struct path_spots *spots, uint32_t metric_count,
			    struct path_function *function);
