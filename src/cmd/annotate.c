/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `culprit annotate`: the source lines or the instructions of one function,
 * with its samples.
 */
#include "cmd/cmd.h"
#include "cmd/options.h"

#include "annotate/annotate.h"
#include "annotate/find.h"
#include "annotate/show.h"
#include "analyze/modules.h"
#include "annotate/sources.h"
#include "analyze/summary.h"
#include "base/args.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/pager.h"
#include "base/term.h"
#include "analyze/choose.h"
#include "explain/program.h"
#include "explain/show.h"
#include "profile/profile.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_MIN 0.5
#define DEFAULT_CONTEXT 5

struct options {
	const char *path, *function; /* function NULL: the one with the most samples */
	bool source, instructions, explain, hottest, bytes, full_names, debuginfod, json, no_pager;
	const char *metric, *min_text, *context_text, *thread, *process;
	struct arg_list source_dirs, path_maps;
	double min; /* per cent */
	uint64_t context;
};

struct annotate {
	const struct options *o;
	struct profile *profile;
	struct summary summary;
	struct buf notes; /* lines about reliability */
	uint32_t metric;
	bool *threads; /* which count; NULL: all */
	struct modules *modules;
	struct annotate_function function;
	size_t passed_over; /* functions with more samples, whose code cannot be read */
	bool inlined;       /* what was asked for was inlined into it */
	struct annotation annotation;
	struct sources *sources;
	struct program program; /* with --explain: this function */
};

/* ---- the work ---- */

static struct err *load(struct annotate *x)
{
	struct err *e = choose_profile(x->o->path, x->o->metric, &x->profile, &x->metric,
				       &x->summary, &x->notes);
	if (e)
		return e;
	if (!x->profile->metric_count || !x->summary.samples)
		return err_new("%s has no samples", x->o->path);
	e = choose_threads(x->profile, x->o->path, x->o->thread, x->o->process, &x->threads);
	return e ? e : modules_open(x->profile, x->o->debuginfod, &x->modules);
}

/* Of those whose code can be read. */
static struct err *find_hottest(struct annotate *x, const struct annotate_functions *all)
{
	size_t i = 0;
	while (i < all->count && all->all[i].self && !modules_image(x->modules, all->all[i].module))
		i++;
	if (i == all->count || !all->all[i].self)
		return err_new("%s has no samples in any function whose code can be read",
			       x->o->path);
	x->function = all->all[i];
	x->passed_over = i;
	return NULL;
}

static struct err *find(struct annotate *x)
{
	struct annotate_functions all;
	struct err *e = annotate_functions_list(x->profile, x->modules, x->metric, x->threads,
						&all);
	if (e)
		return e;
	if (x->o->function)
		e = annotate_functions_find(&all, x->o->function, x->o->hottest, &x->function,
					    &x->inlined);
	else
		e = find_hottest(x, &all);
	annotate_functions_free(&all);
	return modules_blame(x->modules, e);
}

static struct err *make(struct annotate *x)
{
	const struct options *o = x->o;
	struct err *e = annotate_make(x->profile, x->modules, x->function.module, x->function.start,
				      x->threads, &x->annotation);
	if (e)
		return e;
	if (!annotate_total(&x->annotation, 0, x->metric))
		return err_new("there are no samples in %s",
			       x->function.name ? x->function.name : "this function");
	struct sources_options wanted = {
		.maps = o->path_maps.values,
		.map_count = o->path_maps.count,
		.dirs = o->source_dirs.values,
		.dir_count = o->source_dirs.count,
		.directory = x->profile->directory,
		.binary = x->profile->modules[x->function.module].path,
	};
	return sources_open(&wanted, &x->sources);
}

/* With --explain: why its instructions waited. */
static struct err *explain(struct annotate *x)
{
	struct program_options wanted = {.metric = x->metric, .thread = x->threads};
	if (!x->o->explain)
		return NULL;
	struct err *e = program_open(x->profile, &wanted, &x->program);
	if (e)
		return e;
	machine_note(&x->program.machine, x->profile, &x->notes);
	return program_explain_one(&x->program, x->modules, x->function.module, x->function.start,
				   &wanted);
}

