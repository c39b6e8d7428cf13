/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the interpreters of both CPUs share: values that may not be known, registers, memory, sums. Nobody outside this
 * folder includes it.
 *
 * Functions that return a bool return false where the trail ends.
 */
#include "trail/trail.h"

struct trail_value {
	uint64_t bits;
	bool known; /* else `bits` means nothing */
};

static inline struct trail_value trail_known(uint64_t bits)
{
	return (struct trail_value){bits, true};
}

#define TRAIL_NOT_KNOWN ((struct trail_value){0, false})

/* A register, by DWARF's number. */
static inline struct trail_value trail_get(const struct trail *t, unsigned number)
{
	return (struct trail_value){t->registers[number], !(t->unknown >> number & 1)};
}

static inline void trail_set(struct trail *t, unsigned number, struct trail_value value)
{
	t->registers[number] = value.bits;
	t->unknown = value.known ? t->unknown & ~(1u << number) : t->unknown | 1u << number;
}

/* The bits of a number of so many bytes, 1 to 8. */
static inline uint64_t trail_mask(unsigned size)
{
	return UINT64_MAX >> (64 - 8 * size);
}

/* A number of so many bytes, extended by its sign. */
static inline int64_t trail_signed(uint64_t bits, unsigned size)
{
	unsigned up = 64 - 8 * size;
	return (int64_t)(bits << up) >> up;
}

struct trail_sum {
	uint64_t bits;
	bool carried, overflowed; /* out of an unsigned number; out of a signed one */
};

/* a + b + carry. Both are numbers of so many bytes, and so is the sum. */
static inline struct trail_sum trail_sum(uint64_t a, uint64_t b, bool carry, unsigned size)
{
	uint64_t sum = (a + b + carry) & trail_mask(size);
	return (struct trail_sum){.bits = sum,
				  .carried = carry ? sum <= a : sum < a,
				  .overflowed = (~(a ^ b) & (a ^ sum)) >> (8 * size - 1) & 1};
}

/* Begins a trail. */
void trail_begin(struct trail *t);
/* Ends it. Returns false. */
static inline bool trail_stop(struct trail *t, enum trail_end end)
{
	t->end = (uint8_t)end;
	return false;
}

/* Loads up to 8 bytes. What is at an address that is not known, is not known. */
bool trail_load(struct trail *t, struct trail_value address, unsigned size,
		struct trail_value *out);
/* Stores up to 8 bytes. The trail ends if the address is not known. */
bool trail_store(struct trail *t, struct trail_value address, unsigned size,
		 struct trail_value value);
/* Stores any number of bytes that are not known. */
bool trail_store_unknown(struct trail *t, struct trail_value address, unsigned size);
/* Notes an edge. */
bool trail_add(struct trail *t, uint64_t from, uint64_t to);
