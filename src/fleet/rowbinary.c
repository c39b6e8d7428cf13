/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/rowbinary.h"

#include <string.h>

#include "base/buf.h"
#include "base/leb.h"
#include "profile/profile.h"

void rowbinary_put(struct buf *out, uint64_t number, unsigned int bytes)
{
	unsigned char little[8];
	for (unsigned int i = 0; i < bytes; i++)
		little[i] = (unsigned char)(number >> 8 * i);
	buf_append(out, little, bytes);
}

void rowbinary_put_length(struct buf *out, uint64_t length)
{
	leb_put(out, length);
}

void rowbinary_put_text(struct buf *out, const char *text)
{
	size_t size = strlen(text);
	rowbinary_put_length(out, size);
	buf_append(out, text, size);
}

struct rowbinary rowbinary_read(const struct buf *from)
{
	const unsigned char *bytes = (const unsigned char *)buf_text(from);
	return (struct rowbinary){bytes, bytes + from->size, false};
}

bool rowbinary_more(const struct rowbinary *r)
{
	return !r->damaged && r->at < r->end;
}

static bool have(struct rowbinary *r, uint64_t bytes)
{
	r->damaged = r->damaged || bytes > (uint64_t)(r->end - r->at);
	return !r->damaged;
}

uint64_t rowbinary_get(struct rowbinary *r, unsigned int bytes)
{
	uint64_t number = 0;
	if (!have(r, bytes))
		return 0;
	for (unsigned int i = 0; i < bytes; i++)
		number |= (uint64_t)*r->at++ << 8 * i;
	return number;
}

uint64_t rowbinary_length(struct rowbinary *r, size_t each)
{
	uint64_t length = 0;
	for (unsigned int shift = 0; shift < 63; shift += 7) {
		uint64_t byte = rowbinary_get(r, 1);
		length |= (byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
		r->damaged = r->damaged || shift + 7 >= 63;
	}
	if (!r->damaged && length > (uint64_t)(r->end - r->at) / each)
		r->damaged = true;
	return r->damaged ? 0 : length;
}

const char *rowbinary_text(struct rowbinary *r, struct profile *strings)
{
	char text[ROWBINARY_TEXT_MAX + 1];
	uint64_t size = rowbinary_length(r, 1);
	uint64_t kept = size < ROWBINARY_TEXT_MAX ? size : ROWBINARY_TEXT_MAX;
	if (r->damaged)
		return "";
	memcpy(text, r->at, kept);
	text[kept] = 0;
	r->at += size;
	return profile_string(strings, text);
}
