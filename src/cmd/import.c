/* SPDX-License-Identifier: Apache-2.0 */
/* `culprit import`: a perf.data file becomes a profile, for all other commands. */
#include "cmd/cmd.h"
#include "cmd/outcome.h"
#include "profile/output.h"

#include "analyze/summary.h"
#include "base/args.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/utf8.h"
#include "import/import.h"
#include "profile/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME "culprit: "

struct options {
	const char *input, *output;
	bool quiet, json;
	struct import_options import;
};

static void print_metrics(const struct profile *p, struct buf *out)
{
	char count[SUMMARY_COUNT_MAX];
	for (uint32_t i = 1; i < p->metric_count; i++)
		buf_printf(out, "%*s%s samples of %s\n", (int)strlen(NAME), "",
			   summary_count(count, profile_samples(p, i)), p->metrics[i].name);
}

static void print_summary(const struct options *o, const struct profile *p,
			  const struct output *output, const char *notes)
{
	struct summary summary;
	struct buf text = {0};
	summary_make(p, 0, &summary);
	summary_print(&summary, NAME, &text);
	print_metrics(p, &text);
	outcome_put_notes(notes, NAME, &text);
	summary_print_file(NAME, o->output, output_size(output), &text);
	/* names come from a file: they may not steer a terminal */
	char *rest = strdup(buf_text(&text)), *all = rest, *line;
	while (rest && *rest && (line = strsep(&rest, "\n"))) {
		utf8_tame(line);
		fprintf(stderr, "%s\n", line);
	}
	free(all);
	buf_free(&text);
}

static void tell(const struct options *o, const struct profile *p, const struct output *output,
		 struct buf *notes)
{
	if (o->json) {
		struct summary summary;
		summary_make(p, 0, &summary);
		summary_warn(&summary, p, notes);
		outcome_json(&(struct outcome){p, o->output, output, buf_text(notes)}, stdout);
	} else if (!o->quiet) {
		print_summary(o, p, output, buf_text(notes));
	}
}

static struct err *convert(const struct options *o)
{
	struct output output;
	struct profile *profile = NULL;
	struct buf notes = {0};
	struct err *e = output_open(&output, o->output);
	if (!e)
		e = import_perf(o->input, &o->import, &profile, &notes);
	if (!e)
		e = output_save(&output, profile);
	if (!e)
		tell(o, profile, &output, &notes);
	profile_free(profile);
	output_close(&output);
	buf_free(&notes);
	return e;
}

int cmd_import(int argc, char **argv)
{
	struct options o = {.input = "perf.data", .output = "culprit.prof"};
	const struct arg options[] = {
		{'o', "output", "FILE", "the profile to write (culprit.prof)", ARG_STRING,
		 &o.output},
		{0, "sysroot", "DIR", "look for the recorded files below DIR first", ARG_STRING,
		 &o.import.sysroot},
		{0, "kallsyms", "FILE", "the recorded kernel's list of symbols", ARG_STRING,
		 &o.import.kallsyms},
		{0, "timeline", NULL, "also which context each thread was in over time", ARG_FLAG,
		 &o.import.timeline},
		{'q', "quiet", NULL, "no summary", ARG_FLAG, &o.quiet},
		{0, "json", NULL, "the summary as JSON", ARG_FLAG, &o.json},
		{0},
	};
	struct args args = {
		.command = "import",
		.usage = "[options] [PERF.DATA]",
		.summary =
			"Makes a profile from a perf.data file; stacks that perf copied are walked with "
			"culprit's tables.",
		.options = options,
		.examples =
			"  perf record --call-graph dwarf ./app; culprit import; culprit report\n"
			"  perf record -g -o - ./app | culprit import -\n",
	};
	int status = cmd_parse(&args, argc, argv);
	if (status < 0)
		status = outcome_check("import", o.json, o.quiet);
	if (status >= 0)
		return status;
	if (args.count > 1)
		return cmd_misused("import", "unexpected argument '%s'", args.operands[1]);
	if (args.count)
		o.input = args.operands[0];
	else if (access(o.input, F_OK))
		return cmd_fail("import", err_new("there is no perf.data here: make one by perf "
						  "record -g -- COMMAND"));
	struct err *e = convert(&o);
	return e ? cmd_fail("import", e) : cmd_finish("import", CMD_OK);
}
