/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A buffer of bytes or text that grows as it is appended to. Start with
 * `struct buf b = {0};`. When memory runs out the append is left out and
 * `failed` stays set, so that a long series of appends is checked once.
 */
#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *data; /* NUL-terminated at data[size] once anything was appended */
	size_t size, capacity;
	bool failed;
};

/* Makes room for `extra` more bytes; false (and `failed`) without memory. */
bool buf_reserve(struct buf *b, size_t extra);

void buf_append(struct buf *b, const void *bytes, size_t size);
void buf_puts(struct buf *b, const char *text);
/* Text of others, for a terminal: what could do something to that becomes '?' (base/utf8.h). */
void buf_put_clean(struct buf *b, const char *text, size_t size);
/* The same, cut in its middle to at most `max` characters ("begin…end"); 0: not cut. */
void buf_put_cut(struct buf *b, const char *text, size_t max);
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The contents as a string, "" when empty; owned by the buffer, valid until the next append. */
const char *buf_text(const struct buf *b);

/* Hands the contents (malloc'ed, NUL-terminated) to the caller and empties the buffer.
   NULL where it failed or is empty. */
char *buf_take(struct buf *b);

/* Empties the buffer and keeps its memory. */
void buf_clear(struct buf *b);

void buf_free(struct buf *b);
