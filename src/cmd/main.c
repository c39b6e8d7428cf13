/* SPDX-License-Identifier: Apache-2.0 */
#include "base/nearest.h"
#include "cmd/cmd.h"
#include "cmd/db_profile.h"
#include "library/maker.h"
#include "library/teller.h"
#include "process/reach.h"

#include <stdio.h>
#include <string.h>

const struct command commands[] = {
	{"record", "records call paths of a command, a process or the machine into a profile",
	 cmd_record},
	{"report", "shows a profile as text: what took the time, and through which calls",
	 cmd_report},
	{"view", "shows a profile in the browser: as one HTML file, or live", cmd_view},
	{"top", "shows live what a recording or a process spends its time on", cmd_top},
	{"annotate", "shows source lines or instructions of a function, with their samples",
	 cmd_annotate},
	{"explain", "shows where the cycles went, by cause: what the processor waited for",
	 cmd_explain},
	{"export", "writes a profile in the format of another tool", cmd_export},
	{"import", "makes a profile from the perf.data of perf record", cmd_import},
	{"diff", "shows what changed between recordings, and whether it is more than chance",
	 cmd_diff},
	{"stats", "shows how much functions vary over several recordings", cmd_stats},
	{"merge", "merges many profiles into one", cmd_merge},
	{"daemon", "samples the whole machine all the time, into a database", cmd_daemon},
	{"db", "shows and keeps the database of continuous profiling", cmd_db},
	{"probe", "counts and times every call of chosen functions, by call path", cmd_probe},
	{"paths", "counts every path through the functions of a program, by line", cmd_paths},
	{"stack", "shows the call stacks of a running process, now", cmd_stack},
	{"structure", "shows procedures, loops and inlined code of a binary", cmd_structure},
	{"check", "checks how well the call stacks of a binary can be walked", cmd_check},
	{"list", "lists events and abilities of this machine, and what would enable the rest",
	 cmd_list},
	{"help", "shows the manual page of a command", cmd_help},
	{0},
};

const struct command *command_find(const char *name)
{
	const struct command *c;
	for (c = commands; c->name; c++)
		if (!strcmp(c->name, name))
			return c;
	return NULL;
}

static int unknown_command(const char *name)
{
	struct nearest n = {0};
	for (const struct command *c = commands; c->name; c++)
		nearest_try(&n, name, strlen(name), c->name);
	if (n.name)
		return cmd_misused(NULL, "unknown command '%s', did you mean '%s'?", name, n.name);
	return cmd_misused(NULL, "unknown command '%.64s'", name);
}

int main(int argc, char **argv)
{
	static char help_name[] = "help";
	char *help[] = {help_name, NULL};
	const struct command *command;
	db_profiles();
	if (argc < 2)
		return cmd_misused(NULL, "which command?");
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return cmd_help(1, help);
	if (!strcmp(argv[1], "--version")) {
		puts("culprit " CULPRIT_VERSION);
		return cmd_finish(NULL, CMD_OK);
	}
	if (argc == MAKER_ARGUMENTS + 1 &&
	    !strcmp(argv[1], MAKER_COMMAND)) /* for ourselves: nobody else asks for it */
		return maker_main(argc - 1, argv + 1);
	if (argc == TELLER_ARGUMENTS + 1 && !strcmp(argv[1], TELLER_COMMAND)) /* as well */
		return teller_main(argc - 1, argv + 1);
	if (argc == REACH_ARGUMENTS + 1 && !strcmp(argv[1], REACH_COMMAND))
		return reach_main(argc - 1, argv + 1);
	if (argv[1][0] == '-')
		return cmd_misused(NULL, "unknown option '%s'", argv[1]);
	command = command_find(argv[1]);
	if (!command)
		return unknown_command(argv[1]);
	return command->run(argc - 1, argv + 1);
}
