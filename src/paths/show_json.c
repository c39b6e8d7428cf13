/* SPDX-License-Identifier: Apache-2.0 */
#include "paths/show.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "image/lines.h"
#include "paths/ranking.h"
#include "paths/result.h"
#include "paths/show_parts.h"

static void put_edges(const struct ranked_function *r, struct json *j)
{
	const struct graph *g = &r->function->graph;
	json_key(j, "edges");
	json_begin_array(j);
	for (size_t i = 0; i < g->edge_count; i++) {
		if (!r->flow.edges[i])
			continue;
		json_begin_array(j);
		json_address(j, g->blocks[g->edges[i].from].last);
		json_address(j, g->blocks[g->edges[i].to].start);
		json_u64(j, r->flow.edges[i]);
		json_end_array(j);
	}
	json_end_array(j);
}

/* The lines of a block, one after the other; never the same twice in a row. */
static void put_lines(const struct path_file *file, const struct graph_block *b,
		      struct line_row *last, struct json *j)
{
	struct line_row *rows = NULL;
	size_t count = 0;
	err_free(lines_range(file->lines, b->start, b->end, &rows, &count));
	for (size_t i = 0; rows && i < count; i++) {
		const char *path = lines_file(file->lines, rows[i].file);
		struct buf text = {0};
		if (!path || !rows[i].line ||
		    (rows[i].file == last->file && rows[i].line == last->line))
			continue;
		buf_printf(&text, "%s:%" PRIu32, path, rows[i].line);
		json_string(j, buf_text(&text));
		buf_free(&text);
		*last = rows[i];
	}
	free(rows);
}

void show_way_json(const struct ranked_function *r, const struct numbering_path *path,
		   struct json *j)
{
	const struct graph *g = &r->function->graph;
	struct line_row last = {0};
	json_key(j, "blocks");
	json_begin_array(j);
	for (size_t i = 0; i < path->count; i++)
		json_address(j, g->blocks[path->blocks[i]].start);
	json_end_array(j);
	json_key(j, "next"); /* where the function goes on; null: it was left */
	if (path->edge == NUMBERING_OUT)
		json_null(j);
	else
		json_address(j, g->blocks[g->edges[path->edge].to].start);
	json_key(j, "lines");
	json_begin_array(j);
	for (size_t i = 0; i < path->count && r->file && r->file->lines; i++)
		put_lines(r->file, &g->blocks[path->blocks[i]], &last, j);
	json_end_array(j);
}

/* Numbers by metric. `sure`: of the value. */
static void put_values(const struct path_result *result, const struct path_function *f,
		       uint64_t number, bool sure, struct json *j)
{
	json_begin_array(j);
	for (size_t i = 0; i < result->metric_count; i++) {
		const struct path_metered *m = path_function_metered(f, i);
		const struct path_value *v = m && m->paths ? &m->paths[number] : NULL;
		json_u64(j, !v ? 0 : sure ? v->sure : v->value);
	}
	json_end_array(j);
}

static void put_sampled(const struct ranking *ranking, const struct path_result *result,
			const struct ranked_function *r, const struct ranked_path *p,
			struct json *j)
{
	json_key(j, "metrics");
	put_values(result, r->function, p->number, false, j);
	if (!result->metric_count)
		return;
	json_key(j, "sure");
	put_values(result, r->function, p->number, true, j);
	json_put_string(
		j, "kind",
		path_heat_name(ranking_heat(ranking, p->sampled.value, ranked_path_cost(p))));
}

static void put_path(const struct ranking *ranking, const struct path_result *result,
		     const struct ranked_function *r, const struct ranked_path *p,
		     const struct numbering_path *path, struct json *j)
{
	json_begin_object(j);
	json_put_u64(j, "id", p->number);
	json_put_u64(j, "count", p->count);
	json_put_u64(j, "instructions", p->length);
	put_sampled(ranking, result, r, p, j);
	show_way_json(r, path, j);
	show_path_contexts_json(result, r->function, p->number, j);
	json_end_object(j);
}

