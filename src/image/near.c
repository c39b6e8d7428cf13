/* SPDX-License-Identifier: Apache-2.0 */
#include "image/near.h"
#include "base/array.h"

#include <stdlib.h>

struct near {
	const uint64_t *addresses;
	size_t count;
	uint64_t *lows, *highs; /* of the window around each; ascending after near_spread */
	uint64_t *starts;       /* of those that reach into a window from before it */
	size_t start_count, start_room;
	bool aliases, failed;
};

struct near *near_open(const uint64_t *addresses, size_t count)
{
	struct near *near = calloc(1, sizeof *near);
	if (!near)
		return NULL;
	near->addresses = addresses;
	near->count = count;
	near->lows = calloc(count + 1, sizeof *near->lows);
	near->highs = reallocarray(NULL, count + 1, sizeof *near->highs);
	if (!near->lows || !near->highs) {
		near_close(near);
		return NULL;
	}
	for (size_t i = 0; i < count; i++)
		near->highs[i] = UINT64_MAX;
	return near;
}

void near_close(struct near *near)
{
	if (!near)
		return;
	free(near->lows);
	free(near->highs);
	free(near->starts);
	free(near);
}

/* The first of them that is not below `value`, or their number. Symbols come in no order, so that a
   processor could not foresee a branch here: there is none. */
static size_t find_first(const uint64_t *sorted, size_t count, uint64_t value)
{
	size_t low = 0, left = count;
	while (left > 1) {
		size_t half = left / 2;
		low += (sorted[low + half - 1] < value) * half;
		left -= half;
	}
	return low + (left && sorted[low] < value);
}

/* Only the addresses next to it are told; near_spread tells the others. */
void near_see(struct near *near, uint64_t start)
{
	size_t next = find_first(near->addresses, near->count, start);
	if (next < near->count && near->lows[next] < start)
		near->lows[next] = start;
	if (next && near->highs[next - 1] > start)
		near->highs[next - 1] = start;
}

void near_spread(struct near *near)
{
	for (size_t i = 1; i < near->count; i++)
		if (near->lows[i] < near->lows[i - 1])
			near->lows[i] = near->lows[i - 1];
	for (size_t i = near->count; i-- > 1;)
		if (near->highs[i - 1] > near->highs[i])
			near->highs[i - 1] = near->highs[i];
}

static int compare_starts(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static void note_start(struct near *near, uint64_t start)
{
	if (!ARRAY_ROOM(near->starts, near->start_count, near->start_room)) {
		near->failed = true;
		return;
	}
	near->starts[near->start_count++] = start;
}

bool near_keeps(struct near *near, uint64_t start, uint64_t size)
{
	/* of the windows that do not end before it this one begins first */
	size_t window = find_first(near->highs, near->count, start);
	bool reaches = window < near->count && near->lows[window] <= start + size;
	if (near->aliases)
		return !reaches && bsearch(&start, near->starts, near->start_count, sizeof start,
					   compare_starts);
	if (reaches && start < near->lows[window])
		note_start(near, start);
	return reaches;
}

bool near_aliases(struct near *near)
{
	near->aliases = true;
	if (near->start_count)
		qsort(near->starts, near->start_count, sizeof *near->starts, compare_starts);
	return near->start_count;
}

bool near_failed(const struct near *near)
{
	return near->failed;
}
