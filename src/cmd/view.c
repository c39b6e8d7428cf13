/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `culprit view`: a profile as one HTML file to look at.
 */
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "base/browser.h"
#include "analyze/choose.h"
#include "live/page.h"
#include "cmd/view_diff.h"

#include "analyze/attribution.h"
#include "analyze/modules.h"
#include "analyze/serial.h"
#include "analyze/summary.h"
#include "annotate/sources.h"
#include "base/args.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/term.h"
#include "explain/program.h"
#include "export/outfile.h"
#include "profile/profile.h"
#include "view/counted.h"
#include "view/explained.h"
#include "view/pack.h"
#include "view/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
	const char *path, *output;
	bool no_source, no_open, debuginfod, serve;
	uint64_t port;
	struct arg_list source_dirs, path_maps;
	struct view_diff diff;
};

struct viewing {
	const struct options *o;
	struct view_diff *diff;
	struct buf output; /* path */
	struct profile *profile;
	struct buf notes; /* lines about reliability */
	struct modules *modules;
	struct attribution attribution;
	struct sources *sources;
	struct program program; /* functions that are explained */
	struct counted_paths paths;
	struct buf page;
};

/* ---- the work ---- */

static struct err *read_both(struct viewing *v, struct summary *summary)
{
	struct err *e = view_diff_read(v->diff, &v->notes);
	if (e)
		return e;
	v->profile = v->diff->runs.profile;
	summary_make(v->profile, 0, summary);
	summary_warn(summary, v->profile, &v->notes);
	return NULL;
}

static struct err *take_paths(struct profile *profile, void *context)
{
	struct viewing *v = context;
	return counted_paths_take(profile, &v->paths, &v->notes);
}

static struct err *load(struct viewing *v)
{
	const struct profile_spare spare = {.rare_above = PROFILE_MANY};
	const struct choose_prepare prepare = {take_paths, v};
	struct summary summary;
	uint32_t metric;
	struct err *e = v->diff->wanted ? read_both(v, &summary)
					: choose_profile_prepared(v->o->path, &spare, NULL,
								  &prepare, &v->profile, &metric,
								  &summary, &v->notes);
	if (!e && !v->diff->wanted && serial_is_telling(v->profile))
		e = serial_add(v->profile, &metric);
	return e ? e : modules_open(v->profile, v->o->debuginfod, &v->modules);
}

static struct err *open_sources(struct viewing *v)
{
	struct sources_options options = {
		.maps = v->o->path_maps.values,
		.map_count = v->o->path_maps.count,
		.dirs = v->o->source_dirs.values,
		.dir_count = v->o->source_dirs.count,
		.directory = v->profile->directory,
		.binary = choose_main_module(v->profile),
	};
	return v->o->no_source ? NULL : sources_open(&options, &v->sources);
}

static struct err *make_page(struct viewing *v)
{
	struct attribution_options options = {.by = BY_FUNCTION};
	bool diff = v->diff->wanted;
	struct pack_input input = {
		.profile = v->profile,
		.modules = v->modules,
		.title = diff ? buf_text(&v->diff->title) : v->o->path,
		.version = CULPRIT_VERSION,
		.comparison = diff ? &v->diff->comparison : NULL,
		.counted = &v->paths.ranking,
	};
	struct err *e = attribution_make(v->profile, v->modules, &options, &v->attribution);
	if (!e && diff)
		e = view_diff_match(v->diff, v->modules, &v->attribution, &v->notes);
	if (!e)
		e = open_sources(v);
	input.notes = buf_text(&v->notes);
	input.attribution = &v->attribution;
	input.sources = v->sources;
	if (!e && !diff)
		explained_program(v->profile, v->modules, &v->program);
	input.program = &v->program;
	return e ? e : page_make(&input, &v->page);
}

/* ---- the file ---- */

static void choose_output(struct viewing *v)
{
	const char *path = v->o->path;
	size_t length = strlen(path);
	if (v->o->output) {
		buf_puts(&v->output, v->o->output);
		return;
	}
	if (length > 5 && !strcmp(path + length - 5, ".prof"))
		length -= 5;
	buf_append(&v->output, path, length);
	buf_puts(&v->output, v->diff->wanted ? ".diff.html" : ".html");
}

/* A browser never sees half a file. NULL: stdout. */
static struct err *save(const char *path, const struct buf *page)
{
	struct outfile out;
	struct err *e = outfile_open(&out, path);
	if (e)
		return e;
	fwrite(page->data, 1, page->size, out.file);
	return outfile_close(&out, NULL);
}

static struct err *view(struct viewing *v)
{
	char size[TERM_UNIT_MAX];
	struct err *e = load(v);
	if (!e)
		e = make_page(v);
	if (!e && v->o->output && !strcmp(v->o->output, "-"))
		return save(NULL, &v->page);
	choose_output(v);
	const char *path = buf_text(&v->output);
	if (!e)
		e = save(path, &v->page);
	if (e)
		return e;
	bool shown = !v->o->no_open && browser_possible();
	printf("%s (%s)%s\n", path, term_size(size, v->page.size),
	       shown ? "" : "   open it in a browser");
	char *resolved = shown ? realpath(path, NULL) : NULL;
	if (resolved)
		browser_open(resolved);
	free(resolved);
	return NULL;
}

