/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/show.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/attribution.h"
#include "analyze/modules.h"
#include "analyze/show.h"
#include "analyze/summary.h"
#include "analyze/tree.h"
#include "analyze/views.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/path.h"
#include "base/term.h"
#include "harvest/probes.h"
#include "probe/findings.h"
#include "probe/paths.h"
#include "probe/show_metrics.h"
#include "profile/profile.h"

#define NAME_MAX_COLUMNS 36

/* ---- functions ---- */

static void put_count(struct buf *out, uint64_t count, int width)
{
	char text[SUMMARY_COUNT_MAX];
	buf_printf(out, " %*s", width, summary_count(text, count));
}

static void put_time(struct buf *out, uint64_t ns)
{
	char text[TERM_UNIT_MAX];
	buf_printf(out, " %9s", term_time(text, (double)ns / 1e9));
}

#define NO_TIMES " %9s %9s %9s %9s %9s"

static void put_times(struct buf *out, const struct probe_sums *s)
{
	put_time(out, s->ns);
	put_time(out, probes_quantile(s, 0.5));
	put_time(out, probes_quantile(s, 0.9));
	put_time(out, probes_quantile(s, 0.99));
	put_time(out, s->most);
}

static void put_function(const struct probe_function *f, struct buf *out)
{
	const struct probe_sums *s = &f->sums;
	if (f->state == PROBE_REFUSED) {
		buf_printf(out, " %11s  ", "refused");
		buf_put_cut(out, f->name, NAME_MAX_COLUMNS);
		buf_printf(out, " (%s): %s\n", path_file(f->module), f->reason ? f->reason : "");
		return;
	}
	put_count(out, s->calls, 11);
	if (probes_are_timed(f)) {
		put_count(out, s->returned, 11);
		put_count(out, s->unwound, 8);
		put_count(out, s->abandoned, 9);
		put_count(out, probes_active(s), 7);
		put_times(out, s);
		buf_puts(out, "  ");
		buf_put_cut(out, f->name, NAME_MAX_COLUMNS);
		buf_printf(out, "%s%s\n",
			   f->removed   ? ": removed"
			   : f->dropped ? ": timed only at first: "
					: "",
			   f->dropped && !f->removed && f->reason ? f->reason : "");
		return;
	}
	buf_printf(out, " %11s %8s %9s %7s" NO_TIMES "  ", "-", "-", "-", "-", "-", "-", "-", "-",
		   "-");
	buf_put_cut(out, f->name, NAME_MAX_COLUMNS);
	if (f->removed)
		buf_puts(out, ": removed\n");
	else
		buf_printf(out, ": only counted: %s\n", f->reason ? f->reason : "");
}

size_t probe_show_functions(const struct probes *p, struct buf *out)
{
	buf_printf(out, " %11s %11s %8s %9s %7s %9s %9s %9s %9s %9s  %s\n", "calls", "returned",
		   "unwound", "abandoned", "active", "time", "p50", "p90", "p99", "max",
		   "function");
	for (size_t i = 0; i < p->count; i++)
		put_function(&p->functions[i], out);
	return p->count + 1;
}

/* ---- paths ---- */

