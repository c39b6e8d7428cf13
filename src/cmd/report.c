/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `culprit report`: a profile as text or JSON. What makes it unreliable comes
 * first, names are looked up only where they are shown.
 */
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/report_paths.h"
#include "analyze/choose.h"

#include "analyze/attribution.h"
#include "analyze/brief.h"
#include "analyze/derived.h"
#include "analyze/links.h"
#include "analyze/memory_hints.h"
#include "analyze/modules.h"
#include "analyze/reason_totals.h"
#include "analyze/scopes.h"
#include "analyze/show.h"
#include "analyze/summary.h"
#include "analyze/tree.h"
#include "analyze/views.h"
#include "analyze/waits.h"
#include "base/args.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/pager.h"
#include "base/term.h"
#include "profile/profile.h"

#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_MIN 0.5
#define DEFAULT_LINKS 20 /* rows */
#define BRIEF_TOP 10     /* functions */
#define BRIEF_LINES 40   /* of the tree */
#define ANY 1e-15        /* a share that every sample has */

struct options {
	const char *path;
	int view, by;
	const char *metric, *min_text, *focus, *ignore, *thread, *process;
	double min; /* per cent */
	uint64_t limit, depth;
	bool full, brief; /* brief: what fits on a screen */
	bool hot_path, links, no_inline, no_loops, full_names, debuginfod, no_pager;
	int json; /* OPTION_JSON_TREE */
};

/* As the values of --by stand in help. */
static const struct {
	enum attribution_by by;
	enum view_group group;
} by_choices[] = {
	{BY_FUNCTION, GROUP_NONE},   {BY_LOOP, GROUP_NONE},        {BY_LINE, GROUP_NONE},
	{BY_FILE, GROUP_NONE},       {BY_MODULE, GROUP_NONE},      {BY_INSN, GROUP_NONE},
	{BY_FUNCTION, GROUP_THREAD}, {BY_FUNCTION, GROUP_PROCESS}, {BY_FUNCTION, GROUP_RANK},
	{BY_FUNCTION, GROUP_REASON},
};
#define BY_PATH 10 /* the one after those; cmd/report_paths.h shows it */
#define LIMIT_UNTOLD UINT64_MAX

#define VIEW_UNTOLD -1
#define VIEW_WAITS (VIEW_FLAT + 1) /* as it stands in help */

struct report {
	const struct options *o;
	struct profile *profile;
	struct summary summary;
	struct buf notes; /* lines about reliability */
	uint32_t metric;
	const char *derived; /* a quotient to show beside it; NULL: what fits */
	regex_t focus, ignore;
	bool *threads; /* which count; NULL: all */
	struct modules *modules;
	struct attribution attribution;
	struct reason_totals reasons;
	struct memory_hints hints;
	struct tree *tree;
	struct tree *top; /* brief: the functions, by self */
};

/* ---- the work ---- */

/* A quotient is shown beside one of its metrics. */
static struct err *choose_derived(struct report *r)
{
	struct derived derived;
	if (!derived_choose(r->profile, r->o->metric, 0, &derived))
		return choose_no_metric(r->profile, r->o->path, r->o->metric);
	r->metric = derived.beside;
	r->derived = r->o->metric;
	summary_make(r->profile, r->metric, &r->summary);
	return NULL;
}

static struct err *load(struct report *r)
{
	const struct options *o = r->o;
	bool derived = o->metric && derived_is_known(o->metric);
	bool whole = o->full || o->json || o->metric || o->focus || o->ignore ||
		     o->view == VIEW_CALLERS;
	const struct profile_spare spare = {
		.threads = by_choices[o->by].group == GROUP_NONE && o->view != VIEW_WAITS &&
			   !o->thread && !o->process,
		.pathless = !o->metric && !o->json,
		.rare_above = whole ? 0 : PROFILE_MANY,
	};
	struct err *e = choose_profile_without(o->path, &spare, derived ? NULL : o->metric,
					       &r->profile, &r->metric, &r->summary, &r->notes);
	if (!e && derived)
		e = choose_derived(r);
	return e ? e : choose_threads(r->profile, o->path, o->thread, o->process, &r->threads);
}

