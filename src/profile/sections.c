/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/sections.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/leb.h"
#include "profile/own.h"

/* Where sections overlap, which only damage or malice makes, bytes are summed up more than once:
   no more than this many times the file's size in all. */
#define SUM_TIMES 4

struct scan {
	const uint8_t *bytes;
	size_t size;
	uint64_t budget; /* of bytes to sum up */
};

static bool header_at(const struct scan *s, size_t at, struct format_section *out)
{
	return s->size - at >= FORMAT_SECTION_SIZE && format_get_section(s->bytes + at, out);
}

/* The next place from `at` on that is a section's header; the file's size where there is none. */
static size_t find_header(const struct scan *s, size_t at)
{
	struct format_section ignored;
	while (at < s->size) {
		const uint8_t *found = memmem(s->bytes + at, s->size - at, FORMAT_SYNC,
					      FORMAT_SYNC_SIZE);
		if (!found)
			break;
		at = (size_t)(found - s->bytes);
		if (header_at(s, at, &ignored))
			return at;
		at++;
	}
	return s->size;
}

static const char *check(struct scan *s, const struct section *x)
{
	uint64_t left = s->size - (size_t)(x->bytes - s->bytes);
	if (x->header.stored > left)
		return "cut short";
	if (x->header.stored > s->budget)
		return "too much damage";
	s->budget -= x->header.stored;
	if (format_checksum(x->bytes, x->header.stored) != x->header.checksum)
		return "checksum wrong";
	if (x->header.flags & ~FORMAT_ZSTD)
		return "written by a newer culprit";
	return NULL;
}

/* A section that is whole ends where it says. One that is not may have lost or gained bytes: the
   next one may begin inside of what would have been its own. */
static size_t next_section(struct scan *s, size_t at, const struct section *x, bool *gap)
{
	size_t inside = at + FORMAT_SECTION_SIZE, end = inside + x->header.stored;
	struct format_section ignored;
	*gap = false;
	if (!x->problem || (x->header.stored <= s->size - inside &&
			    (end == s->size || header_at(s, end, &ignored))))
		return end;
	*gap = x->header.stored <= s->size - inside;
	return find_header(s, inside);
}

bool sections_find(const uint8_t *bytes, size_t size, struct sections *out)
{
	struct scan s = {bytes, size, (uint64_t)size * SUM_TIMES};
	size_t at = FORMAT_HEADER_SIZE, room = 0;
	bool gap;
	*out = (struct sections){0};
	while (at < size && !out->end) {
		struct section x = {0}, *moved;
		if (!header_at(&s, at, &x.header)) {
			out->gaps++;
			at = find_header(&s, at);
			continue;
		}
		x.bytes = bytes + at + FORMAT_SECTION_SIZE;
		x.problem = check(&s, &x);
		at = next_section(&s, at, &x, &gap);
		out->gaps += gap;
		moved = own_grow(out->items, &room, out->count, sizeof x);
		if (!moved)
			return false;
		out->items = moved;
		out->items[out->count++] = x;
		out->end = x.header.type == FORMAT_END && !x.problem;
	}
	out->trailing = size > at ? size - at : 0;
	return true;
}

void sections_free(struct sections *s)
{
	free(s->items);
	*s = (struct sections){0};
}

const char *section_open(struct sections *all, const struct section *s, struct cursor *c)
{
	const struct format_section *h = &s->header;
	*c = (struct cursor){0};
	if (s->problem)
		return s->problem;
	if (!(h->flags & FORMAT_ZSTD)) {
		*c = (struct cursor){.at = s->bytes, .end = s->bytes + h->stored};
		return h->raw == h->stored && h->raw <= FORMAT_RAW_MAX ? NULL : "malformed";
	}
	if (!format_may_inflate(h->stored, h->raw) || all->raw_total + h->raw > FORMAT_RAW_SUM_MAX)
		return "too large";
	all->raw_total += h->raw;
	c->own = malloc(h->raw + 1);
	if (!c->own) {
		all->no_memory = true;
		return "out of memory";
	}
	if (ZSTD_decompress(c->own, h->raw, s->bytes, h->stored) != h->raw) {
		cursor_close(c);
		return "cannot be decompressed";
	}
	c->at = c->own;
	c->end = c->own + h->raw;
	return NULL;
}

void cursor_close(struct cursor *c)
{
	free(c->own);
	*c = (struct cursor){0};
}

uint64_t cursor_number(struct cursor *c)
{
	uint64_t value;
	if (!leb_take(&c->at, c->end, &value)) {
		c->bad = true;
		c->at = c->end;
	}
	return value;
}

int64_t cursor_signed(struct cursor *c)
{
	return unzigzag(cursor_number(c));
}

uint32_t cursor_limited(struct cursor *c, uint32_t limit)
{
	uint64_t value = cursor_number(c);
	if (value <= limit)
		return (uint32_t)value;
	c->bad = true;
	return 0;
}

int32_t cursor_int(struct cursor *c)
{
	int64_t value = cursor_signed(c);
	if (value >= INT32_MIN && value <= INT32_MAX)
		return (int32_t)value;
	c->bad = true;
	return 0;
}

size_t cursor_rows(struct cursor *c, size_t bytes)
{
	uint64_t count = cursor_number(c);
	if (count <= (size_t)(c->end - c->at) / bytes)
		return (size_t)count;
	c->bad = true;
	return 0;
}

const char *cursor_text(struct cursor *c, size_t *size)
{
	const char *text;
	*size = cursor_rows(c, 1);
	text = (const char *)c->at;
	if (*size > PROFILE_STRING_MAX || (*size && memchr(text, 0, *size))) {
		c->bad = true;
		*size = 0;
	}
	c->at += *size;
	return *size ? text : "";
}
