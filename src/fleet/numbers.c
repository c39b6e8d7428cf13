/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/numbers.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/hash.h"

struct numbers_slot {
	uint64_t a, b, c;
	uint32_t number;
	bool used;
};

static struct numbers_slot *find(const struct numbers *l, uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t hash = hash_number(hash_number(HASH_START, a), b);
	size_t at = (size_t)hash_number(hash, c) & (l->room - 1);
	for (; l->slots[at].used; at = (at + 1) & (l->room - 1))
		if (l->slots[at].a == a && l->slots[at].b == b && l->slots[at].c == c)
			break;
	return &l->slots[at];
}

static bool grow(struct numbers *l)
{
	struct numbers old = *l;
	l->room = old.room ? old.room * 2 : 256;
	l->slots = calloc(l->room, sizeof *l->slots);
	if (!l->slots) {
		*l = old;
		return false;
	}
	for (size_t i = 0; i < old.room; i++)
		if (old.slots[i].used)
			*find(l, old.slots[i].a, old.slots[i].b, old.slots[i].c) = old.slots[i];
	free(old.slots);
	return true;
}

uint32_t *numbers_at(struct numbers *l, uint64_t a, uint64_t b, uint64_t c)
{
	if (l->count * 2 >= l->room && !grow(l))
		return NULL;
	struct numbers_slot *slot = find(l, a, b, c);
	if (!slot->used) {
		*slot = (struct numbers_slot){a, b, c, 0, true};
		l->count++;
	}
	return &slot->number;
}

uint32_t numbers_find(const struct numbers *l, uint64_t a, uint64_t b, uint64_t c)
{
	return l->room ? find(l, a, b, c)->number : 0; /* of a free slot 0, too */
}

void numbers_free(struct numbers *l)
{
	free(l->slots);
	*l = (struct numbers){0};
}
