/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"

#include "base/args.h"
#include "base/buf.h"
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void say(const char *command, const char *text)
{
	fflush(stdout);
	if (command)
		fprintf(stderr, "culprit %s: %s\n", command, text);
	else
		fprintf(stderr, "culprit: %s\n", text);
}

int cmd_fail(const char *command, struct err *e)
{
	say(command, err_text(e));
	err_free(e);
	return CMD_FAILED;
}

int cmd_misused(const char *command, const char *format, ...)
{
	struct buf text = {0};
	char what[512];
	va_list ap;
	va_start(ap, format);
	vsnprintf(what, sizeof what, format, ap);
	va_end(ap);
	if (command)
		buf_printf(&text, "%s (see culprit %s -h)", what, command);
	else
		buf_printf(&text, "%s (see culprit --help)", what);
	say(command, buf_text(&text));
	buf_free(&text);
	return CMD_USAGE;
}

int cmd_parse(struct args *args, int argc, char **argv)
{
	struct err *e = args_parse(args, argc, argv);
	struct buf text = {0};
	if (e) {
		cmd_fail(args->command, e);
		return CMD_USAGE;
	}
	if (!args->help)
		return -1;
	args_help(args, &text);
	fputs(buf_text(&text), stdout);
	buf_free(&text);
	return cmd_finish(args->command, CMD_OK);
}

int cmd_finish(const char *command, int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	return cmd_fail(command, err_errno("cannot write the output"));
}

void cmd_put_labelled(struct buf *out, const char *label, const char *text)
{
	buf_printf(out, "%s: ", label);
	buf_put_clean(out, text, strlen(text));
	buf_puts(out, "\n");
}

void cmd_put_lines(struct buf *out, const char *text, enum term_style style)
{
	while (*text) {
		size_t length = strcspn(text, "\n");
		buf_puts(out, term_style(STDOUT_FILENO, style));
		buf_put_clean(out, text, length);
		buf_printf(out, "%s\n", term_style(STDOUT_FILENO, TERM_PLAIN));
		text += length + (text[length] == '\n');
	}
}
