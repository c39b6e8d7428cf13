/* SPDX-License-Identifier: Apache-2.0 */
/* What an answer says: its status line, the two headers that tell where the body ends, the body. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "fleet/http.h"

#define LINES_TO_BODY \
	8 /* where a body comes in pieces, so many times its size may their lines be */

static struct err *garbage(void)
{
	return err_new("what answers is no HTTP server");
}

/* "HTTP/1.1 200 OK" */
static struct err *read_status(struct http_answer *a, const char *line)
{
	if (strncmp(line, "HTTP/1.", 7) != 0 || !isdigit((unsigned char)line[7]) || line[8] != ' ')
		return garbage();
	const char *digits = line + 9;
	for (int i = 0; i < 3; i++)
		if (!isdigit((unsigned char)digits[i]))
			return garbage();
	if (digits[3] && digits[3] != ' ')
		return garbage();
	a->status = (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
	a->state = HTTP_HEAD;
	return NULL;
}

/* The value of a header, or NULL where the line is another one. */
static const char *value_of(const char *line, const char *name)
{
	size_t length = strlen(name);
	if (strncasecmp(line, name, length) != 0 || line[length] != ':')
		return NULL;
	line += length + 1;
	return line + strspn(line, " \t");
}

static bool read_size(const char *text, int base, const char *ends, uint64_t *out)
{
	uint64_t size = 0;
	const char *at = text;
	for (; isxdigit((unsigned char)*at) && (base == 16 || isdigit((unsigned char)*at)); at++) {
		int digit = isdigit((unsigned char)*at) ? *at - '0'
							: tolower((unsigned char)*at) - 'a' + 10;
		if (__builtin_mul_overflow(size, (uint64_t)base, &size) ||
		    __builtin_add_overflow(size, (uint64_t)digit, &size))
			return false;
	}
	*out = size;
	return at > text && (!*at || strchr(ends, *at));
}

static struct err *read_header(struct http_answer *a, const char *line)
{
	const char *length = value_of(line, "Content-Length");
	const char *coding = value_of(line, "Transfer-Encoding");
	uint64_t size;
	if (length) {
		if (!read_size(length, 10, " \t", &size) || (a->sized && size != a->left))
			return garbage();
		a->left = size;
		a->sized = true;
	}
	if (coding) {
		if (strcasecmp(coding, "chunked") != 0)
			return err_new("the answer is encoded in a way that is not known here");
		a->chunked = true;
	}
	return NULL;
}

/* An interim answer (100) is followed by the real one. */
static void end_head(struct http_answer *a)
{
	if (a->status >= 100 && a->status < 200) {
		a->state = HTTP_STATUS;
		a->sized = a->chunked = false;
	} else if (a->status == 204 || a->status == 304) {
		a->state = HTTP_WHOLE;
	} else if (a->chunked) {
		a->state = HTTP_CHUNK;
	} else if (a->sized) {
		a->state = a->left ? HTTP_SIZED : HTTP_WHOLE;
	} else {
		a->state = HTTP_UNSIZED;
	}
}

static struct err *read_line(struct http_answer *a, const char *line)
{
	switch (a->state) {
	case HTTP_STATUS:
		return read_status(a, line);
	case HTTP_HEAD:
		if (*line)
			return read_header(a, line);
		end_head(a);
		return NULL;
	case HTTP_CHUNK:
		if (!read_size(line, 16, "; \t", &a->left))
			return garbage();
		a->state = a->left ? HTTP_PIECE : HTTP_TRAILER;
		return NULL;
	case HTTP_PIECE_END:
		a->state = HTTP_CHUNK;
		return *line ? garbage() : NULL;
	default: /* HTTP_TRAILER */
		if (!*line)
			a->state = HTTP_WHOLE;
		return NULL;
	}
}

/* Takes a line, or what there is of it. */
static struct err *take_line(struct http_answer *a, const char *bytes, size_t size, size_t *taken)
{
	const char *end = memchr(bytes, '\n', size);
	*taken = end ? (size_t)(end - bytes) + 1 : size;
	a->head_size += *taken;
	if (a->head_size > HTTP_HEAD_MAX + LINES_TO_BODY * a->body.size ||
	    a->line.size + *taken > HTTP_HEAD_MAX)
		return err_new("the head of the answer is too long");
	if (memchr(bytes, 0, *taken))
		return garbage();
	buf_append(&a->line, bytes, *taken);
	if (a->line.failed)
		return err_new("out of memory");
	if (!end)
		return NULL;
	char *line = a->line.data;
	line[strcspn(line, "\r\n")] = 0;
	struct err *e = read_line(a, line);
	buf_clear(&a->line);
	return e;
}

static struct err *too_long(const struct http_answer *a)
{
	bool small = a->body_max < 1u << 20;
	return err_new("the answer is longer than the %zu %s that are read of one%s",
		       a->body_max >> (small ? 10 : 20), small ? "KB" : "MB",
		       small ? "" : ": ask for less at once");
}

/* Why something is refused is said at the beginning. */
static void take_refusal(struct http_answer *a, const char *bytes, size_t room)
{
	buf_append(&a->body, bytes, room);
	a->state = HTTP_WHOLE;
}

static struct err *take_body(struct http_answer *a, const char *bytes, size_t size, size_t *taken)
{
	bool counted = a->state != HTTP_UNSIZED, refused = a->status != 200;
	size_t most = refused && a->body_max > HTTP_REFUSAL_MAX ? HTTP_REFUSAL_MAX : a->body_max;
	*taken = counted && size > a->left ? (size_t)a->left : size;
	if (*taken > most - a->body.size && !refused)
		return too_long(a);
	if (*taken > most - a->body.size) {
		take_refusal(a, bytes, most - a->body.size);
		return a->body.failed ? err_new("out of memory") : NULL;
	}
	buf_append(&a->body, bytes, *taken);
	if (a->body.failed)
		return err_new("out of memory");
	if (!counted)
		return NULL;
	a->left -= *taken;
	if (!a->left)
		a->state = a->state == HTTP_SIZED ? HTTP_WHOLE : HTTP_PIECE_END;
	return NULL;
}

struct err *http_feed(struct http_answer *a, const char *bytes, size_t size)
{
	struct err *e = NULL;
	while (!e && size && a->state != HTTP_WHOLE) {
		bool body = a->state == HTTP_SIZED || a->state == HTTP_UNSIZED ||
			    a->state == HTTP_PIECE;
		size_t taken;
		e = body ? take_body(a, bytes, size, &taken) : take_line(a, bytes, size, &taken);
		bytes += taken;
		size -= taken;
	}
	return e;
}

struct err *http_end(struct http_answer *a)
{
	if (a->state == HTTP_WHOLE || a->state == HTTP_UNSIZED)
		return NULL;
	return a->state == HTTP_STATUS && !a->line.size
		       ? err_new("the server ended the connection without an answer")
		       : err_new("the answer is cut short");
}

void http_answer_free(struct http_answer *a)
{
	buf_free(&a->body);
	buf_free(&a->line);
}
