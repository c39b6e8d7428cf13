/* SPDX-License-Identifier: Apache-2.0 */
#include "export/proto.h"

#include <string.h>

#include "base/buf.h"
#include "base/leb.h"

enum wire { WIRE_VARINT = 0, WIRE_BYTES = 2 };

static size_t length_of(uint64_t value)
{
	size_t size = 1;
	for (; value >= 0x80; value >>= 7)
		size++;
	return size;
}

static void put_tag(struct buf *out, uint32_t field, enum wire wire)
{
	leb_put(out, (uint64_t)field << 3 | wire);
}

void proto_number(struct buf *out, uint32_t field, uint64_t value)
{
	if (!value)
		return;
	put_tag(out, field, WIRE_VARINT);
	leb_put(out, value);
}

void proto_bytes(struct buf *out, uint32_t field, const void *bytes, size_t size)
{
	put_tag(out, field, WIRE_BYTES);
	leb_put(out, size);
	buf_append(out, bytes, size);
}

void proto_text(struct buf *out, uint32_t field, const char *text)
{
	proto_bytes(out, field, text, strlen(text));
}

void proto_packed(struct buf *out, uint32_t field, const uint64_t *values, size_t count)
{
	size_t size = 0;
	if (!count)
		return;
	for (size_t i = 0; i < count; i++)
		size += length_of(values[i]);
	put_tag(out, field, WIRE_BYTES);
	leb_put(out, size);
	for (size_t i = 0; i < count; i++)
		leb_put(out, values[i]);
}