/* ---- the command ---- */

static int serve(const struct options *o)
{
	struct page_options s = {
		.out = stdout,
		.path = o->path,
		.port = (uint16_t)o->port,
		.no_open = o->no_open,
		.no_source = o->no_source,
		.debuginfod = o->debuginfod,
		.source_dirs = &o->source_dirs,
		.path_maps = &o->path_maps,
	};
	if (o->output)
		return cmd_misused("view", "either -o or --serve, not both");
	if (o->diff.wanted)
		return cmd_misused("view", "either --diff or --serve, not both");
	if (o->port > UINT16_MAX)
		return cmd_misused("view", "--port is at most 65535");
	bool busy;
	struct err *e = page_run(&s, &busy);
	int status = e ? cmd_fail("view", e) : cmd_finish("view", CMD_OK);
	if (busy) {
		fflush(stdout);
		_exit(status);
	}
	return status;
}

/* Decides what is looked at: o->path, or with --diff several, of which it is the last; -1 to go on. */
static int choose_files(struct options *o, const struct args *args, int behind)
{
	struct comparing_files *f = &o->diff.files;
	if (!o->diff.wanted && f->old.count + f->new.count)
		return cmd_misused("view", "--old and --new are for --diff");
	if (!o->diff.wanted && args->count > 1)
		return cmd_misused("view", "one file at a time; --diff OLD NEW compares two");
	if (!o->diff.wanted) {
		o->path = args->count ? args->operands[0] : DEFAULT_FILE;
		return -1;
	}
	int status = comparing_gather("view", f, args, behind);
	o->path = status < 0 ? f->paths[f->count - 1] : NULL;
	return status;
}

static int run(struct options *o)
{
	struct viewing v = {.o = o, .diff = &o->diff};
	int status = options_path_maps("view", &o->path_maps);
	if (status >= 0)
		return status;
	if (o->port && !o->serve)
		return cmd_misused("view", "--port is for --serve");
	if (o->serve)
		return serve(o);
	status = o->diff.wanted ? -1 : options_profile("view", o->path);
	if (status >= 0)
		return status;
	struct err *e = view(&v);
	sources_close(v.sources);
	program_close(&v.program);
	counted_paths_free(&v.paths);
	attribution_free(&v.attribution);
	modules_close(v.modules);
	if (!o->diff.wanted)
		profile_free(v.profile);
	buf_free(&v.notes);
	buf_free(&v.output);
	buf_free(&v.page);
	return e ? cmd_fail("view", e) : cmd_finish("view", CMD_OK);
}

int cmd_view(int argc, char **argv)
{
	struct options o = {0};
	const struct arg options[] = {
		{'o', "output", "FILE", "write to FILE; - is standard output", ARG_STRING,
		 &o.output},
		{0, "diff", NULL, "compare recordings: OLD NEW, or OLD... -- NEW...", ARG_FLAG,
		 &o.diff.wanted},
		{0, "old", "FILE", "with --diff: a recording before; may be repeated", ARG_LIST,
		 &o.diff.files.old},
		{0, "new", "FILE", "with --diff: a recording after; may be repeated", ARG_LIST,
		 &o.diff.files.new},
		{0, "no-source", NULL, "leave out the texts of source files", ARG_FLAG,
		 &o.no_source},
		{0, "no-open", NULL, "do not open it in a browser", ARG_FLAG, &o.no_open},
		{0, "serve", NULL, "show it at 127.0.0.1 until Ctrl-C, live while it is recorded",
		 ARG_FLAG, &o.serve},
		{0, "port", "N", "with --serve: use this port; any free one by default", ARG_U64,
		 &o.port},
		{0, "source-dir", "DIR", "look for source files below DIR, too", ARG_LIST,
		 &o.source_dirs},
		{0, "path-map", "FROM=TO", "source paths that begin with FROM are at TO", ARG_LIST,
		 &o.path_maps},
		OPTION_DEBUGINFOD(o),
		{0},
	};
	struct args args = {
		.command = "view",
		.usage = "[options] [FILE] | --diff OLD NEW | --diff OLD... -- NEW...",
		.summary = "Writes a profile (" DEFAULT_FILE
			   " by default) as one HTML file, and opens it in the browser.",
		.options = options,
		.examples = "  culprit view\n"
			    "  culprit view --serve\n"
			    "  culprit view -o /tmp/run.html --no-source run.prof\n"
			    "  culprit view --diff old.prof new.prof\n",
	};
	int behind = comparing_behind(argc, argv);
	int status = cmd_parse(&args, argc, argv);
	if (status < 0)
		status = choose_files(&o, &args, behind);
	if (status < 0)
		status = run(&o);
	view_diff_free(&o.diff);
	return status;
}
