/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reading numbers out of foreign bytes. Once something runs over the end the
 * cursor is bad and everything taken from it is zero, so that a series of
 * reads is checked once. Little endian, as are all images that we open.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/leb.h"

#define DWARF_NONE UINT64_MAX

struct dwarf_span {
	const uint8_t *bytes; /* NULL: there is no such section; else a NUL lies behind the last */
	size_t size;
};

struct dwarf_cursor {
	const uint8_t *at, *end;
	bool bad;
};

static inline size_t dwarf_left(const struct dwarf_cursor *c)
{
	return (size_t)(c->end - c->at);
}

static inline bool dwarf_skip(struct dwarf_cursor *c, uint64_t size)
{
	if (c->bad || size > dwarf_left(c)) {
		c->bad = true;
		return false;
	}
	c->at += size;
	return true;
}

/* At `offset` of a section. */
static inline struct dwarf_cursor dwarf_cursor_at(struct dwarf_span span, uint64_t offset)
{
	struct dwarf_cursor c = {.bad = true};
	if (span.bytes && offset <= span.size)
		c = (struct dwarf_cursor){span.bytes + offset, span.bytes + span.size, false};
	return c;
}

/* `size` bytes, at most 8. */
static inline uint64_t dwarf_take(struct dwarf_cursor *c, size_t size)
{
	const uint8_t *from = c->at;
	uint64_t value = 0;
	if (dwarf_skip(c, size))
		memcpy(&value, from, size);
	return value;
}

static inline uint64_t dwarf_take_uleb(struct dwarf_cursor *c)
{
	uint64_t value;
	c->bad = c->bad || !leb_take_low(&c->at, c->end, &value);
	return c->bad ? 0 : value;
}

static inline int64_t dwarf_take_sleb(struct dwarf_cursor *c)
{
	int64_t value;
	c->bad = c->bad || !leb_take_signed(&c->at, c->end, &value);
	return c->bad ? 0 : value;
}

/* NULL where it does not end. */
static inline const char *dwarf_take_string(struct dwarf_cursor *c)
{
	const uint8_t *start = c->at;
	const uint8_t *end = c->bad ? NULL : memchr(start, 0, dwarf_left(c));
	if (!end) {
		c->bad = true;
		return NULL;
	}
	c->at = end + 1;
	return (const char *)start;
}

/* The length that a unit starts with: moves `all` behind the unit, `unit` gets what is in it.
   *offset_size becomes 4 or 8. A unit that is longer than its section is cut, and false. */
static inline bool dwarf_take_unit(struct dwarf_cursor *all, struct dwarf_cursor *unit,
				   uint8_t *offset_size)
{
	uint64_t length = dwarf_take(all, 4);
	*offset_size = 4;
	if (length == 0xffffffff) {
		length = dwarf_take(all, 8);
		*offset_size = 8;
	} else if (length >= 0xfffffff0) {
		all->bad = true;
	}
	*unit = *all;
	if (!dwarf_skip(all, length))
		return false;
	unit->end = all->at;
	return true;
}

/* The string at `offset` of a section of strings; NULL outside of it. */
static inline const char *dwarf_string_at(struct dwarf_span span, uint64_t offset)
{
	return span.bytes && offset < span.size ? (const char *)span.bytes + offset : NULL;
}