static struct err *make_brief(struct report *r, const struct view_options *view)
{
	struct view_options v = *view;
	v.view = VIEW_FLAT;
	struct err *e = view_make(&r->attribution, &v, &r->top);
	struct tree *folded = NULL;
	if (!e)
		e = brief_fold(r->tree, r->metric, &folded);
	if (e)
		return e;
	tree_free(r->tree);
	r->tree = folded;
	return NULL;
}

static struct err *make_view(struct report *r)
{
	const struct options *o = r->o;
	struct attribution_options a = {
		.by = by_choices[o->by].by,
		.no_inline = o->no_inline,
		.no_loops = o->no_loops,
		.metric = r->metric,
		.detail = o->min / 100,
		.focus = o->focus ? &r->focus : NULL,
		.ignore = o->ignore ? &r->ignore : NULL,
	};
	struct view_options v = {
		.view = (enum view)o->view,
		.group = by_choices[o->by].group,
		.metric = r->metric,
		.min = o->min / 100,
		.depth = o->depth,
		.thread = r->threads,
	};
	struct err *e = modules_open(r->profile, o->debuginfod, &r->modules);
	if (!e)
		e = attribution_make(r->profile, r->modules, &a, &r->attribution);
	if (!e)
		e = view_make(&r->attribution, &v, &r->tree);
	if (!e)
		e = reason_totals_make(&r->attribution, r->threads, &r->reasons);
	if (!e)
		e = memory_hints_make(&r->attribution, r->threads, &r->hints);
	if (!e && o->brief)
		e = make_brief(r, &v);
	return e;
}

/* ---- output ---- */

/* The modules of the first rows of a tree, as many as are shown; 0: all. */
static void look_at(const struct tree *t, uint64_t rows, struct modules_shown *shown)
{
	uint32_t at = 0;
	for (uint64_t seen = 0; at != TREE_NONE && (!rows || seen < rows); seen++) {
		const struct scope *s = scopes_get(t->scopes, t->nodes[at].scope);
		shown[s->module].any = true;
		shown[s->module].nameless |= s->nameless || !scope_is_function(s);
		uint32_t next = tree_first(t, at);
		while (next == TREE_NONE && at != TREE_NONE) {
			next = at ? tree_next(t, at) : TREE_NONE;
			at = t->nodes[at].parent;
		}
		at = next;
	}
}

/* Why names are missing in what is shown. By file, rows have no module. */
static void note_modules(const struct report *r, struct buf *out)
{
	bool all = !r->tree || by_choices[r->o->by].by == BY_FILE;
	uint64_t root = r->o->view == VIEW_FLAT; /* which is no row there */
	struct modules_shown *shown = all ? NULL
					  : calloc(r->profile->module_count + 1, sizeof *shown);
	if (shown)
		look_at(r->tree, r->o->limit ? r->o->limit + root : 0, shown);
	if (shown && r->top)
		look_at(r->top, BRIEF_TOP + 1, shown);
	modules_notes(r->modules, shown, out);
	free(shown);
}

static void begin_json(struct report *r, struct json *j)
{
	__fsetlocking(stdout, FSETLOCKING_BYCALLER); /* many small pieces, one thread */
	note_modules(r, &r->notes);
	json_begin_object(j);
	json_key(j, "culprit");
	json_u64(j, 1);
	json_key(j, "summary");
	json_begin_object(j);
	summary_json(&r->summary, r->profile, buf_text(&r->notes), j);
	json_end_object(j);
}

static struct err *print_json(struct report *r, const struct show_options *show)
{
	struct json j = json_to_file(stdout);
	begin_json(r, &j);
	reason_totals_json(&r->reasons, &j);
	memory_hints_json(&r->hints, &r->attribution, &j);
	bool good = show_json(r->tree, r->profile, show, &j);
	json_end_object(&j);
	json_newline(&j);
	return good ? NULL : err_new("out of memory");
}