static struct err *put_paths(const struct ranking *ranking, const struct path_result *result,
			     struct ranked_function *r, uint64_t limit, struct json *j)
{
	struct numbering_path path = {0};
	struct err *e = NULL;
	if (!result->metric_count)
		ranked_function_by_count(r);
	json_key(j, "paths");
	json_begin_array(j);
	for (size_t i = 0; i < r->path_count && (!limit || i < limit) && !e; i++) {
		e = numbering_decode(&r->function->numbering, r->paths[i].number, &path);
		if (!e)
			put_path(ranking, result, r, &r->paths[i], &path, j);
	}
	json_end_array(j);
	numbering_path_free(&path);
	return e;
}

static void put_problems(const struct ranked_function *r, struct json *j)
{
	json_key(j, "checks");
	json_begin_array(j);
	for (size_t i = 0; i < r->flow.problem_count; i++) {
		struct buf text = {0};
		flow_problem_print(r->function, &r->flow.problems[i], &text);
		json_string(j, buf_text(&text));
		buf_free(&text);
	}
	json_end_array(j);
}

static void put_metered(const struct path_metered *m, struct json *j)
{
	json_put_u64(j, "samples", m ? m->samples : 0);
	json_put_u64(j, "placed", m ? m->placed : 0);
	json_put_u64(j, "sure", m ? m->sure : 0);
	json_put_u64(j, "total", m ? m->value : 0);
}

static void put_metrics(const struct path_result *result, const struct path_function *f,
			struct json *j)
{
	json_key(j, "metrics");
	json_begin_array(j);
	for (size_t i = 0; i < result->metric_count; i++) {
		json_begin_object(j);
		put_metered(path_function_metered(f, i), j);
		json_end_object(j);
	}
	json_end_array(j);
}

static struct err *put_function(const struct ranking *ranking, const struct path_result *result,
				struct ranked_function *r, uint64_t limit, struct json *j)
{
	const struct path_function *f = r->function;
	struct err *e = NULL;
	json_begin_object(j);
	json_put_string(j, "name", r->name);
	json_put_string(j, "module", f->module);
	json_key(j, "address");
	json_address(j, f->address);
	json_put_string(j, "state", f->state == PATH_EXACT ? "exact" : "refused");
	json_put_string(j, "reason", f->state == PATH_EXACT ? NULL : f->reason);
	if (f->state == PATH_EXACT) {
		json_put_u64(j, "entries", f->entries);
		json_put_u64(j, "open", r->flow.open);
		json_put_u64(j, "unknown", f->unknown);
		put_problems(r, j);
		json_put_u64(j, "instructions", r->instructions);
		json_put_u64(j, "possible", f->numbering.path_count);
		json_put_u64(j, "taken", r->flow.taken);
		if (result->metric_count)
			put_metrics(result, f, j);
		put_edges(r, j);
		show_function_contexts_json(result, f, j);
		e = put_paths(ranking, result, r, limit, j);
	}
	json_end_object(j);
	return e;
}

static void put_all_metrics(const struct path_result *result, struct json *j)
{
	json_key(j, "metrics");
	json_begin_array(j);
	for (size_t i = 0; i < result->metric_count; i++) {
		struct path_metered all = {0};
		for (size_t k = 0; k < result->count; k++) {
			const struct path_metered *m = path_function_metered(&result->functions[k],
									     i);
			all.samples += m ? m->samples : 0;
			all.placed += m ? m->placed : 0;
			all.sure += m ? m->sure : 0;
			all.value += m ? m->value : 0;
		}
		json_begin_object(j);
		json_put_string(j, "name", result->metrics[i].name);
		json_put_string(j, "unit", result->metrics[i].unit);
		put_metered(&all, j);
		json_end_object(j);
	}
	json_end_array(j);
}

struct err *path_show_json(const struct path_result *result, const struct path_show *show,
			   struct json *j)
{
	struct ranking ranking;
	struct err *e = ranking_make(result, &ranking);
	if (e)
		return e;
	json_key(j, "functions");
	json_begin_array(j);
	for (size_t i = 0; i < ranking.count && !e; i++)
		e = put_function(&ranking, result, &ranking.functions[i], show->limit, j);
	json_end_array(j);
	show_contexts_json(result, j);
	if (result->metric_count)
		put_all_metrics(result, j);
	json_key(j, "checks");
	json_begin_object(j);
	json_put_u64(j, "functions", ranking.count - ranking.refused);
	json_put_u64(j, "violated", ranking.wrong);
	json_put_u64(j, "forks", result->forks);
	json_end_object(j);
	ranking_free(&ranking);
	return e;
}
