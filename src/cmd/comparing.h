/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the commands that compare recordings have in common. */
#include <stdbool.h>
#include <stdint.h>

#include "base/args.h"
#include "base/buf.h"
#include "compare/counts.h"
#include "compare/runs.h"
#include "compare/text.h"

struct json;

struct comparing {
	/* options */
	int by; /* enum counts_by */
	const char *metric, *min_text;
	double min; /* per cent */
	uint64_t limit;
	bool no_inline, full_names, debuginfod, json, no_pager;
	/* what was read */
	struct runs runs;
	struct counts rows;
	struct buf notes; /* lines about reliability */
};

/* What diff takes changes for, by default. */
#define COMPARING_MIN 0.1   /* per cent */
#define COMPARING_NOISE 2.0 /* per cent */
#define COMPARING_ALPHA 0.05

#define COMPARING_BY "function|loop|line|module"

/* The options that both have; `by` says what rows can be, `less` what happens to rows with less than --min. */
/* clang-format off */
#define COMPARING_OPTIONS(c, by_what, less) \
	{0, "by", by_what, "what rows are", ARG_CHOICE, &(c).by}, \
	{0, "metric", "M", "another event than the first, by name or number", ARG_STRING, &(c).metric}, \
	{0, "min", "PCT", less "; 0.1 by default", ARG_STRING, &(c).min_text}, \
	{0, "limit", "N", "no more than N rows", ARG_U64, &(c).limit}, \
	{0, "no-inline", NULL, "leave out inlined functions", ARG_FLAG, &(c).no_inline}, \
	{0, "full-names", NULL, "C++ names with parameters and all template arguments", ARG_FLAG, &(c).full_names}, \
	{0, "debuginfod", NULL, "download missing debug information", ARG_FLAG, &(c).debuginfod}, \
	{0, "no-pager", NULL, "do not use a pager", ARG_FLAG, &(c).no_pager}, \
	{0, "json", NULL, "print JSON", ARG_FLAG, &(c).json}
/* clang-format on */

/* Files before and after: OLD NEW, or OLD... -- NEW..., or --old OLD... --new NEW... */
struct comparing_files {
	struct arg_list old, new; /* of the options */
	const char **paths;       /* malloc'ed; old ones first */
	size_t count, old_count;
};
/* How many arguments stand behind "--". */
int comparing_behind(int argc, char **argv);
/* Fills in the rest of `files`; -1 to go on. */
int comparing_gather(const char *command, struct comparing_files *files, const struct args *args,
		     int behind);
/* An error where one of the files is not there; `command` makes such files. */
struct err *comparing_check(const struct comparing_files *files, const char *command);

/* A per cent from 0 to `most`; -1 to go on. `text` NULL leaves *out as it is. */
int comparing_percent(const char *command, const char *option, const char *text, double most,
		      double *out);

/* Reads the files and makes the rows. `old_count`: how many of the files are old; 0: there are no sides. */
struct err *comparing_read(struct comparing *c, const char *const *paths, size_t count,
			   size_t old_count);
void comparing_free(struct comparing *c);

/* How text is to look on stdout. */
struct text_options comparing_text(const struct comparing *c);
/* What surrounds the JSON of both. */
void comparing_json_begin(struct json *j);
void comparing_json_end(const struct comparing *c, struct json *j);
/* Shows the notes and after them the text. */
struct err *comparing_show(const struct comparing *c, const struct buf *text);
