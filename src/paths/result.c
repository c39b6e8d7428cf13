/* SPDX-License-Identifier: Apache-2.0 */
#include "paths/result.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"

void path_function_free(struct path_function *f)
{
	free(f->name);
	free(f->module);
	free(f->build_id);
	free(f->lengths);
	free(f->counts);
	for (size_t i = 0; i < f->metered_count; i++)
		free(f->metered[i].paths);
	free(f->metered);
	numbering_free(&f->numbering);
	graph_free(&f->graph);
	*f = (struct path_function){0};
}

void path_result_free(struct path_result *r)
{
	for (size_t i = 0; i < r->count; i++)
		path_function_free(&r->functions[i]);
	for (size_t i = 0; i < r->metric_count; i++) {
		free(r->metrics[i].name);
		free(r->metrics[i].unit);
	}
	free(r->functions);
	path_contexts_free(&r->contexts);
	*r = (struct path_result){0};
}

const struct path_metered *path_function_metered(const struct path_function *f, size_t metric)
{
	const struct path_metered *m = metric < f->metered_count ? &f->metered[metric] : NULL;
	return m && m->samples ? m : NULL;
}

size_t path_result_metric(struct path_result *r, const char *name, const char *unit)
{
	size_t i = 0;
	while (i < r->metric_count &&
	       (strcmp(r->metrics[i].name, name) || strcmp(r->metrics[i].unit, unit)))
		i++;
	if (i < r->metric_count)
		return i;
	struct path_metric m = {strdup(name), strdup(unit)};
	if (i == PATH_METRICS_MAX || !m.name || !m.unit) {
		free(m.name);
		free(m.unit);
		return SIZE_MAX;
	}
	r->metrics[r->metric_count++] = m;
	return i;
}

/* After functions have moved. */
static void repair(struct path_result *r)
{
	for (size_t i = 0; i < r->count; i++)
		r->functions[i].numbering.graph = &r->functions[i].graph;
}

struct err *path_result_add(struct path_result *r, struct path_function *f)
{
	const struct path_function *before = r->functions;
	if (!ARRAY_ROOM(r->functions, r->count, r->room)) {
		path_function_free(f);
		return err_new("out of memory");
	}
	r->functions[r->count++] = *f;
	*f = (struct path_function){0};
	if (before != r->functions)
		repair(r);
	else
		r->functions[r->count - 1].numbering.graph = &r->functions[r->count - 1].graph;
	return NULL;
}

/* ---- the same function of several programs ---- */

static int by_text(const char *x, const char *y)
{
	return strcmp(x ? x : "", y ? y : "");
}

static int by_place(const void *a, const void *b)
{
	const struct path_function *x = a, *y = b;
	int order = strcmp(x->module, y->module);
	if (order)
		return order;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (x->state != y->state)
		return x->state < y->state ? -1 : 1;
	order = by_text(x->build_id, y->build_id);
	return order ? order : by_text(x->reason, y->reason);
}

/* A file may have been replaced by another one meanwhile. */
static bool is_same(const struct path_function *x, const struct path_function *y)
{
	if (by_place(x, y))
		return false;
	if (x->state == PATH_REFUSED)
		return true;
	const struct graph *g = &x->graph, *h = &y->graph;
	if (x->numbering.path_count != y->numbering.path_count ||
	    g->block_count != h->block_count || g->edge_count != h->edge_count)
		return false;
	for (size_t i = 0; i < g->block_count; i++)
		if (g->blocks[i].start != h->blocks[i].start ||
		    g->blocks[i].end != h->blocks[i].end)
			return false;
	for (size_t i = 0; i < g->edge_count; i++)
		if (g->edges[i].from != h->edges[i].from || g->edges[i].to != h->edges[i].to ||
		    x->numbering.edges[i].cut != y->numbering.edges[i].cut)
			return false;
	return true;
}

static void take_values(struct path_metered *to, struct path_metered *from, uint64_t path_count)
{
	to->samples += from->samples;
	to->placed += from->placed;
	to->sure += from->sure;
	to->value += from->value;
	if (!to->paths) {
		to->paths = from->paths;
		from->paths = NULL;
	}
	for (uint64_t i = 0; from->paths && i < path_count; i++) {
		to->paths[i].value += from->paths[i].value;
		to->paths[i].sure += from->paths[i].sure;
	}
}

static void take_metered(struct path_function *to, struct path_function *from)
{
	if (to->metered_count < from->metered_count) {
		struct path_metered *metered = to->metered;
		size_t count = to->metered_count;
		to->metered = from->metered;
		to->metered_count = from->metered_count;
		from->metered = metered;
		from->metered_count = count;
	}
	for (size_t i = 0; i < from->metered_count; i++)
		take_values(&to->metered[i], &from->metered[i], to->numbering.path_count);
}

static void take_counts(struct path_function *to, struct path_function *from)
{
	to->entries += from->entries;
	to->unknown += from->unknown;
	for (uint64_t i = 0; to->counts && from->counts && i < to->numbering.path_count; i++)
		to->counts[i] += from->counts[i];
	take_metered(to, from);
	path_function_free(from);
}

void path_result_join(struct path_result *r)
{
	size_t count = 0;
	if (!r->count)
		return;
	qsort(r->functions, r->count, sizeof *r->functions, by_place);
	for (size_t i = 0; i < r->count; i++) {
		struct path_function *f = &r->functions[i];
		if (count && is_same(&r->functions[count - 1], f))
			take_counts(&r->functions[count - 1], f);
		else if (count++ < i)
			r->functions[count - 1] = *f;
	}
	r->count = count;
	repair(r);
}

void path_result_keep(struct path_result *r, const bool *keep)
{
	size_t count = 0;
	for (size_t i = 0; i < r->count; i++)
		if (!keep[i])
			path_function_free(&r->functions[i]);
		else if (count++ < i)
			r->functions[count - 1] = r->functions[i];
	r->count = count;
	repair(r);
}
