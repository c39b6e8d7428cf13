/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/names.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/shorten.h"
#include "base/buf.h"
#include "image/names.h"

bool name_is_pattern(const char *text)
{
	/* "operator[]" and "operator*" are names. */
	return !strstr(text, "operator") && strpbrk(text, "*?[");
}

/* The part of a name that stands in its symbol as it is: its last word. */
static bool may_contain(const char *symbol, const char *text)
{
	size_t end = strcspn(text, "(<"), start;
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	while (end && !strchr(letters, text[end - 1]))
		end--;
	for (start = end; start && strchr(letters, text[start - 1]);)
		start--;
	return strstr(text, "operator") ||
	       memmem(symbol, strlen(symbol), text + start, end - start);
}

static bool is_tail(const char *name, const char *text)
{
	size_t length = strlen(text), whole = strlen(name);
	return whole > length + 1 && !strcmp(name + whole - length, text) &&
	       name[whole - length - 1] == ':';
}

static enum name_match match_name(const char *name, const char *text)
{
	struct buf shortened = {0};
	enum name_match found = NAME_NONE;
	name_shorten(name, &shortened);
	if (!strcmp(name, text))
		found = NAME_WHOLE;
	else if (!strcmp(buf_text(&shortened), text))
		found = NAME_SHORT;
	else if (is_tail(buf_text(&shortened), text))
		found = NAME_TAIL;
	buf_free(&shortened);
	return found;
}

static enum name_match match_pattern(const char *symbol, const char *text)
{
	char *name = symbol[0] == '_' ? name_demangle(symbol) : NULL;
	struct buf shortened = {0};
	if (name)
		name_shorten(name, &shortened);
	bool fits = !fnmatch(text, symbol, 0) ||
		    (name && (!fnmatch(text, name, 0) || !fnmatch(text, buf_text(&shortened), 0)));
	free(name);
	buf_free(&shortened);
	return fits ? NAME_WHOLE : NAME_NONE;
}

enum name_match name_matches(const char *symbol, const char *text)
{
	if (name_is_pattern(text))
		return match_pattern(symbol, text);
	if (!strcmp(symbol, text))
		return NAME_WHOLE;
	if (!may_contain(symbol, text))
		return NAME_NONE;
	char *name = name_demangle(symbol);
	enum name_match found = name && strcmp(name, symbol) ? match_name(name, text) : NAME_NONE;
	free(name);
	return found;
}
