/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"

#include "base/args.h"
#include "base/buf.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where pages lie as seen from the directory of the program: installed, and in the build. */
static const char *const page_places[] = {"../share/man/man1", "../../doc"};

/* The path of a manual page into out; false where there is none. */
static bool find_page(const char *name, struct buf *out)
{
	char self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof self);
	size_t i;
	char *slash;
	if (length <= 0 || length >= (ssize_t)sizeof self)
		return false;
	self[length] = 0;
	slash = strrchr(self, '/');
	if (!slash)
		return false;
	*slash = 0;
	for (i = 0; i < sizeof page_places / sizeof page_places[0]; i++) {
		buf_clear(out);
		buf_printf(out, "%s/%s/%s.1", self, page_places[i], name);
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
		execlp("man", "man", page, (char *)NULL);
		_exit(127);
	}
	return waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status);
}

static int overview(void)
{
	const struct command *c;
	puts("usage: culprit COMMAND [options] [--] ARGS\n"
	     "Who took the cycles, by which way, and why.\n");
	for (c = commands; c->name; c++)
		printf("  %-8s %s\n", c->name, c->summary);
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
	struct buf name = {0}, page = {0};
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
	shown = find_page(buf_text(&name), &page) && show_page(page.data);
	buf_free(&name);
	buf_free(&page);
	if (shown)
		return CMD_OK;
	if (!command)
		return overview();
	return command->run(2, (char *[]){args.operands[0], (char[]){"-h"}, NULL});
}
