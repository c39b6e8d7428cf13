/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A command is a function that gets its own name in argv[0] and returns the
 * exit status. Here, and only here, errors are printed.
 */
#include "base/term.h"

struct args;
struct buf;
struct err;

enum {
	CMD_OK = 0,
	CMD_FAILED = 1, /* could not do the work; one line on stderr says why */
	CMD_USAGE = 2,  /* asked wrongly */
};

struct command {
	const char *name, *summary;
	int (*run)(int argc, char **argv);
};

/* All commands, in the order in which help lists them; ends with an empty entry. */
extern const struct command commands[];

/* The command of this name, or NULL. */
const struct command *command_find(const char *name);

int cmd_paths(int argc, char **argv);
int cmd_probe(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_view(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_annotate(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_stats(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_daemon(int argc, char **argv);
int cmd_db(int argc, char **argv);
int cmd_stack(int argc, char **argv);
int cmd_structure(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_help(int argc, char **argv);

/* Reads the options of a command. Returns -1 to go on; anything else is the exit status,
   after help or the error was printed. */
int cmd_parse(struct args *args, int argc, char **argv);

/* Prints "culprit stack: text" on stderr, frees the error, returns CMD_FAILED. */
int cmd_fail(const char *command, struct err *e);

/* Prints "culprit stack: text (see culprit stack -h)" on stderr, returns CMD_USAGE. */
int cmd_misused(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Lines for standard output. They have names of files and words of recordings in them, which may be
   anything: what would steer a terminal is not passed on. */
void cmd_put_lines(struct buf *out, const char *text, enum term_style style);
/* "LABEL: TEXT", the same. */
void cmd_put_labelled(struct buf *out, const char *label, const char *text);

/* Ends output on stdout: CMD_FAILED, with a line on stderr, where it could not all be written. */
int cmd_finish(const char *command, int status);