/* Which part of the recording is shown, where it is not all. */
static void put_selection(const struct report *r, struct buf *out)
{
	const struct options *o = r->o;
	uint64_t whole = r->tree->whole[r->metric], part = tree_total(r->tree, 0, r->metric);
	if (r->metric)
		cmd_put_labelled(out, "metric", r->profile->metrics[r->metric].name);
	if (!o->focus && !o->ignore && !r->threads)
		return;
	buf_puts(out, "only paths");
	if (o->focus)
		buf_printf(out, " with a function like '%s'", term_text(o->focus));
	if (o->ignore)
		buf_printf(out, "%s without one like '%s'", o->focus ? "," : "",
			   term_text(o->ignore));
	if (o->thread)
		buf_printf(out, " of thread %s", term_text(o->thread));
	if (o->process)
		buf_printf(out, " of process %s", term_text(o->process));
	buf_printf(out, ": %.2f%% of the samples; shares are of the whole\n",
		   whole ? 100 * (double)part / (double)whole : 0);
}

static void put_footer(const struct report *r, size_t hidden, size_t more, double min,
		       struct buf *out)
{
	struct buf notes = {0};
	if (r->o->brief && hidden)
		buf_printf(&notes,
			   "%zu more with less than %.2g%%: culprit report --full shows more, "
			   "culprit view lets you look around\n",
			   hidden, 100 * min);
	else if (hidden && r->o->min > 0 && !r->o->hot_path)
		buf_printf(&notes, "%zu more with less than %g%%: --min 0 shows all\n", hidden,
			   r->o->min);
	if (more)
		buf_printf(&notes, "%zu more rows: --limit shows more\n", more);
	note_modules(r, &notes);
	if (notes.size)
		buf_puts(out, "\n");
	cmd_put_lines(out, buf_text(&notes), TERM_DIM);
	buf_free(&notes);
}

/* Other tools give the time of interpreted functions to the function that runs them, and put that first. */
static void put_interpreted(const struct report *r, struct buf *out)
{
	uint64_t own = 0;
	for (uint32_t i = tree_first(r->top, 0); i != TREE_NONE; i = tree_next(r->top, i))
		if (scopes_get(r->top->scopes, r->top->nodes[i].scope)->script)
			own += tree_self(r->top, i, r->metric);
	if (own)
		buf_printf(out,
			   "%7.2f%% in all Python functions themselves: " PROFILE_SCRIPT_HOST
			   " runs them\n",
			   100 * (double)own / (double)r->top->whole[r->metric]);
}

/* The answer first. */
static void put_top(struct report *r, const struct show_options *show, struct buf *out)
{
	struct show_options rows = *show;
	rows.flat = true;
	rows.brief = false;
	rows.limit = 0;
	tree_prune(r->top, r->metric, ANY, 0);
	for (uint32_t i = tree_first(r->top, 0);
	     rows.limit < BRIEF_TOP && i != TREE_NONE && tree_self(r->top, i, r->metric);
	     i = tree_next(r->top, i))
		rows.limit++;
	show_text(r->top, r->profile, &rows, out);
	put_interpreted(r, out);
	buf_puts(out, "\n");
}

static struct err *print_text(struct report *r, const struct show_options *show, size_t hidden,
			      double min)
{
	struct buf out = {0};
	cmd_put_lines(&out, buf_text(&r->notes), TERM_YELLOW);
	summary_print(&r->summary, "", &out);
	if (r->profile->command && r->profile->command[0])
		cmd_put_labelled(&out, "command", r->profile->command);
	if (r->metric < r->profile->metric_count && r->summary.samples) {
		put_selection(r, &out);
		reason_totals_print(&r->reasons, r->profile, r->metric, &out);
		buf_puts(&out, "\n");
		if (r->top)
			put_top(r, show, &out);
		size_t more = show_text(r->tree, r->profile, show, &out);
		put_footer(r, hidden, more, min, &out);
		if (!strncmp(r->profile->metrics[r->metric].name, "alloc", strlen("alloc")))
			memory_hints_print(&r->hints, &r->attribution, &out);
	}
	struct err *e = out.failed ? err_new("out of memory") : pager_show(&out, !r->o->no_pager);
	buf_free(&out);
	return e;
}