/* ---- output ---- */

static struct err *print_json(struct annotate *x)
{
	const struct options *o = x->o;
	struct json j = json_to_file(stdout);
	__fsetlocking(stdout, FSETLOCKING_BYCALLER); /* many small pieces, one thread */
	json_begin_object(&j);
	json_key(&j, "culprit");
	json_u64(&j, 1);
	json_key(&j, "summary");
	json_begin_object(&j);
	summary_json(&x->summary, x->profile, buf_text(&x->notes), &j);
	json_end_object(&j);
	struct err *e = annotate_show_json(&x->annotation, x->sources,
					   o->source || !o->instructions,
					   o->instructions || !o->source, &j);
	if (o->explain)
		explain_json(&x->program, &j);
	json_end_object(&j);
	json_newline(&j);
	return e;
}

static void put_selection(const struct annotate *x, struct buf *out)
{
	if (x->inlined) {
		source_put_clean(out, x->o->function, strlen(x->o->function), 0);
		buf_puts(out, " was inlined into:\n");
	} else if (!x->o->function) {
		buf_printf(out, "the function with the most samples of its own%s:\n",
			   x->passed_over ? ", of those whose code can be read" : "");
	}
	if (x->metric)
		cmd_put_labelled(out, "metric", x->profile->metrics[x->metric].name);
	if (x->o->thread)
		buf_printf(out, "only samples of thread %s\n", term_text(x->o->thread));
	if (x->o->process)
		buf_printf(out, "only samples of process %s\n", term_text(x->o->process));
}

static void put_footer(const struct annotate *x, bool by_line, struct buf *out)
{
	struct buf notes = {0};
	if (!by_line && !x->o->instructions && !x->annotation.has_lines)
		buf_puts(&notes,
			 "no lines are known of this function: compile with -g, or install its "
			 "debug package, to see its source\n");
	sources_notes(x->sources, &notes);
	if (notes.size)
		buf_puts(out, "\n");
	cmd_put_lines(out, buf_text(&notes), TERM_DIM);
	buf_free(&notes);
}

static struct err *print_text(struct annotate *x)
{
	const struct options *o = x->o;
	struct annotate_show show = {
		.metric = x->metric,
		.min = o->min / 100,
		.context = o->context,
		.width = term_is_tty(STDOUT_FILENO) ? term_width(STDOUT_FILENO) : 0,
		.colour = term_colour(STDOUT_FILENO),
		.full_names = o->full_names,
		.bytes = o->bytes,
		.sources = x->sources,
	};
	struct annotate_more more = {
		.columns = EXPLAIN_COLUMNS,
		.put_titles = explain_put_titles,
		.put_columns = explain_put_columns,
		.put_above = explain_put_bubbles,
	};
	if (o->explain) {
		more.context = x->program.functions[0].function;
		show.more = &more;
	}
	struct buf out = {0};
	bool by_line = x->annotation.has_lines && !o->instructions && !o->explain;
	cmd_put_lines(&out, buf_text(&x->notes), TERM_YELLOW);
	put_selection(x, &out);
	struct err *e = by_line ? annotate_show_source(&x->annotation, &show, &out)
				: annotate_show_asm(&x->annotation, &show, &out);
	put_footer(x, by_line, &out);
	if (!e && out.failed)
		e = err_new("out of memory");
	if (!e)
		e = pager_show(&out, !o->no_pager);
	buf_free(&out);
	return e;
}

static int annotate(struct annotate *x)
{
	struct err *e = load(x);
	if (!e)
		e = find(x);
	if (!e)
		e = make(x);
	if (!e)
		e = explain(x);
	if (!e)
		e = x->o->json ? print_json(x) : print_text(x);
	program_close(&x->program);
	sources_close(x->sources);
	annotate_free(&x->annotation);
	modules_close(x->modules);
	profile_free(x->profile);
	free(x->threads);
	buf_free(&x->notes);
	return e ? cmd_fail("annotate", e) : cmd_finish("annotate", CMD_OK);
}

