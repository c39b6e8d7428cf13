/* SPDX-License-Identifier: Apache-2.0 */
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define FIRST 16

bool array_grow(void *items, size_t *room, size_t size)
{
	size_t wanted = *room ? *room * 2 : FIRST;
	void *before;
	memcpy(&before, items, sizeof before); /* a pointer of another type */
	void *more = wanted > *room ? reallocarray(before, wanted, size) : NULL;
	if (!more)
		return false;
	memcpy(items, &more, sizeof more);
	*room = wanted;
	return true;
}
