/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Command-line options from a table:
 *
 *     static const struct arg options[] = {
 *             {'p', "pid", "PID", "the process to look at", ARG_U64, &pid},
 *             {0, "json", NULL, "print JSON", ARG_FLAG, &json},
 *             {0, "unwind", "auto|cfi|analysis", "where recipes come from", ARG_CHOICE, &unwind},
 *             {0},
 *     };
 *
 * Accepted are --name, --name=value, --name value, -p value, -pvalue and joined
 * letters; operands may stand between options, unless the command says that the
 * first one ends them; after "--" all are operands.
 * -h and --help are known to every command.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

enum arg_kind {
	ARG_FLAG,   /* bool *: set to true */
	ARG_STRING, /* const char **: points into argv */
	ARG_U64,    /* uint64_t *: decimal, or hexadecimal after 0x */
	ARG_CHOICE, /* int *: the index of the value among "one|two|three" in `value` */
	ARG_MAYBE, /* int *: 1 if it was given without a value; else 2 + the index, as ARG_CHOICE */
	ARG_LIST,  /* struct arg_list *: every value that was given, in order */
};

#define ARG_LIST_MAX 64
struct arg_list {
	size_t count;
	const char *values[ARG_LIST_MAX]; /* point into argv */
};

struct arg {
	char letter;       /* 0 where it has none */
	const char *name;  /* without the dashes */
	const char *value; /* how help calls its value; NULL for flags */
	const char *help;
	enum arg_kind kind;
	void *out;
};

struct args {
	const char *command;       /* "stack" */
	const char *usage;         /* what follows the command's name: "[options] PID" */
	const char *summary;       /* one sentence */
	const struct arg *options; /* ends with an empty entry */
	const char *examples;      /* lines shown last; may be NULL */
	bool stop_at_operand;      /* options end at the first operand: what follows is a command */
	bool help;                 /* set by args_parse: -h was given, the rest was not looked at */
	int count;                 /* set by args_parse: operands, in order */
	char **operands;           /* they stand in argv, whose order changes; ends with NULL */
};

/* Reads argv[1..argc): an error says what is wrong and names the command's -h. */
struct err *args_parse(struct args *args, int argc, char **argv);

/* The screenful that -h shows. */
void args_help(const struct args *args, struct buf *out);
