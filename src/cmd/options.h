/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options that several commands have, as rows of their tables; and what is checked about them. `o` is the command's struct of
   options. */
#include <regex.h>

#include "base/args.h"

#define DEFAULT_FILE "culprit.prof"

/* clang-format off */
#define OPTIONS_OF_THREADS(o) \
	{0, "thread", "ID|NAME", "only samples of threads with this number or name", ARG_STRING, &(o).thread}, \
	{0, "process", "ID|NAME", "only samples of processes with this number or name", ARG_STRING, &(o).process}
#define OPTIONS_OF_PATHS(o) \
	{0, "focus", "RE", "only paths with a function that matches", ARG_STRING, &(o).focus}, \
	{0, "ignore", "RE", "no paths with a function that matches", ARG_STRING, &(o).ignore}
#define OPTION_DEBUGINFOD(o) \
	{0, "debuginfod", NULL, "download missing debug information", ARG_FLAG, &(o).debuginfod}
#define OPTIONS_OF_NAMES(o) \
	{0, "full-names", NULL, "C++ names with parameters and all template arguments", ARG_FLAG, &(o).full_names}, \
	OPTION_DEBUGINFOD(o)
#define OPTION_NO_PAGER(o) \
	{0, "no-pager", NULL, "do not use a pager", ARG_FLAG, &(o).no_pager}
#define OPTIONS_OF_OUTPUT(o) \
	OPTION_NO_PAGER(o), \
	{0, "json", NULL, "print JSON", ARG_FLAG, &(o).json}
#define OPTION_JSON_TREE(where) \
	{0, "json", "rows", "print JSON; rows: a list instead of a tree", ARG_MAYBE, &(where)}
/* clang-format on */

/* Values of OPTION_JSON_TREE; 0: not given. */
enum { JSON_NESTED = 1, JSON_ROWS };

/* Each returns -1 to go on; anything else is the exit status, after the error was printed. */

/* Is there such a profile? */
int options_profile(const char *command, const char *path);

/* Reads the operands [FILE] [FUNCTION]: a single one is a profile or a function. *function is NULL if there is none. */
int options_function(const struct args *args, const char **path, const char **function);

/* Compiles the regular expression of an option. If it was not given, `text` is NULL, and nothing is done. */
int options_pattern(const char *command, const char *option, const char *text, regex_t *out);

/* Are they all FROM=TO? */
int options_path_maps(const char *command, const struct arg_list *maps);
