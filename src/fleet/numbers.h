/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A number for each three numbers. Start with {0}. */
#include <stddef.h>
#include <stdint.h>

struct numbers {
	struct numbers_slot *slots; /* a power of two */
	size_t count, room;
};

/* Where its number is, 0 where it is new; until the next call. NULL without memory. */
uint32_t *numbers_at(struct numbers *numbers, uint64_t a, uint64_t b, uint64_t c);
/* Its number, or 0. */
uint32_t numbers_find(const struct numbers *numbers, uint64_t a, uint64_t b, uint64_t c);
void numbers_free(struct numbers *numbers);
