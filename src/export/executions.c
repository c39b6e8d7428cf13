/* SPDX-License-Identifier: Apache-2.0 */
#include "export/executions.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/modules.h"
#include "annotate/annotate.h"
#include "base/array.h"
#include "base/err.h"
#include "base/path.h"
#include "explain/program.h"
#include "export/executions_of.h"
#include "image/image.h"
#include "image/symbols.h"
#include "isa/insn.h"
#include "profile/profile.h"

#define COUNT_MAX 9e18

bool export_is_of_executions(enum export_format format)
{
	return format >= EXPORT_LLVM_SAMPLE;
}

uint64_t executions_round(double executions)
{
	return executions >= COUNT_MAX ? (uint64_t)COUNT_MAX : (uint64_t)(executions + 0.5);
}

/* ---- the file ---- */

static bool is_named(const struct profile_module *m, const char *name)
{
	return !strcmp(m->path, name) || !strcmp(path_file(m->path), name);
}

struct err *executions_module(const struct profile *p, const char *name, uint32_t metric,
			      uint32_t *module)
{
	double *samples = calloc(p->module_count + 1, sizeof *samples), most = 0;
	if (!samples)
		return err_new("out of memory");
	for (size_t i = 0; i < p->value_count; i++) {
		const struct profile_node *n = &p->nodes[p->values[i].node];
		if (p->values[i].metric == metric && n->kind == PROFILE_EXACT)
			samples[n->module] += (double)p->values[i].count;
	}
	for (uint32_t i = 1; i < p->module_count; i++)
		if (p->modules[i].kind == PROFILE_FILE && samples[i] > most &&
		    (!name || is_named(&p->modules[i], name))) {
			most = samples[i];
			*module = i;
		}
	free(samples);
	if (most > 0)
		return NULL;
	return name ? err_new("the profile has no samples in a file '%s'", name)
		    : err_new("the profile has no samples in the code of a file");
}

/* ---- where indirect calls went ---- */

