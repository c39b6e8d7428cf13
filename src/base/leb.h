/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Numbers of as many bytes as they need (LEB128): seven bits in a byte, the lowest first; the
 * eighth says that there are more. Some writers pad them with bytes that add nothing.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

#define LEB_BYTES 10 /* that a number needs at most */

/* Writes a number to `out`; how many bytes. */
static inline size_t leb_write(uint8_t out[LEB_BYTES], uint64_t value)
{
	size_t size = 0;
	for (; value >= 0x80; value >>= 7)
		out[size++] = (uint8_t)(value | 0x80);
	out[size++] = (uint8_t)value;
	return size;
}

void leb_put(struct buf *out, uint64_t value);
void leb_put_signed(struct buf *out, int64_t value);

/* One that takes more than a byte: its lower 64 bits. `fits`: there are no others. */
bool leb_take_long(const uint8_t **at, const uint8_t *end, uint64_t *out, bool *fits);

/* Takes a number from *at; false where it does not end before `end`, or has more than 64 bits. */
static inline bool leb_take(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
	bool fits;
	if (*at >= end || **at >= 0x80)
		return leb_take_long(at, end, out, &fits) && fits;
	*out = *(*at)++;
	return true;
}

/* The same for one that may have more bits, which are not looked at: it is not wanted, or has a sign. */
static inline bool leb_take_low(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
	bool ignored;
	if (*at >= end || **at >= 0x80)
		return leb_take_long(at, end, out, &ignored);
	*out = *(*at)++;
	return true;
}

/* The same for one with a sign; what is beyond 64 bits is not looked at. */
bool leb_take_signed(const uint8_t **at, const uint8_t *end, int64_t *out);

/* A number with a sign as one without: small in either direction. */
static inline uint64_t zigzag(int64_t value)
{
	return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

static inline int64_t unzigzag(uint64_t value)
{
	return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}
