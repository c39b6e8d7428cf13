/* SPDX-License-Identifier: Apache-2.0 */
#include "export/counted.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/modules.h"
#include "annotate/annotate.h"
#include "base/err.h"
#include "base/path.h"
#include "explain/program.h"
#include "paths/executed.h"
#include "paths/ranking.h"
#include "paths/result.h"
#include "profile/profile.h"

/* ---- the file ---- */

static size_t count_counted(const struct ranking *r)
{
	return r->count - r->refused;
}

uint32_t counted_module(const struct ranking *r, const struct profile *p, const char *name)
{
	double *instructions = calloc(p->module_count + 1, sizeof *instructions), most = 0;
	uint32_t module = 0;
	for (size_t i = 0; i < count_counted(r) && instructions; i++) {
		const struct ranked_function *f = &r->functions[i];
		const char *path = f->function->module;
		if (!name || !strcmp(path, name) || !strcmp(path_file(path), name))
			instructions[paths_find_module(p, f->function)] += (double)f->instructions;
	}
	for (uint32_t i = 1; i < p->module_count && instructions; i++)
		if (instructions[i] > most) {
			most = instructions[i];
			module = i;
		}
	free(instructions);
	return module;
}

/* ---- a function ---- */

static struct err *copy_graph(const struct graph *from, struct graph *to)
{
	*to = (struct graph){.blocks = calloc(from->block_count + 1, sizeof *to->blocks),
			     .edges = calloc(from->edge_count + 1, sizeof *to->edges),
			     .entry = from->entry};
	if (!to->blocks || !to->edges)
		return err_new("out of memory");
	memcpy(to->blocks, from->blocks, from->block_count * sizeof *to->blocks);
	to->block_count = from->block_count;
	if (from->edge_count)
		memcpy(to->edges, from->edges, from->edge_count * sizeof *to->edges);
	to->edge_count = from->edge_count;
	return NULL;
}

static struct frequency exactly(uint64_t count)
{
	double number = (double)count;
	return (struct frequency){
		.executions = number, .low = number, .high = number, .confidence = FREQUENCY_HIGH};
}

static struct err *take_counts(const struct ranked_function *f, struct function *out)
{
	struct frequency_result *q = &out->frequency;
	const struct graph *g = &out->graph;
	q->blocks = calloc(g->block_count + 1, sizeof *q->blocks);
	q->edges = calloc(g->edge_count + 1, sizeof *q->edges);
	if (!q->blocks || !q->edges)
		return err_new("out of memory");
	q->block_count = g->block_count;
	q->edge_count = g->edge_count;
	for (size_t i = 0; i < g->block_count; i++)
		q->blocks[i] = exactly(f->flow.blocks[i]);
	for (size_t i = 0; i < g->edge_count; i++)
		q->edges[i] = exactly(f->flow.edges[i]);
	q->entries = exactly(f->function->entries);
	return NULL;
}

static struct err *take_insns(struct function *out)
{
	const struct annotation *a = out->annotation;
	out->insns = calloc(a->insn_count + 1, sizeof *out->insns);
	if (!out->insns)
		return err_new("out of memory");
	out->insn_count = a->insn_count;
	for (size_t i = 0; i < a->insn_count; i++) {
		struct explain_insn *n = &out->insns[i];
		n->address = a->insns[i].address;
		n->length = a->insns[i].length;
		n->kind = a->insns[i].kind;
		n->block = graph_find(&out->graph, n->address);
		if (n->block != GRAPH_NONE)
			n->frequency = out->frequency.blocks[n->block].executions;
	}
	return NULL;
}

static struct err *fill(const struct ranked_function *f, const struct annotation *annotation,
			struct function *out)
{
	*out = (struct function){.annotation = annotation, .samples = (double)f->instructions};
	struct err *e = copy_graph(&f->function->graph, &out->graph);
	if (!e)
		e = take_counts(f, out);
	return e ? e : take_insns(out);
}

/* Adds a function. If it is not there in the file, it is left out. */
static struct err *add(const struct ranked_function *f, struct modules *modules, uint32_t module,
		       struct program *out, struct counted_program *about)
{
	struct program_function *to = &out->functions[out->count];
	*to = (struct program_function){.module = module,
					.start = f->function->address,
					.name = f->name,
					.annotation = calloc(1, sizeof *to->annotation),
					.function = calloc(1, sizeof *to->function)};
	out->count++; /* what it has is freed with the program in any case */
	if (!to->annotation || !to->function)
		return err_new("out of memory");
	struct err *e = annotate_read(out->profile, modules, module, to->start, to->annotation);
	if (!e && to->annotation->start == to->start) {
		out->explained += (double)f->instructions;
		return fill(f, to->annotation, to->function);
	}
	if (!e)
		annotate_free(to->annotation);
	err_free(e);
	free(to->annotation);
	free(to->function);
	out->count--;
	about->unread++;
	return NULL;
}

/* ---- all of it ---- */

struct err *counted_program_make(const struct ranking *r, const struct profile *p,
				 struct modules *modules, uint32_t module, struct program *out,
				 struct counted_program *about)
{
	struct err *e = NULL;
	*about = (struct counted_program){0};
	*out = (struct program){.profile = p,
				.samples = (double)r->instructions,
				.functions = calloc(r->count + 1, sizeof *out->functions)};
	if (!out->functions)
		return err_new("out of memory");
	for (size_t i = 0; i < r->count && !e; i++) {
		const struct ranked_function *f = &r->functions[i];
		if (paths_find_module(p, f->function) != module)
			continue;
		if (f->function->state == PATH_REFUSED)
			about->refused++;
		else if (f->function->entries || f->flow.taken)
			e = add(f, modules, module, out, about);
	}
	if (!e && !out->count)
		e = err_new("%s: the functions that were counted cannot be read in it",
			    p->modules[module].path);
	return e;
}
