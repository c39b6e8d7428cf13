/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/names.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "analyze/shorten.h"
#include "base/buf.h"

static size_t digits(const char *at)
{
	return strspn(at, "0123456789");
}

/* The length of ".constprop.0" and its like at `at`, which go to the end or to another one; 0: none. */
static size_t clone_length(const char *at)
{
	static const char *const words[] = {"constprop", "isra",       "part", "cold",
					    "lto_priv",  "llvm",       "hot",  "unlikely",
					    "clone",     "localalias", "warm", "simdclone"};
	size_t length = 0;
	if (*at != '.')
		return 0;
	for (size_t i = 0; i < sizeof words / sizeof *words && !length; i++)
		if (!strncmp(at + 1, words[i], strlen(words[i])))
			length = 1 + strlen(words[i]);
	while (at[length] == '.' && digits(at + length + 1))
		length += 1 + digits(at + length + 1);
	return at[length] == 0 || at[length] == '.' || at[length] == ' ' || at[length] == ']'
		       ? length
		       : 0;
}

/* " [clone .isra.0]": what demanglers make of it. */
static size_t bracketed_length(const char *at)
{
	static const char start[] = " [clone ";
	const char *end = strncmp(at, start, sizeof start - 1) ? NULL : strchr(at, ']');
	return end ? (size_t)(end + 1 - at) : 0;
}

/* "::h" and 16 digits at the end, as older Rust has it. */
static size_t hash_length(const char *at)
{
	return !strncmp(at, "::h", 3) && strspn(at + 3, "0123456789abcdef") == 16 && !at[19] ? 19
											     : 0;
}

/* Numbers of things without a name: how many characters to keep before the digits. */
static size_t before_number(const char *at, const char *start)
{
	static const char lambda[] = "'lambda";
	if (*at == '#' && at > start && (isalpha((unsigned char)at[-1]) || at[-1] == ')'))
		return 1; /* {lambda()#1}, {unnamed type#1}, {closure#0} */
	if (!strncmp(at, "$_", 2))
		return 2;
	return strncmp(at, lambda, sizeof lambda - 1) ? 0 : sizeof lambda - 1;
}

void name_plain(const char *name, struct buf *out)
{
	for (const char *at = name; *at;) {
		size_t skipped = at > name ? clone_length(at) : 0, kept;
		if (!skipped)
			skipped = bracketed_length(at);
		if (!skipped)
			skipped = hash_length(at);
		if (skipped) {
			at += skipped;
			continue;
		}
		kept = before_number(at, name);
		buf_append(out, at, kept ? kept : 1);
		at += kept ? kept + digits(at + kept) : 1;
	}
}

/* ---- families ---- */

/* Whether a bracket begins what a name has besides itself; "(anonymous namespace)" is part of it. */
static bool begins_arguments(const char *at, const char *start)
{
	return at > start && (*at == '<' || *at == '(') &&
	       strncmp(at, "(anonymous", strlen("(anonymous")) != 0;
}

/* Where the name begins behind its return type, which may have spaces, as may the name of an operator. */
static size_t past_return_type(const char *name)
{
	static const char inside[] = " namespace)";
	const char *end = strstr(name, "operator");
	size_t start = 0;
	for (size_t i = 0; name[i] && name + i != end; i++)
		if (name[i] == ' ' && strncmp(name + i, inside, sizeof inside - 1) != 0)
			start = i + 1;
	return start;
}

/* Without brackets and what is in them. */
static void put_without_arguments(const char *name, struct buf *out)
{
	int depth = 0;
	for (const char *at = name; *at; at++) {
		size_t kept = depth ? 0 : name_operator(at, name);
		if (kept) {
			buf_append(out, at, kept);
			at += kept - 1;
		} else if (depth || begins_arguments(at, name)) {
			depth += *at == '<' || *at == '(';
			depth -= *at == ')' || (*at == '>' && at[-1] != '-');
		} else {
			buf_append(out, at, 1);
		}
	}
}

void name_family(const char *name, struct buf *out)
{
	static const char constant[] = " const";
	struct buf plain = {0};
	if (strchr(name, '/') || strchr(name, '$')) { /* of scripts, and of other languages */
		buf_puts(out, name);
		return;
	}
	put_without_arguments(name, &plain);
	size_t extra = sizeof constant - 1;
	if (plain.size > extra && !strcmp(plain.data + plain.size - extra, constant))
		plain.data[plain.size -= extra] = 0;
	buf_puts(out, buf_text(&plain) + past_return_type(buf_text(&plain)));
	out->failed |= plain.failed;
	buf_free(&plain);
}

/* ---- modules ---- */

void name_module_family(const char *path, struct buf *out)
{
	struct buf file = {0};
	name_module(path, &file);
	for (const char *at = buf_text(&file); *at;) {
		size_t sign = strspn(at, ".-_"), number = sign ? digits(at + sign) : 0;
		if (number)
			at += sign + number;
		else
			buf_append(out, at++, 1);
	}
	out->failed |= file.failed;
	buf_free(&file);
}

void name_module(const char *path, struct buf *out)
{
	static const char gone[] = " (deleted)";
	const char *slash = strrchr(path, '/');
	const char *file = slash && slash[1] ? slash + 1 : path;
	size_t size = strlen(file), extra = sizeof gone - 1;
	if (size > extra && !strcmp(file + size - extra, gone))
		size -= extra;
	buf_append(out, file, size);
}
