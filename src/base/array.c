/* SPDX-License-Identifier: Apache-2.0 */
#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FIRST 16

bool array_grow(void *items, size_t *room, size_t size)
{
	void *before, *more = NULL;
	memcpy(&before, items, sizeof before); /* a pointer of another type */
	size_t wanted = *room ? *room * 2 : FIRST;
	if (*room <= SIZE_MAX / 4 / size)
		more = reallocarray(before, wanted, size);
	if (!more)
		return false;
	memcpy(items, &more, sizeof more);
	*room = wanted;
	return true;
}
