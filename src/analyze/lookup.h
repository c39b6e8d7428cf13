/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A table from 64-bit keys to 32-bit numbers. Start with `struct lookup l = {0};`.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOOKUP_NONE UINT32_MAX

struct lookup {
	struct lookup_entry *entries;
	size_t count, slots;
};

/* The number of a key, or LOOKUP_NONE. */
uint32_t lookup_find(const struct lookup *lookup, uint64_t key);
/* Sets it; false without memory. `number` must not be LOOKUP_NONE. */
bool lookup_put(struct lookup *lookup, uint64_t key, uint32_t number);
void lookup_free(struct lookup *lookup);
