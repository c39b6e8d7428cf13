/* SPDX-License-Identifier: Apache-2.0 */
#include "view/request.h"

#include <string.h>
#include <strings.h>

#define LINE_MAX_SIZE 2048 /* of the first line */
#define FIELDS_MAX 64

enum {
	GOOD = 200,
	MORE = 0,
	BAD = 400,
	NOT_GET = 405,
	TOO_LONG = 414,
	TOO_LARGE = 431,
	VERSION = 505
};

static bool equals(const char *text, size_t size, const char *wanted)
{
	return size == strlen(wanted) && !strncasecmp(text, wanted, size);
}

/* Letters of a name: of a method, or of a field. */
static bool is_token(const char *text, size_t size)
{
	static const char others[] = "!#$%&'*+-.^_`|~";
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)text[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			      (c >= '0' && c <= '9');
		if (!letter && (!c || !strchr(others, c)))
			return false;
	}
	return size > 0;
}

static bool is_printable(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] >= 0x7f)
			return false;
	return true;
}

/* "GET /path HTTP/1.1" */
static int parse_line(const char *line, size_t size, struct request *out)
{
	const char *first = memchr(line, ' ', size);
	const char *second = first ? memchr(first + 1, ' ', size - (size_t)(first + 1 - line))
				   : NULL;
	if (!second || !is_token(line, (size_t)(first - line)))
		return BAD;
	const char *version = second + 1;
	size_t version_size = size - (size_t)(version - line);
	if (version_size != 8 || memcmp(version, "HTTP/", 5) != 0)
		return BAD;
	if (memcmp(version, "HTTP/1.", 7) != 0)
		return VERSION;
	out->close = version[7] != '1';
	if (version[7] != '0' && version[7] != '1')
		return VERSION;
	out->path = first + 1;
	out->path_size = (size_t)(second - out->path);
	if (!out->path_size || !is_printable(out->path, out->path_size))
		return BAD;
	if (first - line != 3 || memcmp(line, "GET", 3) != 0)
		return NOT_GET;
	return out->path[0] == '/' ? GOOD : BAD;
}

static int take_field(const char *name, size_t name_size, const char *value, size_t size,
		      struct request *out)
{
	if (equals(name, name_size, "host")) {
		if (out->host)
			return BAD;
		out->host = value;
		out->host_size = size;
	} else if (equals(name, name_size, "if-none-match")) {
		out->match = value;
		out->match_size = size;
	} else if (equals(name, name_size, "connection")) {
		out->close |= equals(value, size, "close");
	} else if (equals(name, name_size, "transfer-encoding") ||
		   (equals(name, name_size, "content-length") && !equals(value, size, "0"))) {
		return BAD; /* what follows would be taken for another request */
	}
	return GOOD;
}

/* "Name: value" */
static int parse_field(const char *line, size_t size, struct request *out)
{
	const char *colon = memchr(line, ':', size);
	if (!colon || !is_token(line, (size_t)(colon - line)))
		return BAD;
	const char *value = colon + 1;
	size_t left = size - (size_t)(value - line);
	for (; left && (*value == ' ' || *value == '\t'); left--)
		value++;
	while (left && (value[left - 1] == ' ' || value[left - 1] == '\t'))
		left--;
	for (size_t i = 0; i < left; i++)
		if (((unsigned char)value[i] < ' ' && value[i] != '\t') || value[i] == 0x7f)
			return BAD;
	return take_field(line, (size_t)(colon - line), value, left, out);
}

int request_parse(const char *bytes, size_t size, struct request *out)
{
	size_t at = 0;
	*out = (struct request){0};
	for (unsigned count = 0;; count++) {
		const char *line = bytes + at, *end = memmem(line, size - at, "\r\n", 2);
		if (!end && count == 0 && size > LINE_MAX_SIZE)
			return TOO_LONG;
		if (!end)
			return size >= REQUEST_MAX ? TOO_LARGE : MORE;
		size_t length = (size_t)(end - line);
		at += length + 2;
		if (count == 0 && length > LINE_MAX_SIZE)
			return TOO_LONG;
		if (count > FIELDS_MAX || at > REQUEST_MAX)
			return TOO_LARGE;
		if (count && !length)
			break;
		int status = count ? parse_field(line, length, out) : parse_line(line, length, out);
		if (status != GOOD)
			return status;
	}
	out->size = at;
	return out->host ? GOOD : BAD;
}
