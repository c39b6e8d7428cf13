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
#include "explain/program.h"
#include "export/counted.h"
#include "export/executions.h"
#include "export/export.h"
#include "export/outfile.h"
#include "paths/executed.h"
#include "paths/ranking.h"
#include "paths/result.h"
#include "paths/stored.h"
#include "profile/profile.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FORMATS                                                                               \
	"pprof|folded|speedscope|firefox|callgrind|perf-script|csv|llvm-sample|profgen|bolt|" \
	"autofdo"
#define UNTOLD -1

struct options {
	const char *path, *output, *metric, *thread, *process, *focus, *ignore, *module;
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
	struct path_result paths; /* what was counted of paths, if that is what is written */
	struct ranking counted;
};

/* Counts of paths are more exact than samples. */
static bool wants_counted(const struct run *r)
{
	const struct options *o = r->o;
	return export_is_of_executions((enum export_format)o->to) && r->profile->counted_count &&
	       !o->metric;
}

static struct err *load(struct run *r)
{
	const struct options *o = r->o;
	char *damage = NULL;
	struct err *e = profile_read(o->path, &r->profile, &damage);
	if (damage)
		fprintf(stderr, "culprit export: damaged: %s\n", damage);
	free(damage);
	r->export.metric = EXPORT_ALL_METRICS;
	if (!e && !wants_counted(r))
		e = choose_check_samples(r->profile, o->path);
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

/* ---- executions ---- */

/* What was chosen, and how much of the samples it is: nothing in the output says so. */
static void tell_file(const struct program *program, uint32_t module)
{
	fprintf(stderr, "culprit export: %s: %.0f of %.0f samples, in %zu function%s\n",
		term_text(program->profile->modules[module].path), program->explained,
		program->samples, program->count, program->count == 1 ? "" : "s");
}

static struct err *write_counts(struct run *r, const struct program *program, uint32_t module)
{
	struct outfile out;
	struct err *e = outfile_open(&out, r->o->output);
	if (e)
		return e;
	e = executions_write(program, r->modules, module, (enum export_format)r->o->to, out.file);
	return outfile_close(&out, e);
}

/* ---- the same of what was counted ---- */

static void tell_counted(const struct program *program, uint32_t module,
			 const struct counted_program *about)
{
	fprintf(stderr, "culprit export: %s: %.0f of %.0f counted instructions, in %zu function%s",
		term_text(program->profile->modules[module].path), program->explained,
		program->samples, program->count, program->count == 1 ? "" : "s");
	if (about->refused)
		fprintf(stderr, "; %zu refused function%s no counts", about->refused,
			about->refused == 1 ? " has" : "s have");
	if (about->unread)
		fprintf(stderr, "; %zu function%s not found in it", about->unread,
			about->unread == 1 ? " was" : "s were");
	fputc('\n', stderr);
}

static struct err *write_counted(struct run *r, uint32_t module)
{
	struct program program = {0};
	struct counted_program about;
	if (r->threads)
		return err_new("%s: paths are counted of all threads together: --thread and "
			       "--process need samples (--metric)",
			       r->o->path);
	/* Files are opened of which something is shown. */
	struct err *e = paths_add_executed(&r->counted, r->profile);
	if (!e)
		e = modules_open(r->profile, r->o->debuginfod, &r->modules);
	if (!e)
		e = modules_blame(r->modules,
				  counted_program_make(&r->counted, r->profile, r->modules, module,
						       &program, &about));
	if (!e)
		e = write_counts(r, &program, module);
	if (!e)
		tell_counted(&program, module, &about);
	program_close(&program);
	return e;
}

/* If nothing was counted in the file that is meant, there may be samples. */
static struct err *export_counted(struct run *r, bool *done)
{
	size_t left_out = 0;
	uint32_t module = 0;
	struct err *e = path_result_restore(r->profile, &r->paths, &left_out);
	if (left_out)
		fprintf(stderr,
			"culprit export: damaged, or too large: the counts of %zu functions are "
			"left out\n",
			left_out);
	if (!e)
		e = ranking_make(&r->paths, &r->counted);
	if (!e)
		module = counted_module(&r->counted, r->profile, r->o->module);
	*done = e || module;
	if (!e && module)
		return write_counted(r, module);
	if (!e && !r->profile->value_count)
		e = r->o->module
			    ? err_new("%s has no counts of paths in a file '%s': culprit paths "
				      "--module %s -o FILE -- COMMAND",
				      r->o->path, r->o->module, r->o->module)
			    : err_new("%s: no function was called of which paths were counted",
				      r->o->path);
	return e;
}

static struct err *export_executions(struct run *r)
{
	struct program_options wanted = {.thread = r->threads, .every = true};
	struct program program = {0};
	bool done = false;
	struct err *e = wants_counted(r) ? export_counted(r, &done) : NULL;
	if (e || done)
		return e;
	if (r->export.metric != EXPORT_ALL_METRICS)
		wanted.metric = r->export.metric;
	if (!r->profile->metric_count)
		return err_new("%s has no samples", r->o->path);
	e = executions_module(r->profile, r->o->module, wanted.metric, &wanted.module);
	if (!e)
		e = program_open(r->profile, &wanted, &program);
	if (!e)
		e = modules_open(r->profile, r->o->debuginfod, &r->modules);
	if (!e)
		e = modules_blame(r->modules, program_explain(&program, r->modules, &wanted));
	if (!e)
		e = write_counts(r, &program, wanted.module);
	if (!e)
		tell_file(&program, wanted.module);
	program_close(&program);
	return e;
}

static struct err *export_samples(struct run *r)
{
	struct err *e = attribute(r);
	return e ? e : write_out(r);
}

static int export(struct run *r)
{
	struct err *e = load(r);
	if (!e)
		e = export_is_of_executions((enum export_format)r->o->to) ? export_executions(r)
									  : export_samples(r);
	attribution_free(&r->attribution);
	modules_close(r->modules);
	ranking_free(&r->counted);
	path_result_free(&r->paths);
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
	bool executions = export_is_of_executions((enum export_format)o->to);
	if (executions && (o->focus || o->ignore || o->loops || o->no_inline || o->full_names))
		return cmd_misused("export",
				   "--focus, --ignore, --loops, --no-inline and --full-names "
				   "are not for what optimisers read");
	if (o->module && !executions)
		return cmd_misused("export",
				   "--module is for --to=llvm-sample, profgen, bolt, autofdo");
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
		{0, "module", "FILE", "llvm-sample, profgen, bolt, autofdo: of which file",
		 ARG_STRING, &o.module},
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
			    "  culprit export --to=callgrind -o callgrind.out.app\n"
			    "  culprit export --to=llvm-sample -o app.profdata.txt\n",
	};
	int status = cmd_parse(&args, argc, argv);
	return status >= 0 ? status : run(&o, &args);
}
