/* SPDX-License-Identifier: Apache-2.0 */
#include "base/leb.h"

#include "base/buf.h"

#define PADDED_MAX 16 /* bytes */

void leb_put(struct buf *out, uint64_t value)
{
	uint8_t bytes[LEB_BYTES];
	buf_append(out, bytes, leb_write(bytes, value));
}

void leb_put_signed(struct buf *out, int64_t value)
{
	uint8_t bytes[LEB_BYTES];
	size_t size = 0;
	bool more = true;
	while (more) {
		uint8_t low = (uint8_t)(value & 0x7f);
		value >>= 7;
		more = value != (low & 0x40 ? -1 : 0);
		bytes[size++] = low | (more ? 0x80 : 0);
	}
	buf_append(out, bytes, size);
}

bool leb_take_long(const uint8_t **at, const uint8_t *end, uint64_t *out, bool *fits)
{
	uint64_t value = 0;
	*out = 0;
	*fits = true;
	for (unsigned i = 0; i < PADDED_MAX && *at < end; i++) {
		uint64_t byte = *(*at)++, bits = byte & 0x7f;
		unsigned shift = 7 * i;
		*fits &= shift < 63 || bits <= (shift == 63);
		value |= shift < 64 ? bits << shift : 0;
		if (byte < 0x80) {
			*out = value;
			return true;
		}
	}
	return false;
}

bool leb_take_signed(const uint8_t **at, const uint8_t *end, int64_t *out)
{
	uint64_t value = 0;
	*out = 0;
	for (unsigned i = 0; i < PADDED_MAX && *at < end; i++) {
		uint64_t byte = *(*at)++;
		unsigned shift = 7 * i;
		value |= shift < 64 ? (byte & 0x7f) << shift : 0;
		if (byte >= 0x80)
			continue;
		if (byte & 0x40 && shift + 7 < 64)
			value |= ~UINT64_C(0) << (shift + 7);
		*out = (int64_t)value;
		return true;
	}
	return false;
}