static struct err *print(struct report *r)
{
	const struct options *o = r->o;
	struct show_options show = {
		.metric = r->metric,
		.derived = r->derived,
		.flat = o->view == VIEW_FLAT,
		.limit = o->limit,
		.full_names = r->o->full_names,
		.functions = by_choices[o->by].by == BY_LOOP,
		.brief = o->brief,
		.rows = o->json == JSON_ROWS,
		.width = term_is_tty(STDOUT_FILENO) ? term_width(STDOUT_FILENO) : 0,
		.colour = term_colour(STDOUT_FILENO),
	};
	double min = o->min > 0 || o->json ? o->min / 100 : ANY;
	size_t hidden;
	if (o->brief && r->metric < r->profile->metric_count) {
		min = brief_fit(r->tree, r->metric, min, BRIEF_LINES, &hidden);
		show.least = min * (double)r->tree->whole[r->metric];
	} else {
		hidden = tree_prune(r->tree, r->metric, min, o->depth);
	}
	if (o->hot_path && r->metric < r->profile->metric_count)
		tree_hot_path(r->tree, r->metric);
	if (!o->json)
		return print_text(r, &show, hidden, min);
	return print_json(r, &show);
}

/* ---- how well the code bears out the paths, in the place of a view ---- */

static struct err *print_links_text(struct report *r, const struct link_totals *links)
{
	struct buf out = {0};
	cmd_put_lines(&out, buf_text(&r->notes), TERM_YELLOW);
	summary_print(&r->summary, "", &out);
	link_totals_print(links, r->o->limit ? r->o->limit : DEFAULT_LINKS, &out);
	put_footer(r, 0, 0, 0, &out);
	struct err *e = out.failed ? err_new("out of memory") : pager_show(&out, !r->o->no_pager);
	buf_free(&out);
	return e;
}

static struct err *show_links(struct report *r)
{
	struct link_totals links = {0};
	struct err *e = modules_open(r->profile, r->o->debuginfod, &r->modules);
	if (!e)
		e = link_totals_make(r->profile, r->modules, r->metric, &links);
	if (!e && !r->o->json)
		e = print_links_text(r, &links);
	else if (!e) {
		struct json j = json_to_file(stdout);
		begin_json(r, &j);
		link_totals_json(&links, r->o->limit ? r->o->limit : DEFAULT_LINKS, &j);
		json_end_object(&j);
		json_newline(&j);
	}
	link_totals_free(&links);
	return e;
}

/* ---- who waited for whom, in the place of a view ---- */

static struct err *print_waits_text(struct report *r, const struct waits *waits)
{
	struct buf out = {0};
	cmd_put_lines(&out, buf_text(&r->notes), TERM_YELLOW);
	summary_print(&r->summary, "", &out);
	reason_totals_print(&r->reasons, r->profile, r->metric, &out);
	buf_puts(&out, "\n");
	waits_print(waits, r->profile, r->metric, r->o->limit, r->o->min / 100, &out);
	struct err *e = out.failed ? err_new("out of memory") : pager_show(&out, !r->o->no_pager);
	buf_free(&out);
	return e;
}

static void print_waits_json(struct report *r, const struct waits *waits)
{
	struct json j = json_to_file(stdout);
	begin_json(r, &j);
	reason_totals_json(&r->reasons, &j);
	summary_json_metrics(r->profile, &j);
	waits_json(waits, r->profile, r->o->limit, &j);
	json_end_object(&j);
	json_newline(&j);
}

