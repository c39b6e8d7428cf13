/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The sections that the bytes of a file have, and what is inside of one. */
#include "profile/format.h"

struct section {
	struct format_section header;
	const uint8_t *bytes;
	const char *problem; /* why it cannot be used, or NULL */
};

struct sections {
	struct section *items; /* as they come */
	size_t count;
	size_t gaps;        /* places where no section's header was and one should have been */
	bool end;           /* the last one was there */
	uint64_t trailing;  /* bytes after it */
	uint64_t raw_total; /* opened until now */
	bool no_memory;     /* section_open had none */
};

/* False without memory. */
bool sections_find(const uint8_t *bytes, size_t size, struct sections *out);
void sections_free(struct sections *s);

/* Bytes to read numbers and strings from; `bad` is set and stays where they do not suffice. */
struct cursor {
	const uint8_t *at, *end;
	bool bad;
	uint8_t *own; /* what to free */
};

/* The contents; cursor_close ends it. NULL where all is well, else what is wrong with it. */
const char *section_open(struct sections *all, const struct section *s, struct cursor *c);
void cursor_close(struct cursor *c);

uint64_t cursor_number(struct cursor *c);
int64_t cursor_signed(struct cursor *c);
/* At most `limit`, else bad (and 0). */
uint32_t cursor_limited(struct cursor *c, uint32_t limit);
int32_t cursor_int(struct cursor *c);
/* A number of rows that take at least `bytes` each: bad where they cannot all be there. */
size_t cursor_rows(struct cursor *c, size_t bytes);
/* Points to its bytes; they have no NUL. */
const char *cursor_text(struct cursor *c, size_t *size);
