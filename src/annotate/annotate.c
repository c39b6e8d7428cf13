/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dynamic side: samples on items. A node of the profile that lies in the
 * function belongs to an instruction, and with it to a chain of items: its
 * line, the context of that, the line that calls it, …, the function; and the loops
 * around it. All of them get the samples of the node and of all below it. In
 * recursion a node may have an ancestor with the same item, which has got them
 * already: the tree is walked depth first, with a count for each item of how often
 * it is on the path.
 */
#include "annotate/annotate.h"

#include <stdlib.h>
#include <string.h>

#include "annotate/build.h"
#include "analyze/modules.h"
#include "base/array.h"
#include "base/err.h"
#include "base/path.h"
#include "image/image.h"
#include "image/symbols.h"
#include "isa/insn.h"
#include "profile/profile.h"
#include "recipes/procedures.h"
#include "structure/structure.h"

#define NONE UINT32_MAX

struct counter {
	struct annotation *a;
	const struct profile *p;
	const bool *thread;
	uint32_t *insn;         /* of each node; NONE: not in the function */
	uint32_t *child, *next; /* of each node */
	uint64_t *below;        /* samples in and below each node, of one metric */
	uint32_t *open;         /* of each item and instruction: how often it is on the path */
};

/* ---- nodes ---- */

static uint32_t insn_of(const struct annotation *a, const struct profile_node *n)
{
	if (n->module != a->module || (n->kind != PROFILE_CALL && n->kind != PROFILE_EXACT))
		return NONE;
	uint64_t address = n->address - (n->kind == PROFILE_CALL);
	if (!a->insn_count || address < a->insns[0].address ||
	    address > a->insns[a->insn_count - 1].address + UINT8_MAX)
		return NONE;
	return annotate_insn_at(a, address);
}

static bool prepare(struct counter *c)
{
	size_t count = c->p->node_count;
	c->insn = calloc(count + 1, sizeof *c->insn);
	c->child = calloc(count + 1, sizeof *c->child);
	c->next = calloc(count + 1, sizeof *c->next);
	c->below = calloc(count + 1, sizeof *c->below);
	c->open = calloc(c->a->item_count + c->a->insn_count + 1, sizeof *c->open);
	if (!c->insn || !c->child || !c->next || !c->below || !c->open)
		return false;
	for (size_t i = 0; i < count; i++) {
		c->insn[i] = insn_of(c->a, &c->p->nodes[i]);
		c->child[i] = NONE;
	}
	for (size_t i = count; i-- > 1;) {
		uint32_t parent = c->p->nodes[i].parent;
		c->next[i] = c->child[parent];
		c->child[parent] = (uint32_t)i;
	}
	return true;
}

/* ---- counting ---- */

static void add_self(struct counter *c, uint32_t insn, uint32_t metric, uint64_t count)
{
	struct annotation *a = c->a;
	const struct annotate_insn *i = &a->insns[insn];
	a->self[(a->item_count + insn) * a->metric_count + metric] += count;
	a->self[i->line * a->metric_count + metric] += count;
	for (uint32_t at = i->line; at != ANNOTATE_NONE; at = a->items[at].parent)
		if (a->items[at].kind == ANNOTATE_CONTEXT)
			a->self[at * a->metric_count + metric] += count;
	for (uint32_t at = i->loop; at != ANNOTATE_NONE; at = a->items[at].parent)
		a->self[at * a->metric_count + metric] += count;
}

static void read_values(struct counter *c, uint32_t metric)
{
	const struct profile *p = c->p;
	memset(c->below, 0, (p->node_count + 1) * sizeof *c->below);
	for (size_t i = 0; i < p->value_count; i++) {
		const struct profile_value *v = &p->values[i];
		if (v->metric != metric)
			continue;
		c->a->whole[metric] += v->count;
		if (c->thread && !c->thread[v->thread])
			continue;
		c->below[v->node] += v->count;
		if (c->insn[v->node] != NONE)
			add_self(c, c->insn[v->node], metric, v->count);
	}
	for (size_t i = p->node_count; i-- > 1;)
		c->below[p->nodes[i].parent] += c->below[i];
}

static void enter(struct counter *c, uint32_t key, uint32_t metric, uint64_t count)
{
	if (!c->open[key]++)
		c->a->total[key * c->a->metric_count + metric] += count;
}

static void enter_node(struct counter *c, uint32_t node, uint32_t metric)
{
	struct annotation *a = c->a;
	const struct annotate_insn *i = &a->insns[c->insn[node]];
	uint64_t count = c->below[node];
	enter(c, (uint32_t)a->item_count + c->insn[node], metric, count);
	for (uint32_t at = i->line; at != ANNOTATE_NONE; at = a->items[at].parent)
		enter(c, at, metric, count);
	for (uint32_t at = i->loop; at != ANNOTATE_NONE; at = a->items[at].parent)
		enter(c, at, metric, count);
}