static struct err *show_waits(struct report *r)
{
	const struct attribution_options a = {
		.by = BY_FUNCTION,
		.no_inline = true,
		.no_loops = true,
		.metric = r->metric,
		.detail = 1,
		.focus = r->o->focus ? &r->focus : NULL,
		.ignore = r->o->ignore ? &r->ignore : NULL,
	};
	struct waits waits = {0};
	if (!waits_metric(r->profile, &r->metric))
		return err_new("%s: it is not known who waited for whom: culprit record -e blocked "
			       "records it",
			       r->o->path);
	summary_make(r->profile, r->metric, &r->summary);
	struct err *e = modules_open(r->profile, r->o->debuginfod, &r->modules);
	if (!e)
		e = attribution_make(r->profile, r->modules, &a, &r->attribution);
	if (!e)
		e = reason_totals_make(&r->attribution, r->threads, &r->reasons);
	if (!e)
		e = waits_make(&r->attribution, r->metric, r->threads, &waits);
	if (!e && r->o->json)
		print_waits_json(r, &waits);
	else if (!e)
		e = print_waits_text(r, &waits);
	waits_free(&waits);
	return e;
}

static struct err *show_view(struct report *r)
{
	struct err *e = make_view(r);
	return e ? e : print(r);
}

static int report(struct report *r)
{
	struct err *e = load(r);
	if (!e)
		e = r->o->links                ? show_links(r)
		    : r->o->view == VIEW_WAITS ? show_waits(r)
					       : show_view(r);
	tree_free(r->tree);
	tree_free(r->top);
	reason_totals_free(&r->reasons);
	memory_hints_free(&r->hints);
	attribution_free(&r->attribution);
	modules_close(r->modules);
	profile_free(r->profile);
	free(r->threads);
	buf_free(&r->notes);
	return e ? cmd_fail("report", e) : cmd_finish("report", CMD_OK);
}

/* ---- the command ---- */

/* Sets o->min; -1 to go on. */
static int read_min(struct options *o)
{
	char *end;
	o->min = o->json ? 0 : DEFAULT_MIN;
	if (!o->min_text)
		return -1;
	o->min = strtod(o->min_text, &end);
	end += *end == '%';
	if (end == o->min_text || *end || !isfinite(o->min) || o->min < 0 || o->min > 100)
		return cmd_misused("report", "--min takes a per cent from 0 to 100, not '%s'",
				   o->min_text);
	return -1;
}

/* By default, a terminal gets what fits on its screen, if no option asks for more; -1 to go on. */
static int choose_brief(struct options *o)
{
	bool more = o->json || o->links || o->hot_path || o->view != VIEW_TREE || o->by ||
		    o->depth || o->limit || o->min_text;
	if (o->brief && o->full)
		return cmd_misused("report", "--brief or --full, not both");
	if (o->brief && more)
		return cmd_misused("report", "--brief is for the plain tree of functions, without "
					     "--min, --depth and --limit");
	o->brief |= !o->full && !more && term_is_tty(STDOUT_FILENO);
	return -1;
}

/* What paths are shown with; -1 to go on. */
static int check_by_path(const struct options *o)
{
	bool more = o->view != VIEW_UNTOLD || o->min_text || o->thread || o->process || o->full ||
		    o->brief || o->hot_path || o->links || o->depth || o->no_inline ||
		    o->no_loops || o->full_names || o->debuginfod;
	return more ? cmd_misused("report", "with --by=path, there are only --metric, --limit, "
					    "--focus, --ignore, --json and --no-pager")
		    : -1;
}

/* -1 to go on. */
static int check_options(struct options *o)
{
	int status = o->by == BY_PATH ? check_by_path(o) : read_min(o);
	if (status >= 0 || o->by == BY_PATH)
		return status;
	o->limit = o->limit == LIMIT_UNTOLD ? 0 : o->limit;
	bool by_loop = by_choices[o->by].by == BY_LOOP;
	if (o->view == VIEW_UNTOLD)
		o->view = by_loop && !o->hot_path ? VIEW_FLAT : VIEW_TREE;
	if (by_loop && o->no_loops)
		return cmd_misused("report", "--by=loop and --no-loops exclude each other");
	if (o->view == VIEW_WAITS && o->by)
		return cmd_misused("report", "--view=waits has threads as its rows, without --by");
	if (o->hot_path && o->view != VIEW_TREE)
		return cmd_misused("report", "--hot-path is for --view=tree");
	return choose_brief(o);
}

