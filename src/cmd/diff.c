/* SPDX-License-Identifier: Apache-2.0 */
/* `culprit diff`: what changed between recordings, and whether it is more than chance. */
#include "cmd/cmd.h"
#include "cmd/comparing.h"
#include "cmd/diff_paths.h"

#include "base/args.h"
#include "base/err.h"
#include "base/json.h"
#include "compare/diff.h"
#include "compare/path_diff.h"

#include <stdlib.h>

#define LIMIT_UNTOLD UINT64_MAX

struct options {
	struct comparing c;
	const char *fail_above, *noise;
	int fail_on;
	bool share;
	double fail_percent, noise_percent;
	struct comparing_files files;
};

static struct err *print(const struct comparing *c, const struct diff *diff)
{
	struct text_options o = comparing_text(c);
	struct buf text = {0};
	if (c->json) {
		struct json j = json_to_file(stdout);
		comparing_json_begin(&j);
		diff_json(diff, &c->runs, c->limit, &j);
		comparing_json_end(c, &j);
		return NULL;
	}
	diff_text(diff, &c->runs, &o, &text);
	struct err *e = comparing_show(c, &text);
	buf_free(&text);
	return e;
}

static int compare_samples(struct options *o)
{
	struct comparing *c = &o->c;
	struct diff_options options = {
		.old_runs = o->files.old_count,
		.min = c->min / 100,
		.alpha = COMPARING_ALPHA,
		.noise = o->noise_percent / 100,
		.shares = o->share,
		.fail_above = o->fail_above ? o->fail_percent / 100 : -1,
		.fail_on_total = o->fail_on == 1,
	};
	struct diff diff = {0};
	c->limit = c->limit == LIMIT_UNTOLD ? 0 : c->limit;
	struct err *e = comparing_read(c, o->files.paths, o->files.count, o->files.old_count);
	if (!e)
		e = diff_make(&c->runs, &c->rows, &options, &diff);
	if (!e)
		e = print(c, &diff);
	int status = diff.too_slow ? CMD_FAILED : CMD_OK;
	diff_free(&diff);
	comparing_free(c);
	return e ? cmd_fail("diff", e) : cmd_finish("diff", status);
}

/* ---- paths ---- */

#define BY_PATH 4 /* the one after those of enum counts_by; cmd/diff_paths.h compares them */

static int check_by_path(const struct options *o)
{
	const struct comparing *c = &o->c;
	if (c->metric || c->min_text || c->no_inline || c->debuginfod || o->noise || o->share)
		return cmd_misused("diff", "with --by=path, there are only --limit, --fail-above, "
					   "--fail-on, --full-names, --json and --no-pager");
	if (o->files.count != 2 * o->files.old_count)
		return cmd_misused("diff", "with --by=path, counts are compared as they are: it "
					   "takes as many profiles on both sides");
	return -1;
}

static int compare_paths(struct options *o)
{
	int status = check_by_path(o);
	o->c.limit = o->c.limit == LIMIT_UNTOLD ? DIFF_PATHS_LIMIT : o->c.limit;
	return status >= 0 ? status
			   : diff_paths(&o->c, &o->files,
					&(struct path_diff_options){
						.fail_above = o->fail_above ? o->fail_percent / 100
									    : -1,
						.fail_on_total = o->fail_on == 1,
					});
}

/* ---- the command ---- */

static int run(struct options *o, const struct args *args, int behind)
{
	int status = comparing_percent("diff", "min", o->c.min_text, 100, &o->c.min);
	if (status < 0)
		status = comparing_percent("diff", "noise", o->noise, 100, &o->noise_percent);
	if (status < 0)
		status = comparing_percent("diff", "fail-above", o->fail_above, 1e6,
					   &o->fail_percent);
	if (status < 0 && o->share && o->fail_above && o->fail_on == 1)
		status = cmd_misused(
			"diff", "--fail-on=total does not go with --share, which has no total");
	if (status < 0)
		status = comparing_gather("diff", &o->files, args, behind);
	if (status < 0)
		status = o->c.by == BY_PATH ? compare_paths(o) : compare_samples(o);
	free(o->files.paths);
	return status;
}

int cmd_diff(int argc, char **argv)
{
	struct options o = {
		.c.min = COMPARING_MIN, .c.limit = LIMIT_UNTOLD, .noise_percent = COMPARING_NOISE};
	const struct arg options[] = {
		{0, "old", "FILE", "a recording before; may be repeated", ARG_LIST, &o.files.old},
		{0, "new", "FILE", "a recording after; may be repeated", ARG_LIST, &o.files.new},
		{0, "fail-above", "PCT", "exit status 1 if something is certainly slower by more",
		 ARG_STRING, &o.fail_above},
		{0, "fail-on", "any|total",
		 "what can fail: the total and each row, or only the total", ARG_CHOICE,
		 &o.fail_on},
		{0, "share", NULL, "compare shares of the samples, not CPU time", ARG_FLAG,
		 &o.share},
		{0, "noise", "PCT", "how much single runs differ by themselves; 2 by default",
		 ARG_STRING, &o.noise},
		COMPARING_OPTIONS(o.c, COMPARING_BY "|path", "do not test rows with less"),
		{0},
	};
	struct args args = {
		.command = "diff",
		.usage = "[options] OLD NEW | OLD... -- NEW...",
		.summary = "Shows what changed between recordings, and whether that is more than "
			   "chance.",
		.options = options,
		.examples = "  culprit diff old.prof new.prof\n"
			    "  culprit diff --fail-above 5 old1.prof old2.prof -- new1.prof "
			    "new2.prof\n",
	};
	int behind = comparing_behind(argc, argv);
	int status = cmd_parse(&args, argc, argv);
	return status >= 0 ? status : run(&o, &args, behind);
}
