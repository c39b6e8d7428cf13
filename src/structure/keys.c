/* SPDX-License-Identifier: Apache-2.0 */
#include "structure/keys.h"

#include <stdlib.h>
#include <string.h>

void keys_free(struct keys *keys)
{
	free(keys->slots);
	free(keys->values);
	memset(keys, 0, sizeof *keys);
}

void keys_clear(struct keys *keys)
{
	for (size_t i = 0; i < keys->capacity; i++)
		keys->values[i] = KEYS_NONE;
	keys->count = 0;
}

static size_t hash(struct key k)
{
	uint64_t h = ((uint64_t)k.a << 32 | k.b) * 0x9e3779b97f4a7c15u;
	h ^= h >> 29;
	h = (h + ((uint64_t)k.c << 32 | k.d)) * 0xbf58476d1ce4e5b9u;
	return (size_t)(h ^ h >> 32);
}

static bool equal(struct key x, struct key y)
{
	return x.a == y.a && x.b == y.b && x.c == y.c && x.d == y.d;
}

static size_t slot_of(const struct keys *keys, struct key key)
{
	size_t i = hash(key) & (keys->capacity - 1);
	while (keys->values[i] != KEYS_NONE && !equal(keys->slots[i], key))
		i = (i + 1) & (keys->capacity - 1);
	return i;
}

static bool grow(struct keys *keys)
{
	struct keys bigger = {.capacity = keys->capacity ? keys->capacity * 2 : 64};
	bigger.slots = malloc(bigger.capacity * sizeof *bigger.slots);
	bigger.values = malloc(bigger.capacity * sizeof *bigger.values);
	if (!bigger.slots || !bigger.values) {
		keys_free(&bigger);
		return false;
	}
	keys_clear(&bigger);
	for (size_t i = 0; i < keys->capacity; i++)
		if (keys->values[i] != KEYS_NONE) {
			size_t at = slot_of(&bigger, keys->slots[i]);
			bigger.slots[at] = keys->slots[i];
			bigger.values[at] = keys->values[i];
			bigger.count++;
		}
	keys_free(keys);
	*keys = bigger;
	return true;
}

uint32_t *keys_at(struct keys *keys, struct key key)
{
	size_t i;
	if (keys->count * 2 >= keys->capacity && !grow(keys))
		return NULL;
	i = slot_of(keys, key);
	if (keys->values[i] == KEYS_NONE) {
		keys->slots[i] = key;
		keys->count++;
	}
	return &keys->values[i];
}
