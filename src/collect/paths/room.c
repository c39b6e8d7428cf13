/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gaps below the module are taken first, at their upper end: there nothing grows. Above a program its heap grows, so what is
 * taken there is far from it. Below a stack nothing is taken.
 */
#include "collect/paths/room.h"

#include <string.h>

#include "process/maps.h"

#define LOWEST (UINT64_C(1) << 20)  /* an address that programs may use */
#define BESIDE (UINT64_C(64) << 10) /* is left free */
#define FROM_HEAP (UINT64_C(1) << 30)
/* The kernel gives memory from the upper end of the largest gap down: there it will do so next. */
#define LARGE (UINT64_C(1) << 36)
#define FROM_LARGE (UINT64_C(512) << 20)
#define QUIET (UINT64_C(256) << 20)

static bool reaches(uint64_t reach, uint64_t at, uint64_t size, uint64_t low, uint64_t high)
{
	uint64_t first = at < low ? at : low;
	uint64_t end = at + size > high ? at + size : high;
	return end - first < reach;
}

static bool is_taken(const struct room_taken *taken, size_t count, uint64_t at, uint64_t size)
{
	for (size_t i = 0; i < count; i++)
		if (at < taken[i].end + BESIDE && taken[i].start < at + size + BESIDE)
			return true;
	return false;
}

/* The highest place of a gap that is not taken; 0: none. */
static uint64_t from_above(uint64_t start, uint64_t end, const struct room_taken *taken,
			   size_t count, uint64_t size)
{
	uint64_t need = size + 2 * BESIDE;
	for (size_t tries = 0; tries <= count; tries++) {
		if (end < start || end - start < need)
			return 0;
		uint64_t at = (end - BESIDE - size) & ~UINT64_C(4095);
		if (!is_taken(taken, count, at, size))
			return at;
		uint64_t lowest = at;
		for (size_t i = 0; i < count; i++)
			if (at < taken[i].end + BESIDE && taken[i].start < at + size + BESIDE &&
			    taken[i].start < lowest)
				lowest = taken[i].start;
		end = lowest;
	}
	return 0;
}

/* The lowest one. */
static uint64_t from_below(uint64_t start, uint64_t end, const struct room_taken *taken,
			   size_t count, uint64_t size)
{
	uint64_t at = (start + BESIDE + 4095) & ~UINT64_C(4095);
	for (size_t i = 0; i < count;)
		if (at < taken[i].end + BESIDE && taken[i].start < at + size + BESIDE) {
			at = (taken[i].end + BESIDE + 4095) & ~UINT64_C(4095);
			i = 0;
		} else {
			i++;
		}
	return end > start && at + size + BESIDE <= end ? at : 0;
}

static bool is_called(const struct maps *maps, size_t index, const char *name)
{
	return index < maps->count && !strcmp(maps->items[index].path, name);
}

static uint64_t find(const struct maps *maps, const struct room_taken *taken, size_t taken_count,
		     uint64_t low, uint64_t high, uint64_t size, uint64_t reach)
{
	uint64_t best = 0;
	for (size_t i = 0; i <= maps->count; i++) { /* the gap before mapping i */
		uint64_t start = i ? maps->items[i - 1].end : LOWEST, at;
		uint64_t end = i < maps->count ? maps->items[i].start : start + LARGE;
		if (is_called(maps, i, "[stack]"))
			continue;
		if (start >= high) {
			bool grows = is_called(maps, i - 1, "[heap]") || start - high < BESIDE;
			at = from_below(start + (grows ? FROM_HEAP : 0), end, taken, taken_count,
					size);
		} else {
			at = from_above(start, end > start + LARGE ? end - FROM_LARGE : end, taken,
					taken_count, size);
		}
		if (!at || !reaches(reach, at, size, low, high))
			continue;
		if (at < low || !best) /* the highest one below it, else the first above */
			best = at;
	}
	return best;
}

/* The kernel gives memory from the upper ends of gaps down, small ones first. So the place is as far below the end of its gap, and
   that below the module, as can be reached. */
static uint64_t find_quiet(const struct maps *maps, const struct room_taken *taken,
			   size_t taken_count, uint64_t low, uint64_t high, uint64_t size,
			   uint64_t reach)
{
	uint64_t best = 0, most = 0, lowest = high > reach ? high - reach + BESIDE : LOWEST;
	for (size_t i = 0; i <= maps->count; i++) {
		uint64_t start = i ? maps->items[i - 1].end : LOWEST;
		uint64_t end = i < maps->count ? maps->items[i].start : start;
		if (end > low || end - start < QUIET || end <= lowest ||
		    is_called(maps, i, "[stack]"))
			continue;
		uint64_t at = from_below(start > lowest ? start : lowest, end, taken, taken_count,
					 size);
		if (!at || !reaches(reach, at, size, low, high) || end - at <= most)
			continue;
		most = end - at;
		best = at;
	}
	return best;
}

uint64_t room_find(const struct maps *maps, const struct room_taken *taken, size_t taken_count,
		   uint64_t low, uint64_t high, uint64_t size, uint64_t reach, enum room_use use)
{
	uint64_t at = use == ROOM_BUSY
			      ? find_quiet(maps, taken, taken_count, low, high, size, reach)
			      : 0;
	return at ? at : find(maps, taken, taken_count, low, high, size, reach);
}
