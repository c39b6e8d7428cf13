/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel puts new mappings below the lowest library, or above the highest one, and the heap grows up. All of that is
 * at the ends of wide gaps. So islands are far from both ends there. If the jump does not reach so far (aarch64), they are
 * at an end, but in the widest gap, where the heap and new mappings grow towards each other, they are not.
 */
#include "collect/agents/rooms.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "process/maps.h"

#define PAGE 4096u
#define APART (64u << 10)         /* from other memory */
#define STACK_APART (64ull << 20) /* below a stack that may grow */
#define LOWEST (64u << 10)
#define FAR \
	(768ull << 20) /* farther than the mappings that the agent makes, and many of the program */
#define WIDE (4 * FAR) /* a gap in which something can be so far from both ends */

/* The vsyscall page of x86-64. What is below it is no gap that a program can use. */
static bool is_kernels(const struct map *m)
{
	return m->start >> 63;
}

static bool is_stack(const struct map *m)
{
	return !strncmp(m->path, "[stack", 6);
}

/* The gap below a mapping. */
static struct room gap_below(const struct maps *maps, size_t i)
{
	return (struct room){i ? maps->items[i - 1].end : LOWEST, maps->items[i].start};
}

/* Returns the mapping above the gap where the heap grows up, and where new mappings go down. */
static size_t busy_gap(const struct maps *maps)
{
	size_t busy = 0;
	uint64_t most = 0;
	for (size_t i = 1; i < maps->count && !is_kernels(&maps->items[i]); i++) {
		struct room gap = gap_below(maps, i);
		if (gap.end - gap.start <= most || is_stack(&maps->items[i]))
			continue;
		most = gap.end - gap.start;
		busy = i;
	}
	return busy;
}

/* Moves a place away from the code until nothing is there. */
static uint64_t pass_taken(const struct rooms *r, uint64_t at, uint64_t size, bool down)
{
	for (size_t i = 0; i < r->count; i++) {
		const struct room *t = &r->taken[i];
		if (at >= t->end + APART || at + size + APART <= t->start)
			continue;
		at = down ? t->start - APART - size : t->end + APART;
		i = SIZE_MAX; /* from the first */
	}
	return at;
}

/* Where a block can be in the gap, so far from the end that is nearer to the code; 0: nowhere. */
static uint64_t place_in(const struct rooms *r, size_t above, const struct map *code, uint64_t size,
			 uint64_t apart)
{
	struct room gap = gap_below(r->maps, above);
	bool down = gap.end <= code->start;
	uint64_t top = is_stack(&r->maps->items[above]) ? STACK_APART : APART;
	if (gap.end < gap.start + top + apart + APART + size)
		return 0;
	uint64_t at = down ? gap.end - (apart > top ? apart : top) - size : gap.start + apart;
	at = pass_taken(r, at & ~(uint64_t)(PAGE - 1), size, down);
	return at >= gap.start + APART && at <= gap.end - top - size ? at : 0;
}

/* Returns the nearest place in any gap, or 0. The busy one comes last, and there it must be far from the ends. */
static uint64_t find(const struct rooms *r, const struct map *code, uint64_t size)
{
	size_t busy = busy_gap(r->maps);
	bool far_reach = r->reach > FAR + size + (code->end - code->start);
	uint64_t best = 0, best_distance = r->reach;
	for (size_t i = 0; i < r->maps->count && !is_kernels(&r->maps->items[i]); i++) {
		struct room gap = gap_below(r->maps, i);
		bool far = far_reach && gap.end - gap.start >= WIDE;
		bool is_busy = busy && i == busy;
		if (gap.end < gap.start || (is_busy && (best || !far)))
			continue;
		uint64_t at = place_in(r, i, code, size, far ? FAR : APART);
		uint64_t distance = at < code->start ? code->end - at : at + size - code->start;
		if (at && distance < best_distance) {
			best = at;
			best_distance = distance;
		}
	}
	return best;
}

uint64_t rooms_take(struct rooms *r, const struct map *code, uint64_t size)
{
	uint64_t at = find(r, code, size);
	if (!at || !ARRAY_ROOM(r->taken, r->count, r->room))
		return 0;
	r->taken[r->count++] = (struct room){at, at + size};
	return at;
}

void rooms_free(struct rooms *r)
{
	free(r->taken);
	*r = (struct rooms){0};
}
