/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/report_paths.h"

#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/pager.h"
#include "cmd/cmd.h"
#include "cmd/stored_paths.h"
#include "paths/choice.h"
#include "paths/result.h"
#include "paths/show.h"

#define NAME "culprit: "

struct report {
	const struct report_paths_options *o;
	struct stored_paths stored;
	struct buf notes; /* lines */
};

static bool is_like(const regex_t *pattern, const struct path_function *f)
{
	const struct path_choice choice = {.functions = pattern, .function_count = 1};
	return path_choice_has_function(&choice, *f->name ? f->name : NULL);
}

/* Leaves out functions that are not wanted. */
static struct err *choose(struct report *r)
{
	const struct report_paths_options *o = r->o;
	bool *keep = calloc(r->stored.result.count + 1, sizeof *keep);
	if (!keep)
		return err_new("out of memory");
	for (size_t i = 0; i < r->stored.result.count; i++) {
		const struct path_function *f = &r->stored.result.functions[i];
		keep[i] = (!o->focus || is_like(o->focus, f)) &&
			  !(o->ignore && is_like(o->ignore, f));
	}
	path_result_keep(&r->stored.result, keep);
	free(keep);
	return r->stored.result.count ? NULL : err_new("%s: no function is left", o->path);
}

static struct err *choose_metric(struct report *r)
{
	const char *wanted = r->o->metric;
	struct buf all = {0};
	struct path_result *result = &r->stored.result;
	while (wanted && result->by < result->metric_count &&
	       strcmp(result->metrics[result->by].name, wanted))
		result->by++;
	if (!wanted || result->by < result->metric_count)
		return NULL;
	for (size_t i = 0; i < result->metric_count; i++)
		buf_printf(&all, "%s%s", i ? ", " : "", result->metrics[i].name);
	struct err *e = err_new("%s has no metric %.64s of paths: %s", r->o->path, wanted,
				result->metric_count ? buf_text(&all)
						     : "culprit paths --metric samples some");
	buf_free(&all);
	return e;
}

static struct err *load(struct report *r)
{
	const struct report_paths_options *o = r->o;
	struct err *e = stored_paths_read(&o->path, 1, &r->stored, &r->notes);
	if (!e)
		e = choose_metric(r);
	return !e && (o->focus || o->ignore) ? choose(r) : e;
}

static struct err *print_json(const struct report *r, const struct path_show *show)
{
	struct json j = json_to_file(stdout);
	__fsetlocking(stdout, FSETLOCKING_BYCALLER); /* many small pieces, one thread */
	json_begin_object(&j);
	json_put_u64(&j, "culprit", 1);
	json_put_string(&j, "notes", show->notes);
	struct err *e = path_show_json(&r->stored.result, show, &j);
	json_end_object(&j);
	json_newline(&j);
	return e;
}

static struct err *print_text(const struct report *r, const struct path_show *show)
{
	struct buf out = {0};
	struct err *e = path_show_text(&r->stored.result, show, &out);
	if (!e)
		e = pager_show(&out, r->o->pager);
	buf_free(&out);
	return e;
}

int report_paths(const struct report_paths_options *options)
{
	struct report r = {.o = options};
	struct err *e = load(&r);
	const struct path_show show = {
		.limit = options->limit, .name = NAME, .notes = buf_text(&r.notes)};
	if (!e)
		e = options->json ? print_json(&r, &show) : print_text(&r, &show);
	stored_paths_free(&r.stored);
	buf_free(&r.notes);
	return e ? cmd_fail("report", e) : cmd_finish("report", CMD_OK);
}