static int by_place(const void *a, const void *b)
{
	const struct call_target *x = a, *y = b;
	if (x->after != y->after)
		return x->after < y->after ? -1 : 1;
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

/* Samples of each node with all below it. */
static double *count_totals(const struct profile *p, uint32_t metric)
{
	double *totals = calloc(p->node_count + 1, sizeof *totals);
	for (size_t i = 0; totals && i < p->value_count; i++)
		if (p->values[i].metric == metric)
			totals[p->values[i].node] += (double)p->values[i].count;
	for (size_t i = p->node_count; totals && i-- > 1;)
		totals[p->nodes[i].parent] += totals[i];
	return totals;
}

static void join_targets(struct executions *x)
{
	size_t kept = 0;
	if (!x->target_count)
		return;
	qsort(x->targets, x->target_count, sizeof *x->targets, by_place);
	for (size_t i = 0; i < x->target_count; i++) {
		if (kept && !by_place(&x->targets[kept - 1], &x->targets[i]))
			x->targets[kept - 1].samples += x->targets[i].samples;
		else
			x->targets[kept++] = x->targets[i];
	}
	x->target_count = kept;
}

static struct err *find_targets(struct executions *x)
{
	const struct profile *p = x->program->profile;
	double *totals = count_totals(p, x->program->metric);
	size_t room = 0;
	struct err *e = totals ? NULL : err_new("out of memory");
	for (size_t i = 1; !e && i < p->node_count; i++) {
		const struct profile_node *n = &p->nodes[i], *caller = &p->nodes[n->parent];
		if (caller->kind != PROFILE_CALL || caller->module != x->module || !n->module ||
		    totals[i] <= 0)
			continue;
		struct modules_function called;
		modules_function(x->modules, n->module, n->address, n->kind == PROFILE_EXACT,
				 &called);
		if (ARRAY_ROOM(x->targets, x->target_count, room))
			x->targets[x->target_count++] = (struct call_target){
				caller->address, n->module, called.start, totals[i]};
		else
			e = err_new("out of memory");
	}
	free(totals);
	join_targets(x);
	return e;
}

/* ---- calls ---- */

struct calls {
	const struct executions *x;
	const struct function *f;
	void (*each)(void *context, size_t insn, uint64_t to, const char *symbol, double count);
	void *context;
};

static void tell_direct(const struct calls *c, size_t insn, uint64_t to)
{
	const struct symbol *s = symbols_find(c->x->symbols, to);
	if (s && s->address == to)
		c->each(c->context, insn, to, s->name, c->f->insns[insn].frequency);
}

/* An indirect call went to several functions, in the ratio of the samples below them: that these take equally long
   is all that can be assumed. */
static void tell_indirect(const struct calls *c, size_t insn)
{
	const struct explain_insn *i = &c->f->insns[insn];
	uint64_t after = i->address + i->length;
	const struct call_target *all = c->x->targets;
	size_t first = FIRST_NOT(k, c->x->target_count, all[k].after < after), last = first;
	double sum = 0;
	for (; last < c->x->target_count && all[last].after == after; last++)
		sum += all[last].samples;
	for (size_t k = first; k < last; k++) {
		const struct symbols *symbols = modules_symbols(c->x->modules, all[k].module);
		const struct symbol *s = symbols ? symbols_find(symbols, all[k].start) : NULL;
		if (s && s->address == all[k].start)
			c->each(c->context, insn, all[k].module == c->x->module ? all[k].start : 0,
				s->name, i->frequency * all[k].samples / sum);
	}
}

static bool is_tail_call(const struct function *f, const struct explain_insn *i)
{
	const struct graph_block *b = &f->graph.blocks[i->block];
	return b->ends == GRAPH_TAIL_CALLS && b->last == i->address;
}

void executions_of_calls(const struct executions *x, const struct function *f,
			 void (*each)(void *context, size_t insn, uint64_t to, const char *symbol,
				      double count),
			 void *context)
{
	struct calls c = {x, f, each, context};
	for (size_t i = 0; i < f->insn_count; i++) {
		const struct explain_insn *insn = &f->insns[i];
		if (insn->block == GRAPH_NONE)
			continue;
		if (insn->kind == INSN_CALL || (insn->kind == INSN_JUMP && is_tail_call(f, insn)))
			tell_direct(&c, i, f->annotation->insns[i].target);
		else if (insn->kind == INSN_CALL_INDIRECT)
			tell_indirect(&c, i);
	}
}

/* ---- names ---- */

size_t executions_name_size(const char *symbol)
{
	static const char *const ends[] = {".llvm.", ".part.", ".isra.", ".constprop.",
					   ".cold",  ".lto_",  "@"};
	size_t size = strlen(symbol);
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		const char *end = strstr(symbol + !!*symbol, ends[i]);
		if (end && (size_t)(end - symbol) < size)
			size = (size_t)(end - symbol);
	}
	return size;
}

/* ---- all of it ---- */

struct err *executions_write(const struct program *program, struct modules *modules,
			     uint32_t module, enum export_format format, FILE *out)
{
	static struct err *(*const formats[])(struct executions *) = {
		[EXPORT_LLVM_SAMPLE] = llvm_sample_write,
		[EXPORT_PROFGEN] = ranges_write,
		[EXPORT_BOLT] = bolt_write,
		[EXPORT_AUTOFDO] = autofdo_write,
	};
	struct executions x = {
		.program = program,
		.modules = modules,
		.module = module,
		.format = format,
		.image = modules_image(modules, module),
		.symbols = modules_symbols(modules, module),
		.out = out,
	};
	if (!x.image || !x.symbols)
		return err_new("%s: its code cannot be read",
			       program->profile->modules[module].path);
	struct err *e = find_targets(&x);
	if (!e)
		e = formats[format](&x);
	free(x.targets);
	return e;
}
