/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A table from four numbers to one: which scope is already there. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEYS_NONE UINT32_MAX

struct key {
	uint32_t a, b, c, d;
};

struct keys {
	struct key *slots;
	uint32_t *values; /* KEYS_NONE: an empty slot */
	size_t capacity, count;
};

void keys_free(struct keys *keys);
void keys_clear(struct keys *keys);

/* The place of the value for this key, KEYS_NONE in it where it is new (the caller then sets it).
   NULL without memory. Valid until the next call. */
uint32_t *keys_at(struct keys *keys, struct key key);
