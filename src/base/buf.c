/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

bool buf_reserve(struct buf *b, size_t extra)
{
	size_t needed, capacity;
	char *data;
	if (__builtin_add_overflow(b->size, extra, &needed) ||
	    __builtin_add_overflow(needed, 1, &needed)) {
		b->failed = true;
		return false;
	}
	if (needed <= b->capacity)
		return true;
	if (__builtin_mul_overflow(b->capacity, 2, &capacity) || capacity < needed)
		capacity = needed < 64 ? 64 : needed;
	data = realloc(b->data, capacity);
	if (!data) {
		b->failed = true;
		return false;
	}
	b->data = data;
	b->capacity = capacity;
	return true;
}

void buf_append(struct buf *b, const void *bytes, size_t size)
{
	if (!buf_reserve(b, size))
		return;
	if (size)
		memcpy(b->data + b->size, bytes, size);
	b->size += size;
	b->data[b->size] = 0;
}

void buf_puts(struct buf *b, const char *text)
{
	buf_append(b, text, strlen(text));
}

void buf_put_clean(struct buf *b, const char *text, size_t size)
{
	while (size) {
		uint32_t character;
		size_t length = utf8_decode(text, size, &character), step = length ? length : 1;
		if (length && !utf8_is_harmful(character))
			buf_append(b, text, length);
		else
			buf_puts(b, "?");
		text += step;
		size -= step;
	}
}

void buf_put_cut(struct buf *b, const char *text, size_t max)
{
	size_t wide = utf8_count(text), size = strlen(text);
	if (!max || wide <= max) {
		buf_put_clean(b, text, size);
		return;
	}
	size_t front = (max - 1) / 2, back = max - 1 - front;
	buf_put_clean(b, text, utf8_at(text, front));
	buf_puts(b, "…");
	size_t from = utf8_at(text, wide - back);
	buf_put_clean(b, text + from, size - from);
}

void buf_printf(struct buf *b, const char *format, ...)
{
	va_list ap;
	int length;
	va_start(ap, format);
	length = vsnprintf(NULL, 0, format, ap);
	va_end(ap);
	if (length < 0) {
		b->failed = true;
		return;
	}
	if (!buf_reserve(b, (size_t)length))
		return;
	va_start(ap, format);
	vsnprintf(b->data + b->size, (size_t)length + 1, format, ap);
	va_end(ap);
	b->size += (size_t)length;
}

const char *buf_text(const struct buf *b)
{
	return b->data ? b->data : "";
}

char *buf_take(struct buf *b)
{
	char *data = b->data;
	if (b->failed) {
		free(data);
		data = NULL;
	}
	*b = (struct buf){0};
	return data;
}

void buf_clear(struct buf *b)
{
	b->size = 0;
	b->failed = false;
	if (b->data)
		b->data[0] = 0;
}

void buf_free(struct buf *b)
{
	free(b->data);
	*b = (struct buf){0};
}
