/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reading foreign bytes from front to back. A cursor never passes its end:
 * what is not there reads as 0 and makes the cursor bad, which is asked once,
 * after several reads.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/leb.h"

struct cursor {
	const uint8_t *at, *end;
	bool bad;
};

/* Where addresses in a section are counted from. */
struct cfi_bases {
	const uint8_t *bytes; /* the section's first byte … */
	uint64_t address;     /* … and its address */
	uint64_t text, data;  /* DW_EH_PE_textrel, DW_EH_PE_datarel */
	uint64_t function;    /* DW_EH_PE_funcrel */
};

#define CFI_POINTER_OMITTED 0xff

/* A pointer in one of the DW_EH_PE_* encodings. Indirect pointers give the address of the
   word that holds the value. An encoding that does not exist makes the cursor bad. */
uint64_t cfi_pointer(struct cursor *cursor, uint8_t encoding, const struct cfi_bases *bases);

static inline size_t cursor_left(const struct cursor *cursor)
{
	return (size_t)(cursor->end - cursor->at);
}

static inline bool cursor_skip(struct cursor *cursor, uint64_t size)
{
	if (size > cursor_left(cursor)) {
		cursor->bad = true;
		cursor->at = cursor->end;
		return false;
	}
	cursor->at += size;
	return true;
}

static inline void cursor_copy(struct cursor *cursor, void *out, size_t size)
{
	const uint8_t *from = cursor->at;
	if (cursor_skip(cursor, size))
		memcpy(out, from, size);
}

static inline uint8_t cursor_u8(struct cursor *cursor)
{
	if (cursor->at < cursor->end)
		return *cursor->at++;
	cursor->bad = true;
	return 0;
}

static inline uint16_t cursor_u16(struct cursor *cursor)
{
	uint16_t value = 0;
	cursor_copy(cursor, &value, sizeof value);
	return value;
}

static inline uint32_t cursor_u32(struct cursor *cursor)
{
	uint32_t value = 0;
	cursor_copy(cursor, &value, sizeof value);
	return value;
}

static inline uint64_t cursor_u64(struct cursor *cursor)
{
	uint64_t value = 0;
	cursor_copy(cursor, &value, sizeof value);
	return value;
}

static inline uint64_t cursor_uleb(struct cursor *cursor)
{
	uint64_t value;
	cursor->bad |= !leb_take(&cursor->at, cursor->end, &value);
	return value;
}

static inline int64_t cursor_sleb(struct cursor *cursor)
{
	int64_t value;
	cursor->bad |= !leb_take_signed(&cursor->at, cursor->end, &value);
	return value;
}

/* A block of `size` bytes; the cursor goes on after it. */
static inline struct cursor cursor_block(struct cursor *cursor, uint64_t size)
{
	struct cursor block = {cursor->at, cursor->at, false};
	if (cursor_skip(cursor, size))
		block.end = cursor->at;
	else
		block.bad = true;
	return block;
}
