/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/lookup.h"

#include <stdlib.h>

struct lookup_entry {
	uint64_t key;
	uint32_t number;
	bool used;
};

static struct lookup_entry *slot_of(const struct lookup *l, uint64_t key)
{
	uint64_t hash = key * 0x9e3779b97f4a7c15ull;
	size_t slot = (size_t)(hash ^ hash >> 32) & (l->slots - 1);
	while (l->entries[slot].used && l->entries[slot].key != key)
		slot = (slot + 1) & (l->slots - 1);
	return &l->entries[slot];
}

uint32_t lookup_find(const struct lookup *l, uint64_t key)
{
	const struct lookup_entry *e = l->slots ? slot_of(l, key) : NULL;
	return e && e->used ? e->number : LOOKUP_NONE;
}

static bool grow(struct lookup *l)
{
	struct lookup bigger = {.count = l->count, .slots = l->slots ? l->slots * 2 : 64};
	if (l->count * 2 < l->slots)
		return true;
	bigger.entries = calloc(bigger.slots, sizeof *bigger.entries);
	if (!bigger.entries)
		return false;
	for (size_t i = 0; i < l->slots; i++)
		if (l->entries[i].used)
			*slot_of(&bigger, l->entries[i].key) = l->entries[i];
	free(l->entries);
	*l = bigger;
	return true;
}

bool lookup_put(struct lookup *l, uint64_t key, uint32_t number)
{
	if (!grow(l))
		return false;
	struct lookup_entry *e = slot_of(l, key);
	l->count += !e->used;
	*e = (struct lookup_entry){key, number, true};
	return true;
}

void lookup_free(struct lookup *l)
{
	free(l->entries);
	*l = (struct lookup){0};
}