static int report_by_path(const struct report *r)
{
	const struct options *o = r->o;
	return report_paths(&(struct report_paths_options){
		.path = o->path,
		.limit = o->limit == LIMIT_UNTOLD ? REPORT_PATHS_LIMIT : o->limit,
		.metric = o->metric,
		.focus = o->focus ? &r->focus : NULL,
		.ignore = o->ignore ? &r->ignore : NULL,
		.json = o->json,
		.pager = !o->no_pager});
}

static int run(struct options *o, const struct args *args)
{
	struct report r = {.o = o};
	if (args->count > 1)
		return cmd_misused("report", "one file at a time");
	int status = check_options(o);
	if (status >= 0)
		return status;
	o->path = args->count ? args->operands[0] : DEFAULT_FILE;
	status = options_profile("report", o->path);
	if (status < 0)
		status = options_pattern("report", "focus", o->focus, &r.focus);
	if (status >= 0)
		return status;
	status = options_pattern("report", "ignore", o->ignore, &r.ignore);
	if (status < 0)
		status = o->by == BY_PATH ? report_by_path(&r) : report(&r);
	if (o->focus)
		regfree(&r.focus);
	if (o->ignore && status != CMD_USAGE)
		regfree(&r.ignore);
	return status;
}

int cmd_report(int argc, char **argv)
{
	struct options o = {.view = VIEW_UNTOLD, .limit = LIMIT_UNTOLD};
	const struct arg options[] = {
		{0, "view", "tree|callers|flat|waits",
		 "top-down; the callers of each function; a list; who waited for whom", ARG_CHOICE,
		 &o.view},
		{0, "by", "function|loop|line|file|module|insn|thread|process|rank|reason|path",
		 "what rows are; thread to reason have functions below them; path: of culprit paths -o",
		 ARG_CHOICE, &o.by},
		{0, "metric", "M", "another event than the first, by name or number", ARG_STRING,
		 &o.metric},
		{0, "min", "PCT", "leave out what has less; 0.5 by default, 0 with --json",
		 ARG_STRING, &o.min_text},
		OPTIONS_OF_PATHS(o),
		{0, "brief", NULL, "what fits on a screen; on a terminal by default", ARG_FLAG,
		 &o.brief},
		{0, "full", NULL, "the whole tree; by default if it goes to a file or a pipe",
		 ARG_FLAG, &o.full},
		{0, "hot-path", NULL, "only the costliest chain of calls and loops", ARG_FLAG,
		 &o.hot_path},
		{0, "links", NULL,
		 "show how well the code confirms the paths, instead of functions", ARG_FLAG,
		 &o.links},
		OPTIONS_OF_THREADS(o),
		{0, "depth", "N", "no deeper than N levels", ARG_U64, &o.depth},
		{0, "limit", "N", "no more than N rows", ARG_U64, &o.limit},
		{0, "no-inline", NULL, "leave out inlined functions", ARG_FLAG, &o.no_inline},
		{0, "no-loops", NULL, "leave out loops", ARG_FLAG, &o.no_loops},
		OPTIONS_OF_NAMES(o),
		OPTION_NO_PAGER(o),
		OPTION_JSON_TREE(o.json),
		{0},
	};
	struct args args = {
		.command = "report",
		.usage = "[options] [FILE]",
		.summary = "Shows a profile (" DEFAULT_FILE
			   " by default): what took the time, and through which calls.",
		.options = options,
		.examples = "  culprit report --by=loop\n"
			    "  culprit report --view=callers --focus '^malloc$'\n",
	};
	int status = cmd_parse(&args, argc, argv);
	return status >= 0 ? status : run(&o, &args);
}