static int by_time(const void *a, const void *b)
{
	const struct probe_path *x = *(const struct probe_path *const *)a,
				*y = *(const struct probe_path *const *)b;
	if (x->sums.ns != y->sums.ns)
		return x->sums.ns > y->sums.ns ? -1 : 1;
	if (x->sums.calls != y->sums.calls)
		return x->sums.calls > y->sums.calls ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

/* The paths in order, malloc'ed; NULL: no memory. */
static const struct probe_path **sorted(const struct probes *p)
{
	const struct probe_path **all = calloc(p->path_count + 1, sizeof *all);
	for (size_t i = 0; all && i < p->path_count; i++)
		all[i] = &p->paths[i];
	if (all && p->path_count)
		qsort(all, p->path_count, sizeof *all, by_time);
	return all;
}

void probe_show_paths(const struct probes *p, const struct profile *profile,
		      struct modules *modules, uint64_t limit, struct buf *out)
{
	const struct probe_path **all = sorted(p);
	size_t shown = limit && limit < p->path_count ? limit : p->path_count;
	if (!all || !p->path_count)
		shown = 0;
	if (shown)
		buf_printf(out, "\n %11s %9s %9s %9s %9s %9s", "calls", "time", "p50", "p90", "p99",
			   "max");
	for (size_t i = 0; shown && i < p->metric_count; i++)
		metrics_show_title(&p->metrics[i], out);
	if (shown)
		buf_puts(out, "  called by\n");
	for (size_t i = 0; i < shown; i++) {
		put_count(out, all[i]->sums.calls, 11);
		const struct probe_sums *s = &all[i]->sums;
		if (probes_are_timed(&p->functions[all[i]->function]) && s->calls > s->untimed)
			put_times(out, s);
		else
			buf_printf(out, NO_TIMES, "-", "-", "-", "-", "-");
		for (size_t k = 0; k < p->metric_count; k++)
			metrics_show_column(&p->metrics[k],
					    all[i]->measures ? &all[i]->measures[k] : NULL, out);
		buf_puts(out, "  ");
		path_print(profile, modules, all[i]->node, out);
		buf_puts(out, "\n");
	}
	if (p->path_count > shown)
		buf_printf(out, "%zu more call paths: --limit shows more\n", p->path_count - shown);
	free(all);
}

struct err *probe_show_more(const struct probes *p, const struct profile *profile,
			    struct modules *modules, struct buf *out)
{
	struct findings findings = {0};
	struct err *e = findings_make(p, profile, modules, &findings);
	metrics_show_table(p, out);
	metrics_show_slowest(p, profile, modules, out);
	if (findings.count)
		buf_puts(out, "\n");
	findings_print(&findings, p, profile, modules, out);
	findings_free(&findings);
	return e;
}

/* ---- JSON ---- */

static void put_sums(const struct probe_sums *s, bool timed, struct json *j)
{
	json_put_u64(j, "calls", s->calls);
	if (!timed)
		return;
	json_put_u64(j, "returned", s->returned);
	json_put_u64(j, "unwound", s->unwound);
	json_put_u64(j, "abandoned", s->abandoned);
	json_put_u64(j, "untimed", s->untimed);
	json_put_u64(j, "active", probes_active(s));
	json_key(j, "wall_ns");
	json_begin_object(j);
	json_put_u64(j, "sum", s->ns);
	json_put_u64(j, "min", s->returned ? s->least : 0);
	json_put_u64(j, "max", s->most);
	json_put_u64(j, "p50", probes_quantile(s, 0.5));
	json_put_u64(j, "p90", probes_quantile(s, 0.9));
	json_put_u64(j, "p99", probes_quantile(s, 0.99));
	json_key(j, "histogram"); /* [from, calls] of buckets that have any */
	json_begin_array(j);
	for (uint32_t i = 0; i < PROBE_TIMES; i++) {
		if (!s->times[i])
			continue;
		json_begin_array(j);
		json_u64(j, probes_bucket_start(i));
		json_u64(j, s->times[i]);
		json_end_array(j);
	}
	json_end_array(j);
	json_end_object(j);
}

static void put_head(const struct probes *p, const struct probe_function *f, struct json *j)
{
	static const char *const states[] = {"on", "counting", "refused"};
	json_put_string(j, "function", f->name);
	json_put_string(j, "module", f->module);
	json_key(j, "address");
	json_address(j, f->address);
	json_put_string(j, "engine", p->patched ? "patch" : "uprobe");
	json_put_string(j, "state", f->removed ? "removed" : states[f->state]);
	json_put_string(j, "reason", f->reason);
	json_put_bool(j, "children", f->everywhere);
	json_put_bool(j, "jumps", f->jumps);
}

void probe_show_list(const struct probes *p, struct json *j)
{
	json_key(j, "probes");
	json_begin_array(j);
	for (size_t i = 0; i < p->count; i++) {
		json_begin_object(j);
		put_head(p, &p->functions[i], j);
		json_put_u64(j, "calls", p->functions[i].sums.calls);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_functions(const struct probes *p, const struct profile *profile,
			  struct modules *modules, struct json *j)
{
	json_key(j, "probes");
	json_begin_array(j);
	for (size_t i = 0; i < p->count; i++) {
		const struct probe_function *f = &p->functions[i];
		json_begin_object(j);
		put_head(p, f, j);
		put_sums(&f->sums, probes_are_timed(f), j);
		metrics_show_json(p, f->measures, j);
		metrics_show_slowest_json(p, f, profile, modules, j);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_paths(const struct probes *p, const struct profile *profile,
		      struct modules *modules, struct json *j)
{
	const struct probe_path **all = sorted(p);
	json_key(j, "paths");
	json_begin_array(j);
	for (size_t i = 0; all && i < p->path_count; i++) {
		const struct probe_path *path = all[i];
		json_begin_object(j);
		json_put_string(j, "function", p->functions[path->function].name);
		path_json(profile, modules, path->node, j);
		const struct probe_function *f = &p->functions[path->function];
		put_sums(&path->sums, probes_are_timed(f), j);
		metrics_show_json(p, path->measures, j);
		json_end_object(j);
	}
	json_end_array(j);
	free(all);
}

static struct err *put_tree(const struct profile *profile, struct modules *modules, bool rows,
			    struct json *j)
{
	const struct attribution_options options = {.by = BY_FUNCTION, .detail = 1};
	const struct view_options view = {.view = VIEW_TREE};
	struct attribution attribution = {0};
	struct tree *tree = NULL;
	struct err *e = attribution_make(profile, modules, &options, &attribution);
	if (!e)
		e = view_make(&attribution, &view, &tree);
	if (!e && !show_json(tree, profile, &(struct show_options){.rows = rows}, j))
		e = err_new("out of memory");
	tree_free(tree);
	attribution_free(&attribution);
	return e;
}

struct err *probe_show_json(const struct probes *p, const struct profile *profile,
			    struct modules *modules, bool rows, struct json *j)
{
	struct findings findings = {0};
	struct err *e = findings_make(p, profile, modules, &findings);
	put_functions(p, profile, modules, j);
	put_paths(p, profile, modules, j);
	findings_json(&findings, p, profile, modules, j);
	findings_free(&findings);
	json_put_double(j, "budget", 100 * p->budget);
	json_put_u64(j, "trap_ns", p->trap_ns);
	json_put_u64(j, "longest_stop_ns", p->stop_ns);
	if (e)
		return e;
	return put_tree(profile, modules, rows, j);
}
