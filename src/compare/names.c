/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/names.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

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
