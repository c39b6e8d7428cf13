/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"

#include "base/args.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/pager.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where pages lie as seen from the directory of the program: installed, and in the build. */
static const char *const page_places[] = {"../share/man/man1", "../../doc"};
static const char *const text_places[] = {"../share/culprit/manual", "../../doc"};

/* The path of NAME with this ending into out; false where there is none. */
static bool find_file(const char *const places[2], const char *name, const char *ending,
		      struct buf *out)
{
	char self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof self);
	if (length <= 0 || length >= (ssize_t)sizeof self)
		return false;
	self[length] = 0;
	char *slash = strrchr(self, '/');
	if (!slash)
		return false;
	*slash = 0;
	for (int i = 0; i < 2; i++) {
		buf_clear(out);
		buf_printf(out, "%s/%s/%s%s", self, places[i], name, ending);
		if (!out->failed && !access(out->data, R_OK))
			return true;
	}
	return false;
}

/* Runs `man` on the page; false where that was not possible. */
static bool show_page(const char *page)
{
	int status;
	pid_t child;
	fflush(stdout);
	child = fork();
	if (child < 0)
		return false;
	if (!child) {
		/* No warnings of long words in our pages. */
		setenv("MANROFFOPT", "-Wbreak", 0);
		execlp("man", "man", page, (char *)NULL);
		_exit(127);
	}
	return waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status);
}

/* Shows the page as it was written, which is text that people can read; false where that was not possible. */
static bool show_text(const char *path)
{
	struct buf text = {0};
	char piece[BUFSIZ];
	size_t size;
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	while ((size = fread(piece, 1, sizeof piece, file)))
		buf_append(&text, piece, size);
	bool good = !ferror(file) && !text.failed && text.size;
	fclose(file);
	struct err *e = good ? pager_show(&text, true) : NULL;
	good &= !e;
	err_free(e);
	buf_free(&text);
	return good;
}

/* By man(1); without that, or without a page for it, as text. */
static bool show_manual(const char *name)
{
	struct buf path = {0};
	bool shown = find_file(page_places, name, ".1", &path) && show_page(path.data);
	if (!shown)
		shown = find_file(text_places, name, ".1.md", &path) && show_text(path.data);
	buf_free(&path);
	return shown;
}

static int overview(void)
{
	const struct command *c;
	puts("usage: culprit COMMAND [options] [--] ARGS\n"
	     "Shows which code took the CPU time, through which calls, and why.\n");
	for (c = commands; c->name; c++)
		printf("  %-9s %s\n", c->name, c->summary);
	puts("\nculprit COMMAND -h shows a command's options, culprit help COMMAND its manual page.");
	return cmd_finish(NULL, CMD_OK);
}

int cmd_help(int argc, char **argv)
{
	static const struct arg options[] = {{0}};
	struct args args = {
		.command = "help",
		.usage = "[COMMAND]",
		.summary = "Shows the manual page of a command; without one, all commands.",
		.options = options,
		.examples = "  culprit help list\n",
	};
	int status = cmd_parse(&args, argc, argv);
	const struct command *command;
	struct buf name = {0};
	bool shown;
	if (status >= 0)
		return status;
	if (args.count > 1)
		return cmd_misused("help", "one command at a time");
	if (!args.count)
		return overview();
	command = command_find(args.operands[0]);
	if (!command && strcmp(args.operands[0], "culprit"))
		return cmd_misused("help", "unknown command '%.64s'", args.operands[0]);
	buf_printf(&name, "culprit%s%s", command ? "-" : "", command ? command->name : "");
	shown = show_manual(buf_text(&name));
	buf_free(&name);
	if (shown)
		return CMD_OK;
	if (!command)
		return overview();
	return command->run(2, (char *[]){args.operands[0], (char[]){"-h"}, NULL});
}
