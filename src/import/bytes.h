/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Little-endian numbers out of foreign bytes. A cursor that was asked for more
 * than there is gives zeros from then on and says so in `bad`.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes {
	const uint8_t *at, *end;
	bool bad;
};

static inline struct bytes bytes_of(const void *from, size_t size)
{
	const uint8_t *at = from;
	return (struct bytes){at, at + size, false};
}

static inline size_t bytes_left(const struct bytes *b)
{
	return (size_t)(b->end - b->at);
}

/* The next `size` bytes, or NULL where there are fewer. */
static inline const uint8_t *bytes_take(struct bytes *b, uint64_t size)
{
	const uint8_t *at = b->at;
	if (b->bad || size > bytes_left(b)) {
		b->bad = true;
		return NULL;
	}
	b->at += size;
	return at;
}

static inline uint64_t bytes_u64(struct bytes *b)
{
	const uint8_t *from = bytes_take(b, 8);
	uint64_t out = 0;
	for (int i = 7; from && i >= 0; i--)
		out = out << 8 | from[i];
	return out;
}

static inline uint32_t bytes_u32(struct bytes *b)
{
	const uint8_t *from = bytes_take(b, 4);
	return from ? (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 |
			       (uint32_t)from[3] << 24
		    : 0;
}

static inline uint16_t bytes_u16(struct bytes *b)
{
	const uint8_t *from = bytes_take(b, 2);
	return from ? (uint16_t)(from[0] | from[1] << 8) : 0;
}