static void leave_node(struct counter *c, uint32_t node)
{
	struct annotation *a = c->a;
	const struct annotate_insn *i = &a->insns[c->insn[node]];
	c->open[a->item_count + c->insn[node]]--;
	for (uint32_t at = i->line; at != ANNOTATE_NONE; at = a->items[at].parent)
		c->open[at]--;
	for (uint32_t at = i->loop; at != ANNOTATE_NONE; at = a->items[at].parent)
		c->open[at]--;
}

/* Down to the first node below, or on to the next one beside or further up. */
static void add_totals(struct counter *c, uint32_t metric)
{
	for (uint32_t at = 0;;) {
		if (c->insn[at] != NONE)
			enter_node(c, at, metric);
		uint32_t next = c->below[at] ? c->child[at] : NONE;
		while (next == NONE) {
			if (c->insn[at] != NONE)
				leave_node(c, at);
			if (!at)
				return;
			next = c->next[at];
			at = c->p->nodes[at].parent;
		}
		at = next;
	}
}

static struct err *count_samples(struct annotation *a, const bool *thread)
{
	struct counter c = {.a = a, .p = a->profile, .thread = thread};
	size_t keys = a->item_count + a->insn_count;
	a->self = calloc(keys * a->metric_count + 1, sizeof *a->self);
	a->total = calloc(keys * a->metric_count + 1, sizeof *a->total);
	a->whole = calloc(a->metric_count + 1, sizeof *a->whole);
	bool good = a->self && a->total && a->whole && prepare(&c);
	for (uint32_t m = 0; good && m < a->metric_count; m++) {
		read_values(&c, m);
		add_totals(&c, m);
	}
	free(c.insn);
	free(c.child);
	free(c.next);
	free(c.below);
	free(c.open);
	return good ? NULL : err_new("out of memory");
}

/* ---- samples of many functions ---- */

struct sample {
	uint32_t module, metric;
	uint64_t address, count;
};

struct annotate_samples {
	struct sample *all; /* ascending by module and address */
	size_t count;
	uint64_t *whole; /* of each metric, of all threads */
};

