/* SPDX-License-Identifier: Apache-2.0 */
#include "base/leb.h"
#include "recipes/cfi_cursor.h"

enum { /* low half: how the value is stored; then what it counts from */
       ENCODED_ABSOLUTE = 0x00,
       ENCODED_ULEB = 0x01,
       ENCODED_U16 = 0x02,
       ENCODED_U32 = 0x03,
       ENCODED_U64 = 0x04,
       ENCODED_SIGNED = 0x08,
       ENCODED_SLEB = 0x09,
       ENCODED_S16 = 0x0a,
       ENCODED_S32 = 0x0b,
       ENCODED_S64 = 0x0c,
       FROM_ZERO = 0x00,
       FROM_HERE = 0x10,
       FROM_TEXT = 0x20,
       FROM_DATA = 0x30,
       FROM_FUNCTION = 0x40,
       ALIGNED = 0x50,
};

static uint64_t aligned_pointer(struct cursor *cursor, const struct cfi_bases *bases)
{
	uint64_t address = bases->address + (uint64_t)(cursor->at - bases->bytes);
	cursor_skip(cursor, -address & 7);
	return cursor_u64(cursor);
}

static uint64_t stored_value(struct cursor *cursor, uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case ENCODED_ABSOLUTE:
	case ENCODED_U64:
	case ENCODED_SIGNED:
	case ENCODED_S64:
		return cursor_u64(cursor);
	case ENCODED_ULEB:
		return cursor_uleb(cursor);
	case ENCODED_SLEB:
		return (uint64_t)cursor_sleb(cursor);
	case ENCODED_U16:
		return cursor_u16(cursor);
	case ENCODED_S16:
		return (uint64_t)(int64_t)(int16_t)cursor_u16(cursor);
	case ENCODED_U32:
		return cursor_u32(cursor);
	case ENCODED_S32:
		return (uint64_t)(int64_t)(int32_t)cursor_u32(cursor);
	default:
		cursor->bad = true;
		return 0;
	}
}

uint64_t cfi_pointer(struct cursor *cursor, uint8_t encoding, const struct cfi_bases *bases)
{
	uint64_t here = bases->address + (uint64_t)(cursor->at - bases->bytes);
	uint64_t value;
	if ((encoding & 0x70) == ALIGNED)
		return aligned_pointer(cursor, bases);
	value = stored_value(cursor, encoding);
	if (!value) /* no pointer, whatever it would count from */
		return 0;
	switch (encoding & 0x70) {
	case FROM_ZERO:
		return value;
	case FROM_HERE:
		return value + here;
	case FROM_TEXT:
		return value + bases->text;
	case FROM_DATA:
		return value + bases->data;
	case FROM_FUNCTION:
		return value + bases->function;
	default:
		cursor->bad = true;
		return 0;
	}
}
