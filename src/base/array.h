/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Arrays that grow: items, how many there are, and how many there is room for. */
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