/* ---- the command ---- */

/* Set o->min and o->context; -1 to go on. */
static int read_numbers(struct options *o)
{
	char *end;
	o->min = DEFAULT_MIN;
	if (o->min_text) {
		o->min = strtod(o->min_text, &end);
		end += *end == '%';
		if (end == o->min_text || *end || !isfinite(o->min) || o->min < 0 || o->min > 100)
			return cmd_misused("annotate",
					   "--min takes a per cent from 0 to 100, not '%s'",
					   o->min_text);
	}
	o->context = DEFAULT_CONTEXT;
	if (!o->context_text)
		return -1;
	if (!strcmp(o->context_text, "all")) {
		o->context = ANNOTATE_ALL;
		return -1;
	}
	errno = 0;
	o->context = strtoul(o->context_text, &end, 10);
	if (o->context_text[0] < '0' || o->context_text[0] > '9' || *end || errno ||
	    o->context > UINT32_MAX)
		return cmd_misused("annotate", "--context takes a number or 'all', not '%s'",
				   o->context_text);
	return -1;
}

static int run(struct options *o, const struct args *args)
{
	struct annotate x = {.o = o};
	int status = read_numbers(o);
	if (status < 0)
		status = options_function(args, &o->path, &o->function);
	if (status < 0)
		status = options_path_maps("annotate", &o->path_maps);
	if (status >= 0)
		return status;
	if (o->explain && o->source && !o->json)
		return cmd_misused("annotate",
				   "--explain shows instructions: --source or --explain, not both");
	if (o->source && o->instructions && !o->json)
		return cmd_misused("annotate", "--source or --asm, not both");
	status = options_profile("annotate", o->path);
	return status < 0 ? annotate(&x) : status;
}

int cmd_annotate(int argc, char **argv)
{
	struct options o = {0};
	const struct arg options[] = {
		{0, "source", NULL, "by source lines; the default if they are known", ARG_FLAG,
		 &o.source},
		{0, "asm", NULL, "by instructions", ARG_FLAG, &o.instructions},
		{0, "explain", NULL,
		 "by instructions: how often each ran, its cycles, and why it waited", ARG_FLAG,
		 &o.explain},
		{0, "hottest", NULL, "if several functions match: the one with the most samples",
		 ARG_FLAG, &o.hottest},
		{0, "source-dir", "DIR", "look for source files below DIR, too; may be repeated",
		 ARG_LIST, &o.source_dirs},
		{0, "path-map", "FROM=TO",
		 "source paths that begin with FROM are found at TO; may be repeated", ARG_LIST,
		 &o.path_maps},
		{0, "context", "N|all", "lines around those with samples; 5 by default", ARG_STRING,
		 &o.context_text},
		{0, "min", "PCT", "leave out what has less of the function; 0.5 by default",
		 ARG_STRING, &o.min_text},
		{0, "metric", "M", "another event than the first, by name or number", ARG_STRING,
		 &o.metric},
		OPTIONS_OF_THREADS(o),
		{0, "bytes", NULL, "with --asm: the bytes of instructions", ARG_FLAG, &o.bytes},
		OPTIONS_OF_NAMES(o),
		OPTIONS_OF_OUTPUT(o),
		{0},
	};
	struct args args = {
		.command = "annotate",
		.usage = "[options] [FILE] [FUNCTION]",
		.summary = "Shows a function (by default the one with the most samples) line by "
			   "line, with its samples.",
		.options = options,
		.examples = "  culprit annotate\n"
			    "  culprit annotate Solver::step\n"
			    "  culprit annotate --asm run2.prof memcpy\n"
			    "  culprit annotate --path-map /build/app=. solve\n",
	};
	int status = cmd_parse(&args, argc, argv);
	return status >= 0 ? status : run(&o, &args);
}
