/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where in a program's memory there is room for islands, within reach of its code. patches.c uses it. The program maps
   more memory before the islands come, and later: so they are not where the kernel is about to put that. */
#include <stddef.h>
#include <stdint.h>

struct map;
struct maps;

struct room {
	uint64_t start, end;
};

struct rooms {
	const struct maps *maps;
	uint64_t reach;     /* how far a jump goes */
	struct room *taken; /* by those before */
	size_t count, room;
};

/* Returns where `size` bytes can be, whole pages, within reach of all of this code; 0: nowhere. They are taken from then
   on. */
uint64_t rooms_take(struct rooms *rooms, const struct map *code, uint64_t size);
void rooms_free(struct rooms *rooms);
