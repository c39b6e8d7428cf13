/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `culprit export`: a profile in the format of another tool.
 */
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "analyze/choose.h"

#include "analyze/attribution.h"
#include "analyze/modules.h"
#include "base/args.h"
#include "base/err.h"
#include "base/term.h"
#include "export/export.h"
#include "export/outfile.h"
#include "profile/profile.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FORMATS "pprof|folded|speedscope|firefox|callgrind|perf-script|csv"
#define UNTOLD -1

struct options {
	const char *path, *output, *metric, *thread, *process, *focus, *ignore;
	int to, group, rows; /* UNTOLD, or as the values stand in help */
	bool loops, no_inline, full_names, debuginfod;
};

struct run {
	const struct options *o;
	struct profile *profile;
	bool *threads;
	regex_t focus, ignore;
	struct modules *modules;
	struct attribution attribution;
	struct export_options export;
};

static struct err *load(struct run *r)
{
	const struct options *o = r->o;
	char *damage = NULL;
	struct err *e = profile_read(o->path, &r->profile, &damage);
	if (damage)
		fprintf(stderr, "culprit export: damaged: %s\n", damage);
	free(damage);
	r->export.metric = EXPORT_ALL_METRICS;
	if (!e && o->metric)
		e = choose_metric(r->profile, o->path, o->metric, &r->export.metric);
	if (!e)
		e = choose_threads(r->profile, o->path, o->thread, o->process, &r->threads);
	return e;
}

static struct err *attribute(struct run *r)
{
	const struct options *o = r->o;
	struct attribution_options a = {
		.by = BY_FUNCTION,
		.no_inline = o->no_inline,
		.no_loops = !o->loops,
		.focus = o->focus ? &r->focus : NULL,
		.ignore = o->ignore ? &r->ignore : NULL,
	};
	struct err *e = modules_open(r->profile, o->debuginfod, &r->modules);
	return e ? e : attribution_make(r->profile, r->modules, &a, &r->attribution);
}

static struct err *write_out(struct run *r)
{
	static const enum view_group groups[] = {GROUP_THREAD, GROUP_PROCESS};
	const struct options *o = r->o;
	struct outfile out;
	struct err *e = outfile_open(&out, o->output);
	if (e)
		return e;
	r->export.format = (enum export_format)o->to;
	r->export.thread = r->threads;
	r->export.group = o->group == UNTOLD ? GROUP_NONE : groups[o->group];
	r->export.contexts = o->rows == 1;
	r->export.no_inline = o->no_inline;
	r->export.full_names = o->full_names;
	r->export.creator = "culprit " CULPRIT_VERSION;
	e = export_write(&r->attribution, r->modules, &r->export, out.file);
	return outfile_close(&out, e);
}

static int export(struct run *r)
{
	struct err *e = load(r);
	if (!e)
		e = attribute(r);
	if (!e)
		e = write_out(r);
	attribution_free(&r->attribution);
	modules_close(r->modules);
	profile_free(r->profile);
	free(r->threads);
	return e ? cmd_fail("export", e) : CMD_OK;
}

/* ---- the command ---- */

/* -1 to go on. */
static int check(const struct options *o, const struct args *args)
{
	if (args->count > 1)
		return cmd_misused("export", "one file at a time");
	if (o->to == UNTOLD)
		return cmd_misused("export", "--to is missing: " FORMATS);
	if (o->group != UNTOLD && o->to != EXPORT_FOLDED && o->to != EXPORT_CSV)
		return cmd_misused("export", "--group is for --to=folded and --to=csv");
	if (o->rows != UNTOLD && o->to != EXPORT_CSV)
		return cmd_misused("export", "--rows is for --to=csv");
	if (!o->output && export_is_binary((enum export_format)o->to) && term_is_tty(STDOUT_FILENO))
		return cmd_fail("export", err_new("this format is not for a terminal: name a file "
						  "with -o, or send it to a pipe"));
	return options_profile("export", o->path);
}

static int run(struct options *o, const struct args *args)
{
	struct run r = {.o = o};
	o->path = args->count ? args->operands[0] : DEFAULT_FILE;
	if (o->output && !strcmp(o->output, "-"))
		o->output = NULL;
	int status = check(o, args);
	if (status < 0)
		status = options_pattern("export", "focus", o->focus, &r.focus);
	if (status >= 0)
		return status;
	status = options_pattern("export", "ignore", o->ignore, &r.ignore);
	if (status < 0) {
		status = export(&r);
		if (o->ignore)
			regfree(&r.ignore);
	}
	if (o->focus)
		regfree(&r.focus);
	return status;
}

int cmd_export(int argc, char **argv)
{
	struct options o = {.to = UNTOLD, .group = UNTOLD, .rows = UNTOLD};
	const struct arg options[] = {
		{0, "to", FORMATS, "the format", ARG_CHOICE, &o.to},
		{'o', "output", "FILE", "write there; standard output by default", ARG_STRING,
		 &o.output},
		{0, "metric", "M", "only this event, by name or number", ARG_STRING, &o.metric},
		OPTIONS_OF_THREADS(o),
		OPTIONS_OF_PATHS(o),
		{0, "group", "thread|process", "folded, csv: begin paths with it", ARG_CHOICE,
		 &o.group},
		{0, "rows", "function|context", "csv: what a row is; a function by default",
		 ARG_CHOICE, &o.rows},
		{0, "loops", NULL, "loops as frames of their own", ARG_FLAG, &o.loops},
		{0, "no-inline", NULL, "leave out inlined functions", ARG_FLAG, &o.no_inline},
		OPTIONS_OF_NAMES(o),
		{0},
	};
	struct args args = {
		.command = "export",
		.usage = "[options] --to=FORMAT [FILE]",
		.summary = "Writes a profile (" DEFAULT_FILE
			   " by default) in the format of another tool.",
		.options = options,
		.examples = "  culprit export --to=pprof -o app.pb.gz\n"
			    "  culprit export --to=folded | flamegraph.pl >app.svg\n"
			    "  culprit export --to=callgrind -o callgrind.out.app\n",
	};
	int status = cmd_parse(&args, argc, argv);
	return status >= 0 ? status : run(&o, &args);
}
