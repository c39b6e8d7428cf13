/* SPDX-License-Identifier: Apache-2.0 */
/* `culprit explain`: where the cycles of a program or a function went, by cause. */
#include "cmd/cmd.h"
#include "cmd/options.h"

#include "analyze/choose.h"
#include "analyze/modules.h"
#include "analyze/summary.h"
#include "annotate/find.h"
#include "base/args.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/pager.h"
#include "base/term.h"
#include "explain/program.h"
#include "explain/show.h"
#include "profile/profile.h"

#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
	const char *path, *function; /* function NULL: the whole program */
	const char *metric, *thread, *process;
	bool hottest, debuginfod, json, no_pager;
};

struct explain {
	const struct options *o;
	struct profile *profile;
	struct summary summary;
	struct buf notes; /* lines about reliability */
	struct program_options wanted;
	bool *threads;
	struct modules *modules;
	struct program program;
	bool inlined; /* what was asked for was inlined into the function */
};

static struct err *load(struct explain *x)
{
	struct err *e = choose_profile(x->o->path, x->o->metric, &x->profile, &x->wanted.metric,
				       &x->summary, &x->notes);
	if (e)
		return e;
	if (!x->profile->metric_count || !x->summary.samples)
		return err_new("%s has no samples", x->o->path);
	e = choose_threads(x->profile, x->o->path, x->o->thread, x->o->process, &x->threads);
	x->wanted.thread = x->threads;
	if (!e)
		e = program_open(x->profile, &x->wanted, &x->program);
	if (e)
		return e;
	machine_note(&x->program.machine, x->profile, &x->notes);
	return modules_open(x->profile, x->o->debuginfod, &x->modules);
}

static struct err *explain_one(struct explain *x)
{
	struct annotate_functions all;
	struct annotate_function found;
	struct err *e = annotate_functions_list(x->profile, x->modules, x->wanted.metric,
						x->threads, &all);
	if (e)
		return e;
	e = annotate_functions_find(&all, x->o->function, x->o->hottest, &found, &x->inlined);
	if (!e)
		e = program_explain_one(&x->program, x->modules, found.module, found.start,
					&x->wanted);
	annotate_functions_free(&all);
	return e;
}

static void print_json(struct explain *x)
{
	struct json j = json_to_file(stdout);
	__fsetlocking(stdout, FSETLOCKING_BYCALLER); /* many small pieces, one thread */
	json_begin_object(&j);
	json_put_u64(&j, "culprit", 1);
	json_key(&j, "summary");
	json_begin_object(&j);
	summary_json(&x->summary, x->profile, buf_text(&x->notes), &j);
	json_end_object(&j);
	explain_json(&x->program, &j);
	json_end_object(&j);
	json_newline(&j);
}

static struct err *print_text(struct explain *x)
{
	struct explain_show show = {
		.colour = term_colour(STDOUT_FILENO),
		.width = term_is_tty(STDOUT_FILENO) ? term_width(STDOUT_FILENO) : 0,
	};
	struct buf out = {0};
	cmd_put_lines(&out, buf_text(&x->notes), TERM_YELLOW);
	if (x->inlined)
		buf_printf(&out, "%s was inlined into:\n", term_text(x->o->function));
	if (x->o->function)
		explain_show_function(&x->program, &show, &out);
	else
		explain_show_program(&x->program, &show, &out);
	struct err *e = out.failed ? err_new("out of memory") : pager_show(&out, !x->o->no_pager);
	buf_free(&out);
	return e;
}

static int explain(struct explain *x)
{
	struct err *e = load(x);
	if (!e)
		e = x->o->function ? explain_one(x)
				   : program_explain(&x->program, x->modules, &x->wanted);
	e = modules_blame(x->modules, e);
	if (!e && x->o->json)
		print_json(x);
	else if (!e)
		e = print_text(x);
	program_close(&x->program);
	modules_close(x->modules);
	profile_free(x->profile);
	free(x->threads);
	buf_free(&x->notes);
	return e ? cmd_fail("explain", e) : cmd_finish("explain", CMD_OK);
}

int cmd_explain(int argc, char **argv)
{
	struct options o = {0};
	const struct arg options[] = {
		{0, "hottest", NULL, "if several functions match: the one with the most samples",
		 ARG_FLAG, &o.hottest},
		{0, "metric", "M", "another event than the first, by name or number", ARG_STRING,
		 &o.metric},
		OPTIONS_OF_THREADS(o),
		OPTION_DEBUGINFOD(o),
		OPTIONS_OF_OUTPUT(o),
		{0},
	};
	struct args args = {
		.command = "explain",
		.usage = "[options] [FILE] [FUNCTION]",
		.summary =
			"Shows where the cycles of a program or a function went: what the processor\n"
			"waited for, and which loops lose most.",
		.options = options,
		.examples = "  culprit record -F 5000 ./app && culprit explain\n"
			    "  culprit explain run2.prof\n"
			    "  culprit explain Solver::step\n",
	};
	int status = cmd_parse(&args, argc, argv);
	if (status < 0)
		status = options_function(&args, &o.path, &o.function);
	if (status < 0)
		status = options_profile("explain", o.path);
	if (status >= 0)
		return status;
	struct explain x = {.o = &o};
	return explain(&x);
}
