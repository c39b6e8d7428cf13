/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Arrays that grow: items, how many there are, and how many there is room for. And a search in sorted ones. */
#include <stdbool.h>
#include <stddef.h>

/* Whether there is room for one more; the items may have moved for that. False: there is no memory, and all is as it was. */
#define ARRAY_ROOM(items, count, room) \
	((count) < (room) || array_grow(&(items), &(room), sizeof *(items)))

/* The same where there may be no more than so many. */
#define ARRAY_ROOM_BELOW(items, count, room, max) \
	((count) < (max) && ARRAY_ROOM(items, count, room))

/* `items`: where the pointer to them is. */
bool array_grow(void *items, size_t *room, size_t size);

/* The index of the first of `count` items for which the condition on `i` does not hold, or `count` if it holds for
   all. If it holds for an item, it must hold for all before it. For example, the last item that begins at or before
   an address comes before
	size_t after = FIRST_NOT(i, count, items[i].start <= address); */
#define FIRST_NOT(i, count, condition)                                       \
	({                                                                   \
		size_t first_low = 0, first_high = (count);                  \
		while (first_low < first_high) {                             \
			size_t i = first_low + (first_high - first_low) / 2; \
			if (condition)                                       \
				first_low = i + 1;                           \
			else                                                 \
				first_high = i;                              \
		}                                                            \
		first_low;                                                   \
	})
