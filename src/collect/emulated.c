/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/emulated.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "image/image.h"
#include "process/backing.h"
#include "process/maps.h"

#define PAGE 4096u
#define CUTS_MAX 64 /* segments of code that are looked at in a file */

/* The pages of a file that are code. */
struct cuts {
	uint64_t start[CUTS_MAX], end[CUTS_MAX];
	size_t count;
};

static bool is_same_file(const struct map *a, const struct map *b)
{
	return a->inode == b->inode && a->device == b->device && !strcmp(a->path, b->path);
}

static bool may_be_code(const struct map *map)
{
	return map->path[0] == '/' && map->readable && !map->writable && !map->executable &&
	       strncmp(map->path, "/memfd:", 7) != 0 && strncmp(map->path, "/dev/", 5) != 0;
}

/* None where the file is not for this machine. */
static void find_cuts(pid_t pid, const struct maps *maps, size_t index, uint16_t machine,
		      struct cuts *out)
{
	struct image *image;
	const struct image_segment *segments;
	struct err *e = backing_open(pid, maps, index, &image);
	out->count = 0;
	if (e) { /* no ELF file: there are many of those */
		err_free(e);
		return;
	}
	size_t count = image_machine(image) == machine ? image_segments(image, &segments) : 0;
	for (size_t i = 0; i < count && out->count < CUTS_MAX; i++) {
		const struct image_segment *s = &segments[i];
		uint64_t start = s->offset / PAGE * PAGE, end = s->offset + s->file_size;
		if (!s->executable || !s->file_size || end < s->offset || end > UINT64_MAX - PAGE)
			continue;
		out->start[out->count] = start;
		out->end[out->count++] = (end + PAGE - 1) / PAGE * PAGE;
	}
	image_close(image);
}

/* How far from `offset` on all is code, or all is not. */
static uint64_t same_until(const struct cuts *cuts, uint64_t offset, bool *code)
{
	uint64_t until = UINT64_MAX;
	*code = false;
	for (size_t i = 0; i < cuts->count; i++) {
		bool inside = offset >= cuts->start[i] && offset < cuts->end[i];
		uint64_t next = inside                    ? cuts->end[i]
				: offset < cuts->start[i] ? cuts->start[i]
							  : UINT64_MAX;
		*code |= inside;
		until = next < until ? next : until;
	}
	return until;
}

/* `out` has room for the mapping in as many pieces as it can have. */
static size_t cut(const struct map *map, const struct cuts *cuts, struct map *out)
{
	struct map rest = *map;
	size_t count = 0;
	while (rest.start < rest.end) {
		struct map *piece = &out[count++];
		uint64_t size = same_until(cuts, rest.offset, &rest.executable) - rest.offset;
		*piece = rest;
		if (count > (size_t)2 * CUTS_MAX || size >= rest.end - rest.start)
			break;
		piece->end = piece->start + size;
		rest.start += size;
		rest.offset += size;
	}
	return count;
}

struct err *emulated_maps(pid_t pid, uint16_t machine, struct maps *maps)
{
	struct cuts cuts = {.count = 0};
	const struct map *known = NULL; /* what `cuts` is of: mappings of a file lie together */
	size_t used = 0;
	struct map *items = NULL;
	for (size_t i = 0; i < maps->count; i++) {
		const struct map *map = &maps->items[i];
		struct map *more = reallocarray(items, used + 2 * CUTS_MAX + 2, sizeof *items);
		if (!more) {
			free(items);
			maps_free(maps);
			return err_new("out of memory");
		}
		items = more;
		if (!may_be_code(map)) {
			items[used] = *map;
			items[used++].executable = false;
			continue;
		}
		if (!known || !is_same_file(known, map))
			find_cuts(pid, maps, i, machine, &cuts);
		known = map;
		used += cut(map, &cuts, items + used);
	}
	free(maps->items);
	maps->items = items;
	maps->count = used;
	return NULL;
}
