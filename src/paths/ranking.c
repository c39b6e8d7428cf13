/* SPDX-License-Identifier: Apache-2.0 */
#include "paths/ranking.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "image/names.h"
#include "paths/result.h"

#define HOT_PART 100 /* of the metric */

uint64_t ranked_path_cost(const struct ranked_path *p)
{
	return p->count * p->length;
}

uint64_t ranked_function_cost(const struct ranked_function *f, size_t count)
{
	uint64_t cost = 0;
	for (size_t i = 0; i < f->path_count && i < count; i++)
		cost += ranked_path_cost(&f->paths[i]);
	return cost;
}

uint64_t ranked_function_value(const struct ranked_function *f, size_t count)
{
	uint64_t value = 0;
	for (size_t i = 0; i < f->path_count && i < count; i++)
		value += f->paths[i].sampled.value;
	return value;
}

enum path_heat ranking_heat(const struct ranking *r, uint64_t value, uint64_t instructions)
{
	if (!value || (double)value * HOT_PART < (double)r->metered.value)
		return PATH_COLD;
	return (double)value * (double)r->instructions >
			       (double)r->metered.value * (double)instructions
		       ? PATH_DENSE
		       : PATH_SPARSE;
}

const char *path_heat_name(enum path_heat heat)
{
	static const char *const names[] = {"cold", "sparse", "dense"};
	return names[heat];
}

static int compare(uint64_t x, uint64_t y)
{
	return (x > y) - (x < y);
}

static int by_cost(const void *a, const void *b)
{
	const struct ranked_path *x = a, *y = b;
	int order = compare(y->sampled.value, x->sampled.value);
	if (!order)
		order = compare(ranked_path_cost(y), ranked_path_cost(x));
	return order ? order : compare(x->number, y->number);
}

static int by_count(const void *a, const void *b)
{
	const struct ranked_path *x = a, *y = b;
	int order = compare(y->count, x->count);
	return order ? order : compare(x->number, y->number);
}

void ranked_function_by_count(struct ranked_function *f)
{
	if (f->path_count)
		qsort(f->paths, f->path_count, sizeof *f->paths, by_count);
}

static int costliest_first(const void *a, const void *b)
{
	const struct ranked_function *x = a, *y = b;
	int order = compare(x->function->state, y->function->state);
	if (!order)
		order = compare(y->metered.value, x->metered.value);
	if (!order)
		order = compare(y->instructions, x->instructions);
	if (!order)
		order = compare(y->function->entries, x->function->entries);
	if (!order)
		order = strcmp(x->name, y->name);
	return order ? order : compare(x->function->address, y->function->address);
}

char *ranking_name(const char *symbol, uint64_t address)
{
	struct buf name = {0};
	if (symbol && *symbol)
		return name_demangle(symbol);
	buf_printf(&name, "0x%" PRIx64, address);
	return buf_take(&name);
}

static struct err *measure(struct ranked_function *r)
{
	const struct graph *g = &r->function->graph;
	r->lengths = calloc(g->block_count + 1, sizeof *r->lengths);
	if (!r->lengths)
		return err_new("out of memory");
	for (size_t i = 0; i < g->block_count; i++) {
		r->lengths[i] = r->function->lengths ? r->function->lengths[i]
						     : path_block_length(r->file, &g->blocks[i]);
		r->instructions += r->flow.blocks[i] * r->lengths[i];
	}
	return NULL;
}

static struct err *list_paths(struct ranked_function *r, const struct path_metered *metered)
{
	const struct path_function *f = r->function;
	struct numbering_path path = {0};
	struct err *e = NULL;
	r->paths = calloc(r->flow.taken + 1, sizeof *r->paths);
	if (!r->paths)
		return err_new("out of memory");
	for (uint64_t i = 0; i < f->numbering.path_count && !e; i++) {
		if (!f->counts[i] || r->path_count == r->flow.taken)
			continue;
		struct ranked_path *p = &r->paths[r->path_count++];
		*p = (struct ranked_path){.number = i, .count = f->counts[i]};
		if (metered && metered->paths)
			p->sampled = metered->paths[i];
		e = numbering_decode(&f->numbering, i, &path);
		for (size_t k = 0; k < path.count && !e; k++)
			p->length += r->lengths[path.blocks[k]];
	}
	numbering_path_free(&path);
	if (r->path_count)
		qsort(r->paths, r->path_count, sizeof *r->paths, by_cost);
	return e;
}

static void add_metered(struct path_metered *to, const struct path_metered *more)
{
	to->samples += more->samples;
	to->placed += more->placed;
	to->sure += more->sure;
	to->value += more->value;
}

static struct err *rank(struct ranking *all, const struct path_result *result,
			const struct path_function *f)
{
	struct ranked_function *r = &all->functions[all->count++];
	*r = (struct ranked_function){.function = f, .name = ranking_name(f->name, f->address)};
	if (!r->name)
		return err_new("out of memory");
	if (f->state == PATH_REFUSED) {
		all->refused++;
		return NULL;
	}
	const struct path_metered *metered = path_function_metered(f, result->by);
	if (metered)
		add_metered(&r->metered, metered);
	add_metered(&all->metered, &r->metered);
	r->file = path_files_get(&all->files, f);
	struct err *e = flow_check(f, result->forks, &r->flow);
	if (!e)
		e = measure(r);
	if (!e)
		e = list_paths(r, metered);
	all->wrong += r->flow.problem_count > 0;
	all->instructions += r->instructions;
	return e;
}

struct err *ranking_make(const struct path_result *result, struct ranking *out)
{
	*out = (struct ranking){.functions = calloc(result->count + 1, sizeof *out->functions)};
	struct err *e = out->functions ? NULL : err_new("out of memory");
	if (result->by < result->metric_count)
		out->metric = &result->metrics[result->by];
	for (size_t i = 0; i < result->count && !e; i++)
		e = rank(out, result, &result->functions[i]);
	if (!e && out->count)
		qsort(out->functions, out->count, sizeof *out->functions, costliest_first);
	if (e)
		ranking_free(out);
	return e;
}

void ranking_free(struct ranking *r)
{
	for (size_t i = 0; i < r->count; i++) {
		free(r->functions[i].name);
		free(r->functions[i].lengths);
		free(r->functions[i].paths);
		flow_counts_free(&r->functions[i].flow);
	}
	free(r->functions);
	path_files_free(&r->files);
	*r = (struct ranking){0};
}
