/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"

struct err {
	char *text;
};

/* What err_new returns when there is no memory to say more; never freed. */
static char out_of_memory_text[] = "out of memory";
static struct err out_of_memory = {out_of_memory_text};

/* Takes over `text` (malloc'ed or NULL). */
static struct err *err_own(char *text)
{
	struct err *e = text ? malloc(sizeof *e) : NULL;
	if (!e) {
		free(text);
		return &out_of_memory;
	}
	utf8_tame(text); /* it may quote a name from a foreign file */
	e->text = text;
	return e;
}

static char *format_text(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

static char *format_text(const char *format, va_list args)
{
	char *text;
	return vasprintf(&text, format, args) < 0 ? NULL : text;
}

struct err *err_new(const char *format, ...)
{
	va_list args;
	char *text;
	va_start(args, format);
	text = format_text(format, args);
	va_end(args);
	return err_own(text);
}

struct err *err_errno(const char *format, ...)
{
	int number = errno;
	va_list args;
	char *what, *text;
	va_start(args, format);
	what = format_text(format, args);
	va_end(args);
	if (!what)
		return &out_of_memory;
	errno = number; /* %m reads it, and unlike strerror is safe in threads */
	if (asprintf(&text, "%s: %m", what) < 0)
		text = NULL;
	free(what);
	return err_own(text);
}

struct err *err_context(struct err *e, const char *format, ...)
{
	va_list args;
	char *context, *text;
	if (!e || e == &out_of_memory)
		return e;
	va_start(args, format);
	context = format_text(format, args);
	va_end(args);
	if (!context)
		return e;
	if (asprintf(&text, "%s: %s", context, e->text) >= 0) {
		free(e->text);
		e->text = text;
		utf8_tame(text); /* it may quote a name from a foreign file */
	}
	free(context);
	return e;
}

const char *err_text(const struct err *e)
{
	return e->text;
}

void err_free(struct err *e)
{
	if (!e || e == &out_of_memory)
		return;
	free(e->text);
	free(e);
}
