/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which procedures a module has, and all parts of each: by its symbols, by its
 * unwind information (an entry for each procedure, and one for each part that
 * was moved away), by DWARF, and, for code that none of them covers, by the
 * analysis of the code.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXTENT_NONE UINT32_MAX

struct err;
struct image;
struct inlines;
struct symbols;

struct extent {
	uint64_t start, end;
	uint32_t procedure;
};

struct extents_procedure {
	const char *name;      /* as the symbols say it; NULL: has none */
	uint32_t first, count; /* of its parts, in `by_procedure`: the one with the entry first */
};

struct extents {
	struct extent *parts; /* of all procedures, ascending, without overlaps */
	size_t part_count;
	uint32_t *by_procedure;               /* indices of parts */
	struct extents_procedure *procedures; /* ascending by entry */
	size_t procedure_count;
	bool gaps; /* code that nothing describes was not looked at */
};

/* `debug`, `symbols` and `inlines` may be NULL. Names are owned by the symbols. More than `gap_bytes_max` of code that
   nothing describes is not looked at, which may take minutes; 0: it is. */
struct err *extents_find(struct image *image, struct image *debug, const struct symbols *symbols,
			 struct inlines *inlines, uint64_t gap_bytes_max, struct extents *out);
void extents_free(struct extents *extents);

/* The procedure with this address, or EXTENT_NONE. */
uint32_t extents_at(const struct extents *extents, uint64_t address);
/* Its entry. */
uint64_t extents_start(const struct extents *extents, uint32_t procedure);

/* Groups finished `parts` by procedure; part_count and procedure_count are set. `entry_of` gives the
   part with the entry for each procedure. False without memory. Used also for the cache. */
bool extents_group(struct extents *extents, const uint32_t *entry_of);
