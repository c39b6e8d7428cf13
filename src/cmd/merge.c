/* SPDX-License-Identifier: Apache-2.0 */
/* `culprit merge`: many profiles as one. */
#include "cmd/cmd.h"
#include "cmd/outcome.h"
#include "profile/output.h"

#include "analyze/summary.h"
#include "base/args.h"
#include "base/buf.h"
#include "base/err.h"
#include "compare/join.h"
#include "compare/text.h"
#include "profile/profile.h"

#include <stdio.h>
#include <string.h>

#define NAME "culprit merge: "
#define FIRST "culprit: " /* begins the summary */

struct options {
	const char *output;
	struct join_options join;
	bool quiet, json;
};

/* What was damaged or left out, line by line. */
static void print_warnings(const char *lines)
{
	while (*lines) {
		size_t length = strcspn(lines, "\n");
		struct buf line = {0}, clean = {0};
		buf_append(&line, lines, length);
		text_harmless(buf_text(&line), &clean);
		fprintf(stderr, NAME "%s\n", buf_text(&clean));
		buf_free(&line);
		buf_free(&clean);
		lines += length + (lines[length] == '\n');
	}
}

static void print_summary(const struct options *o, const struct output *output,
			  const struct profile *profile)
{
	struct summary summary;
	struct buf text = {0};
	summary_make(profile, 0, &summary);
	if (profile->counted_count)
		buf_printf(&text, FIRST "counts of paths of %zu function%s\n",
			   profile->counted_count, profile->counted_count == 1 ? "" : "s");
	if (profile->value_count || !profile->counted_count) {
		summary_print(&summary, FIRST, &text);
		summary_print_file(FIRST, o->output, output_size(output), &text);
	} else {
		outcome_put_paths_file(FIRST, o->output, output, &text);
	}
	fputs(buf_text(&text), stderr);
	buf_free(&text);
}

/* The result's own note has the warnings, too. */
static void print_json(const struct options *o, const struct output *output,
		       const struct profile *profile)
{
	struct summary summary;
	struct buf notes = {0};
	summary_make(profile, 0, &summary);
	summary_warn(&summary, profile, &notes);
	outcome_json(&(struct outcome){profile, o->output, output, buf_text(&notes)}, stdout);
	buf_free(&notes);
}

static int merge(const struct options *o, const struct args *args)
{
	struct output output = {0};
	struct profile *profile = NULL;
	struct buf warnings = {0};
	struct err *e = output_open(&output, o->output);
	if (!e)
		e = join_files((const char *const *)args->operands, (size_t)args->count, &o->join,
			       &profile, &warnings);
	if (!e)
		e = output_save(&output, profile);
	print_warnings(buf_text(&warnings));
	if (!e && o->json)
		print_json(o, &output, profile);
	else if (!e && !o->quiet)
		print_summary(o, &output, profile);
	profile_free(profile);
	output_close(&output);
	buf_free(&warnings);
	return e ? cmd_fail("merge", e) : cmd_finish("merge", CMD_OK);
}

int cmd_merge(int argc, char **argv)
{
	struct options o = {0};
	const struct arg options[] = {
		{'o', "output", "FILE", "the profile to write; an older one becomes FILE.old",
		 ARG_STRING, &o.output},
		{0, "apart", NULL,
		 "if periods differ: keep such metrics separate, instead of refusing", ARG_FLAG,
		 &o.join.apart},
		{'k', "keep-going", NULL, "leave out files that cannot be read", ARG_FLAG,
		 &o.join.keep_going},
		{'q', "quiet", NULL, "no summary", ARG_FLAG, &o.quiet},
		{0, "json", NULL, "the summary as JSON", ARG_FLAG, &o.json},
		{0},
	};
	struct args args = {
		.command = "merge",
		.usage = "[options] FILE... -o FILE",
		.summary = "Makes one profile of many: of several hosts, ranks or runs.",
		.options = options,
		.examples =
			"  culprit merge host1.prof host2.prof -o all.prof\n"
			"  culprit merge rank-*.prof -o job.prof && culprit report --by=rank job.prof\n",
	};
	int status = cmd_parse(&args, argc, argv);
	if (status < 0)
		status = outcome_check("merge", o.json, o.quiet);
	if (status >= 0)
		return status;
	if (!o.output || !*o.output || !strcmp(o.output, "-"))
		return cmd_misused("merge", "-o FILE is missing: the file for the profile");
	if (!args.count)
		return cmd_misused("merge", "which profiles?");
	return merge(&o, &args);
}
