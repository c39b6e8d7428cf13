/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include "base/buf.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct json json_to_buf(struct buf *buf)
{
	return (struct json){.buf = buf};
}

struct json json_to_file(FILE *file)
{
	return (struct json){.file = file};
}

static void put(struct json *j, const char *bytes, size_t size)
{
	if (j->file)
		fwrite(bytes, 1, size, j->file);
	else
		buf_append(j->buf, bytes, size);
}

static void put_text(struct json *j, const char *text)
{
	put(j, text, strlen(text));
}

/* One whole value, or the opening of one. */
static void value(struct json *j, const char *text)
{
	if (j->comma)
		put_text(j, ",");
	put_text(j, text);
	j->comma = true;
}

void json_begin_object(struct json *j)
{
	value(j, "{");
	j->comma = false;
}

void json_end_object(struct json *j)
{
	put_text(j, "}");
	j->comma = true;
}

void json_begin_array(struct json *j)
{
	value(j, "[");
	j->comma = false;
}

void json_end_array(struct json *j)
{
	put_text(j, "]");
	j->comma = true;
}

static void put_escaped(struct json *j, uint32_t c)
{
	static const char escapes[] = "\"\"\\\\\bb\ff\nn\rr\tt";
	const char *e;
	char text[8];
	for (e = escapes; *e; e += 2) {
		if ((uint32_t)e[0] == c) {
			snprintf(text, sizeof text, "\\%c", e[1]);
			put_text(j, text);
			return;
		}
	}
	snprintf(text, sizeof text, "\\u%04" PRIx32, c & 0xffff);
	put_text(j, text);
}

static void put_quoted(struct json *j, const char *text)
{
	const char *s = text, *end = s + strlen(s);
	const char *plain = s; /* start of what is copied as it stands */
	put_text(j, "\"");
	while (*s) {
		uint32_t c;
		size_t length = utf8_decode(s, (size_t)(end - s), &c);
		if (length && !utf8_is_harmful(c) && c != '"' && c != '\\') {
			s += length;
			continue;
		}
		put(j, plain, (size_t)(s - plain));
		if (length)
			put_escaped(j, c);
		else
			put_text(j, "\xef\xbf\xbd");
		plain = s += length ? length : 1;
	}
	put(j, plain, (size_t)(s - plain));
	put_text(j, "\"");
}

void json_key(struct json *j, const char *key)
{
	value(j, "");
	put_quoted(j, key);
	put_text(j, ":");
	j->comma = false;
}

void json_string(struct json *j, const char *text)
{
	if (!text) {
		json_null(j);
		return;
	}
	value(j, "");
	put_quoted(j, text);
}

void json_u64(struct json *j, uint64_t number)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRIu64, number);
	value(j, text);
}

void json_i64(struct json *j, int64_t number)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRId64, number);
	value(j, text);
}

void json_address(struct json *j, uint64_t number)
{
	char text[24];
	snprintf(text, sizeof text, "\"0x%" PRIx64 "\"", number);
	value(j, text);
}

void json_double(struct json *j, double number)
{
	char text[40];
	if (!isfinite(number)) {
		json_null(j);
		return;
	}
	snprintf(text, sizeof text, "%.15g", number);
	if (strtod(text, NULL) != number)
		snprintf(text, sizeof text, "%.17g", number);
	value(j, text);
}

void json_bool(struct json *j, bool yes)
{
	value(j, yes ? "true" : "false");
}

void json_null(struct json *j)
{
	value(j, "null");
}

void json_newline(struct json *j)
{
	put_text(j, "\n");
	j->comma = false;
}

void json_put_string(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	json_string(j, text);
}

void json_put_u64(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	json_u64(j, value);
}

void json_put_double(struct json *j, const char *key, double value)
{
	json_key(j, key);
	json_double(j, value);
}

void json_put_bool(struct json *j, const char *key, bool value)
{
	json_key(j, key);
	json_bool(j, value);
}