static int by_place(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

struct err *annotate_samples_gather(const struct profile *p, const bool *thread,
				    struct annotate_samples **out)
{
	struct annotate_samples *s = *out = calloc(1, sizeof *s);
	if (s) {
		s->all = calloc(p->value_count + 1, sizeof *s->all);
		s->whole = calloc(p->metric_count + 1, sizeof *s->whole);
	}
	if (!s || !s->all || !s->whole) {
		annotate_samples_free(s);
		*out = NULL;
		return err_new("out of memory");
	}
	for (size_t i = 0; i < p->value_count; i++) {
		const struct profile_value *v = &p->values[i];
		const struct profile_node *n = &p->nodes[v->node];
		s->whole[v->metric] += v->count;
		if ((thread && !thread[v->thread]) ||
		    (n->kind != PROFILE_CALL && n->kind != PROFILE_EXACT))
			continue;
		s->all[s->count++] = (struct sample){
			n->module, v->metric, n->address - (n->kind == PROFILE_CALL), v->count};
	}
	if (s->count)
		qsort(s->all, s->count, sizeof *s->all, by_place);
	return NULL;
}

void annotate_samples_free(struct annotate_samples *s)
{
	if (!s)
		return;
	free(s->all);
	free(s->whole);
	free(s);
}

/* Of `self` alone. */
static struct err *count_self(struct annotation *a, const struct annotate_samples *s)
{
	struct counter c = {.a = a, .p = a->profile};
	a->self = calloc((a->item_count + a->insn_count) * a->metric_count + 1, sizeof *a->self);
	a->whole = calloc(a->metric_count + 1, sizeof *a->whole);
	if (!a->self || !a->whole)
		return err_new("out of memory");
	memcpy(a->whole, s->whole, a->metric_count * sizeof *a->whole);
	if (!a->insn_count)
		return NULL;
	struct sample first = {.module = a->module, .address = a->insns[0].address};
	uint64_t last = a->insns[a->insn_count - 1].address + UINT8_MAX;
	size_t at = FIRST_NOT(i, s->count, by_place(&s->all[i], &first) < 0);
	for (; at < s->count && s->all[at].module == a->module && s->all[at].address <= last;
	     at++) {
		uint32_t insn = annotate_insn_at(a, s->all[at].address);
		if (insn != NONE)
			add_self(&c, insn, s->all[at].metric, s->all[at].count);
	}
	return NULL;
}

/* ---- the function ---- */

static struct err *refuse(const struct profile *p, struct modules *modules, uint32_t module,
			  uint64_t address)
{
	struct modules_function f;
	modules_function(modules, module, address, true, &f);
	const char *name = f.name ? f.name : "this code";
	switch (p->modules[module].kind) {
	case PROFILE_JIT:
		return err_new("%s was made at run time: its instructions are not in the recording",
			       name);
	case PROFILE_KERNEL:
		return err_new("%s is code of the kernel, which cannot be read", name);
	case PROFILE_SCRIPT:
		return err_new(
			"%s is run by an interpreter and has no instructions: culprit report --by=line shows its lines",
			name);
	case PROFILE_OBJECT:
		return err_new("'%s' is no function, but what functions do", name);
	case PROFILE_NONE:
		return err_new("the code belongs to no file");
	default:
		return err_new("%s: the file is gone or has changed since the recording: put the "
			       "recorded one back, or record again",
			       p->modules[module].path);
	}
}

/* Without structure the symbol tells how far the function goes. */
static struct err *make_procedure(struct annotation *a, uint64_t address,
				  const struct structure_procedure **out)
{
	const struct symbols *symbols = modules_symbols(a->modules, a->module);
	const struct symbol *s = symbols ? symbols_find(symbols, address) : NULL;
	if ((!s || !s->size) && procedures_is_stub(modules_image(a->modules, a->module), address))
		return err_new(
			"this is a stub that jumps to an imported function: there is nothing "
			"more to show");
	if (!s || !s->size)
		return err_new("%s: nothing tells where the function at 0x%llx begins and ends",
			       path_file(a->profile->modules[a->module].path),
			       (unsigned long long)address);
	struct structure_procedure *made = calloc(1, sizeof *made);
	if (made) {
		made->scopes = calloc(1, sizeof *made->scopes);
		made->ranges = calloc(1, sizeof *made->ranges);
	}
	if (!made || !made->scopes || !made->ranges) {
		structure_procedure_free(made);
		return err_new("out of memory");
	}
	a->own->made = made;
	made->scope_count = made->range_count = 1;
	made->scopes[0].name = s->name;
	made->ranges[0] = (struct structure_range){s->address, s->address + s->size, 0};
	made->start = s->address;
	*out = made;
	return NULL;
}

static struct err *read_function(struct annotation *a, uint64_t address)
{
	struct image *image = modules_image(a->modules, a->module);
	if (!image)
		return refuse(a->profile, a->modules, a->module, address);
	a->isa = isa_for_machine(image_machine(image));
	struct structure *structure = modules_structure(a->modules, a->module);
	const struct structure_procedure *procedure = structure ? structure_find(structure, address)
								: NULL;
	struct err *e = procedure ? NULL : make_procedure(a, address, &procedure);
	if (e)
		return e;
	a->start = procedure->start;
	a->symbol = procedure->scopes[0].name;
	return annotate_read_code(a, procedure);
}

struct err *annotate_read(const struct profile *profile, struct modules *modules, uint32_t module,
			  uint64_t address, struct annotation *out)
{
	*out = (struct annotation){
		.profile = profile,
		.modules = modules,
		.module = module,
		.metric_count = profile->metric_count,
		.own = calloc(1, sizeof *out->own),
	};
	struct err *e = out->own ? read_function(out, address) : err_new("out of memory");
	if (e)
		annotate_free(out);
	return e;
}

struct err *annotate_make(const struct profile *profile, struct modules *modules, uint32_t module,
			  uint64_t address, const bool *thread, struct annotation *out)
{
	struct err *e = annotate_read(profile, modules, module, address, out);
	if (!e)
		e = count_samples(out, thread);
	if (e)
		annotate_free(out);
	return e;
}

struct err *annotate_make_self(const struct profile *profile, struct modules *modules,
			       uint32_t module, uint64_t address,
			       const struct annotate_samples *samples, struct annotation *out)
{
	struct err *e = annotate_read(profile, modules, module, address, out);
	if (!e)
		e = count_self(out, samples);
	if (e)
		annotate_free(out);
	return e;
}

void annotate_free(struct annotation *a)
{
	for (size_t i = 0; a->own && i < a->own->name_count; i++)
		free(a->own->names[i]);
	if (a->own) {
		free(a->own->names);
		structure_procedure_free(a->own->made);
	}
	free(a->own);
	free(a->items);
	free(a->insns);
	free(a->self);
	free(a->total);
	free(a->whole);
	*a = (struct annotation){0};
}
