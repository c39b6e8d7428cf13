/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/shorten.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"

#define ARGUMENTS_KEPT 16 /* characters of template arguments that are worth their room */

/* Past the bracket that closes the one at `at`; the end where none does. */
static const char *past_bracket(const char *at)
{
	int depth = 0;
	for (; *at; at++) {
		if (strchr("<({[", *at))
			depth++;
		else if (strchr(")}]", *at) || (*at == '>' && at[-1] != '-'))
			depth--;
		if (!depth)
			return at + 1;
	}
	return at;
}

/* The length of what `operator` is followed by at this place; 0: it is no operator. Longer ones stand first. */
static size_t sign_length(const char *at)
{
	static const char *const signs[] = {
		"<=>", "<<=", ">>=", "->*", "()", "[]", "->", "<<", ">>", "<=", ">=", "==", "!=",
		"&&",  "||",  "++",  "--",  "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<",
		">",   "=",   "!",   "+",   "-",  "*",  "/",  "%",  "&",  "|",  "^",  "~",  ",",
	};
	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
		if (!strncmp(at, signs[i], strlen(signs[i])))
			return strlen(signs[i]);
	return 0;
}

/* " new", " bool", " std::vector<int>": up to the parameters, or what else follows. */
static size_t type_length(const char *at)
{
	const char *end = at + 1;
	if (at[0] != ' ' || !(isalpha((unsigned char)at[1]) || at[1] == '_'))
		return 0;
	while (*end && *end != '(' && strncmp(end, " [", 2) != 0)
		end = *end == '<' ? past_bracket(end) : end + 1;
	return (size_t)(end - at);
}

size_t name_operator(const char *at, const char *start)
{
	static const char word[] = "operator";
	size_t length = sizeof word - 1;
	if (strncmp(at, word, length) ||
	    (at > start && (isalnum((unsigned char)at[-1]) || at[-1] == '_')))
		return 0;
	size_t rest = sign_length(at + length);
	if (!rest)
		rest = type_length(at + length);
	return rest ? length + rest : 0;
}

static bool is_kept(const char *at)
{
	static const char *const kept[] = {"(anonymous", "{lambda", "{default arg"};
	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
		if (!strncmp(at, kept[i], strlen(kept[i])))
			return true;
	return false;
}

/* Before the name itself: a return type ends with a space outside of all brackets. */
static size_t find_name(const struct buf *b, size_t from)
{
	size_t start = from;
	const char *text = b->data;
	for (size_t i = from; i < b->size; i++) {
		size_t operator_ = name_operator(text + i, text + from);
		if (operator_ || strchr("<({[", text[i]))
			i = operator_ ? i + operator_ - 1
				      : (size_t)(past_bracket(text + i) - text) - 1;
		else if (text[i] == ' ' && text[i + 1] != '[')
			start = i + 1;
	}
	return start;
}

/* Names of scripts, with paths in them, are not to be touched. */
static bool is_cxx(const char *name)
{
	return !strchr(name, '/') || strstr(name, "operator/");
}

void name_shorten(const char *name, struct buf *out)
{
	size_t before = out->size;
	if (!is_cxx(name)) {
		buf_puts(out, name);
		return;
	}
	for (const char *at = name; *at;) {
		size_t length = name_operator(at, name);
		const char *past = at + 1;
		if (length) {
			buf_append(out, at, length);
			at += length;
			at += *at == ' ' && at[1] == '<'; /* operator< <…> */
			continue;
		}
		if (strchr("(<{", *at))
			past = past_bracket(at);
		if (*at == '(' && !is_kept(at)) { /* parameters, and what belongs to them */
			at = !strncmp(past, " const", 6) ? past + 6 : past;
			continue;
		}
		if (*at == '<' && at > name && past - at > ARGUMENTS_KEPT)
			buf_puts(out, "<…>");
		else
			buf_append(out, at, (size_t)(past - at));
		at = past;
	}
	if (out->size == before)
		buf_puts(out, name);
	if (out->failed || !strstr(name, "::") || !memchr(name, '(', strlen(name)))
		return;
	size_t start = find_name(out, before);
	memmove(out->data + before, out->data + start, out->size - start + 1);
	out->size -= start - before;
}
