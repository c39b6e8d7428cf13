/* SPDX-License-Identifier: Apache-2.0 */
#include "base/args.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/nearest.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELP_COLUMN 28 /* where the explanation of an option starts */

static struct err *misused(const struct args *args, const char *what, const char *text)
{
	return err_new("%s '%s' (see culprit %s -h)", what, text, args->command);
}

static struct err *unknown(const struct args *args, const char *text, size_t length)
{
	struct nearest n = {0};
	for (const struct arg *arg = args->options; arg->help; arg++)
		if (arg->name)
			nearest_try(&n, text + 2, length, arg->name);
	if (!n.name)
		return misused(args, "unknown option", text);
	return err_new("unknown option '%s', did you mean '--%s'? (see culprit %s -h)", text,
		       n.name, args->command);
}

static const struct arg *find_letter(const struct args *args, char letter)
{
	const struct arg *arg;
	for (arg = args->options; arg->help; arg++)
		if (arg->letter && arg->letter == letter)
			return arg;
	return NULL;
}

static const struct arg *find_name(const struct args *args, const char *name, size_t length)
{
	const struct arg *arg;
	for (arg = args->options; arg->help; arg++)
		if (arg->name && strlen(arg->name) == length && !memcmp(arg->name, name, length))
			return arg;
	return NULL;
}

static bool parse_u64(const char *text, uint64_t *out)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *digits = hex ? text + 2 : text;
	char *end;
	if (!isxdigit((unsigned char)digits[0]))
		return false; /* strtoull would take spaces and signs */
	errno = 0;
	*out = strtoull(digits, &end, hex ? 16 : 10);
	return end != digits && !*end && !errno;
}

static bool parse_choice(const char *choices, const char *text, int *out)
{
	size_t length = strlen(text), width;
	int index;
	for (index = 0;; index++, choices += width + 1) {
		width = strcspn(choices, "|");
		if (width == length && !memcmp(choices, text, length)) {
			*out = index;
			return true;
		}
		if (!choices[width])
			return false;
	}
}

static struct err *append(struct arg_list *list, const char *option, const char *text)
{
	if (list->count == ARG_LIST_MAX)
		return err_new("%s was given more than %d times", option, ARG_LIST_MAX);
	list->values[list->count++] = text;
	return NULL;
}

static struct err *store(const struct args *args, const struct arg *arg, const char *option,
			 const char *text)
{
	switch (arg->kind) {
	case ARG_FLAG:
		*(bool *)arg->out = true;
		return NULL;
	case ARG_STRING:
		*(const char **)arg->out = text;
		return NULL;
	case ARG_U64:
		if (parse_u64(text, arg->out))
			return NULL;
		return err_new("%s needs a number, not '%s' (see culprit %s -h)", option, text,
			       args->command);
	case ARG_CHOICE:
		if (parse_choice(arg->value, text, arg->out))
			return NULL;
		return err_new("%s is one of %s, not '%s' (see culprit %s -h)", option, arg->value,
			       text, args->command);
	case ARG_MAYBE:
		*(int *)arg->out = 0;
		if (text && !parse_choice(arg->value, text, arg->out))
			return err_new(
				"%s takes no value, or one of %s, not '%s' (see culprit %s -h)",
				option, arg->value, text, args->command);
		*(int *)arg->out += text ? 2 : 1;
		return NULL;
	case ARG_LIST:
		return append(arg->out, option, text);
	}
	return NULL;
}

/* "--name", "--name=value" or "--name value": *next is the argument after it, taken where used. */
static struct err *parse_long(struct args *args, const char *text, char ***next)
{
	size_t length = strcspn(text + 2, "=");
	const char *equals = text[2 + length] ? text + 2 + length + 1 : NULL;
	const struct arg *arg = find_name(args, text + 2, length);
	char option[64];
	if (!strcmp(text, "--help")) {
		args->help = true;
		return NULL;
	}
	if (!arg)
		return unknown(args, text, length);
	if (arg->kind == ARG_FLAG && equals)
		return misused(args, "this option takes no value:", text);
	if (arg->kind != ARG_FLAG && arg->kind != ARG_MAYBE && !equals) {
		if (!**next)
			return misused(args, "a value is missing after", text);
		equals = *(*next)++;
	}
	snprintf(option, sizeof option, "--%s", arg->name);
	return store(args, arg, option, equals);
}

/* "-j", "-jk", "-pvalue" or "-p value". */
static struct err *parse_letters(struct args *args, const char *text, char ***next)
{
	struct err *e = NULL;
	const char *c;
	for (c = text + 1; *c && !e && !args->help; c++) {
		const struct arg *arg = find_letter(args, *c);
		char option[3] = {'-', *c, 0};
		if (!arg && *c == 'h') {
			args->help = true;
		} else if (!arg) {
			e = misused(args, "unknown option", option);
		} else if (arg->kind == ARG_FLAG || arg->kind == ARG_MAYBE) {
			e = store(args, arg, option, NULL);
		} else if (c[1]) {
			return store(args, arg, option, c + 1);
		} else if (**next) {
			return store(args, arg, option, *(*next)++);
		} else {
			e = misused(args, "a value is missing after", option);
		}
	}
	return e;
}

struct err *args_parse(struct args *args, int argc, char **argv)
{
	char **next = argv + (argc > 0), **operand = next, *text;
	struct err *e = NULL;
	args->help = false;
	args->operands = operand;
	while ((text = *next) && !e && !args->help) {
		next++;
		if (!strcmp(text, "--"))
			break;
		if (text[0] != '-' || !text[1]) {
			*operand++ = text;
			if (args->stop_at_operand)
				break;
			continue;
		}
		if (text[1] == '-')
			e = parse_long(args, text, &next);
		else
			e = parse_letters(args, text, &next);
	}
	while (!e && !args->help && *next)
		*operand++ = *next++;
	if (argc > 0)
		*operand = NULL; /* so that they can be given to exec */
	args->count = (int)(operand - args->operands);
	return e;
}

static void help_option(const struct arg *arg, struct buf *out)
{
	size_t start = out->size, width;
	if (arg->letter)
		buf_printf(out, "  -%c%s", arg->letter, arg->name ? ", " : "");
	else
		buf_puts(out, "      ");
	if (arg->name)
		buf_printf(out, "--%s", arg->name);
	if (arg->value)
		buf_printf(out,
			   arg->kind == ARG_MAYBE ? "[=%s]"
			   : arg->name            ? "=%s"
						  : " %s",
			   arg->value);
	width = out->size - start;
	if (width + 2 > HELP_COLUMN) {
		buf_puts(out, "\n");
		width = 0;
	}
	buf_printf(out, "%*s%s\n", (int)(HELP_COLUMN - width), "", arg->help);
}

void args_help(const struct args *args, struct buf *out)
{
	static const struct arg help = {'h', "help", NULL, "show this text", ARG_FLAG, NULL};
	const struct arg *arg;
	buf_printf(out, "usage: culprit %s%s%s\n", args->command, *args->usage ? " " : "",
		   args->usage);
	buf_printf(out, "%s\n\n", args->summary);
	for (arg = args->options; arg->help; arg++)
		help_option(arg, out);
	help_option(&help, out);
	if (args->examples)
		buf_printf(out, "\nexamples:\n%s", args->examples);
	/* A command with parts, such as "db list", has one page. */
	buf_printf(out, "\nculprit help %.*s shows the manual page.\n",
		   (int)strcspn(args->command, " "), args->command);
}
