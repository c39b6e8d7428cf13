/* SPDX-License-Identifier: Apache-2.0 */
#include "view/code.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/modules.h"
#include "analyze/strings.h"
#include "annotate/annotate.h"
#include "annotate/targets.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "image/image.h"
#include "isa/insn.h"
#include "isa/text.h"
#include "profile/profile.h"

#define FUNCTIONS_MAX 400
#define INSNS_MAX 20000 /* of all functions */
#define AROUND 24       /* instructions beside one with samples */

/* Samples on one instruction. */
struct hit {
	uint32_t module, metric;
	uint64_t address, start; /* start: of its function */
	uint64_t count;
};

struct maker {
	const struct profile *p;
	struct modules *modules;
	struct strings *strings;
	struct code *out;
	struct hit *hits;
	size_t hit_count;
};

/* ---- samples ---- */

static int compare_hits(const void *a, const void *b)
{
	const struct hit *x = a, *y = b;
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

static struct err *find_hits(struct maker *k)
{
	const struct profile *p = k->p;
	k->hits = calloc(p->value_count + 1, sizeof *k->hits);
	if (!k->hits)
		return err_new("out of memory");
	for (size_t i = 0; i < p->value_count; i++) {
		const struct profile_value *v = &p->values[i];
		const struct profile_node *n = &p->nodes[v->node];
		bool call = n->kind == PROFILE_CALL;
		struct modules_function f;
		if ((!call && n->kind != PROFILE_EXACT) ||
		    p->modules[n->module].kind != PROFILE_FILE)
			continue;
		modules_function(k->modules, n->module, n->address, !call, &f);
		k->hits[k->hit_count++] = (struct hit){.module = n->module,
						       .metric = v->metric,
						       .address = n->address - call,
						       .start = f.start,
						       .count = v->count};
	}
	qsort(k->hits, k->hit_count, sizeof *k->hits, compare_hits);
	return NULL;
}

static int compare_functions(const void *a, const void *b)
{
	const struct code_function *x = a, *y = b;
	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

static struct err *find_functions(struct maker *k)
{
	struct code *c = k->out;
	c->functions = calloc(k->hit_count + 1, sizeof *c->functions);
	if (!c->functions)
		return err_new("out of memory");
	for (size_t i = 0; i < k->hit_count; i++) {
		const struct hit *h = &k->hits[i];
		struct code_function *f = &c->functions[c->function_count];
		if (!c->function_count || f[-1].module != h->module || f[-1].start != h->start) {
			*f = (struct code_function){.module = h->module, .start = h->start};
			c->function_count++;
		}
		c->functions[c->function_count - 1].self += h->count;
	}
	qsort(c->functions, c->function_count, sizeof *c->functions, compare_functions);
	if (c->function_count > FUNCTIONS_MAX)
		c->function_count = FUNCTIONS_MAX;
	return NULL;
}

/* The first hit of a function. */
static size_t first_hit(const struct maker *k, const struct code_function *f)
{
	struct hit wanted = {.module = f->module, .start = f->start};
	return FIRST_NOT(i, k->hit_count, compare_hits(&k->hits[i], &wanted) < 0);
}

/* ---- one function ---- */

static struct err *grow(struct code *c, size_t more)
{
	if (c->count + more <= c->room)
		return NULL;
	size_t room = c->count + more + c->room;
	struct code_insn *insns = reallocarray(c->insns, room, sizeof *insns);
	if (insns)
		c->insns = insns;
	uint64_t *self = reallocarray(c->self, room * c->metric_count + 1, sizeof *self);
	if (self)
		c->self = self;
	if (!insns || !self)
		return err_new("out of memory");
	c->room = room;
	return NULL;
}

struct function {
	const struct annotation *a;
	struct image *image;
	struct text *text, *intel; /* intel: NULL where the CPU has but one syntax */
	struct targets *targets;
	uint64_t *self; /* [insn * metric_count + metric] */
	bool *shown;
	size_t shown_count;
};

static size_t find_insn(const struct annotation *a, uint64_t address)
{
	size_t after = FIRST_NOT(i, a->insn_count,
				 a->insns[i].address + a->insns[i].length <= address);
	return after < a->insn_count && a->insns[after].address <= address ? after : a->insn_count;
}

/* Samples on its instructions, and which of these are shown. */
static struct err *count_samples(struct maker *k, const struct code_function *wanted,
				 struct function *f)
{
	size_t count = f->a->insn_count, metrics = k->out->metric_count;
	f->self = calloc(count * metrics + 1, sizeof *f->self);
	f->shown = calloc(count + 1, sizeof *f->shown);
	if (!f->self || !f->shown)
		return err_new("out of memory");
	for (size_t i = first_hit(k, wanted); i < k->hit_count; i++) {
		const struct hit *h = &k->hits[i];
		if (h->module != wanted->module || h->start != wanted->start)
			break;
		size_t at = find_insn(f->a, h->address);
		if (at == count)
			continue;
		f->self[at * metrics + h->metric] += h->count;
		size_t from = at > AROUND ? at - AROUND : 0;
		for (size_t n = from; n < count && n <= at + AROUND; n++)
			f->shown[n] = true;
	}
	for (size_t i = 0; i < count; i++)
		f->shown_count += f->shown[i];
	return NULL;
}

static uint32_t insn_text(struct maker *k, struct function *f, struct text *syntax, size_t index)
{
	const struct annotate_insn *i = &f->a->insns[index];
	size_t size = 0;
	const uint8_t *code = image_bytes_at(f->image, i->address, &size);
	struct insn insn;
	struct buf words = {0};
	if (!code || !syntax)
		return 0;
	f->a->isa->decode(code, size, i->address, &insn);
	const char *target = i->target ? targets_name(f->targets, i->target) : NULL;
	uint32_t label = targets_label(f->targets, (uint32_t)index);
	if (label)
		buf_printf(&words, ".L%u: ", label);
	buf_puts(&words, text_insn(syntax, code, size, &insn, target));
	const char *import = targets_import(f->targets, &insn);
	if (import)
		buf_printf(&words, "  # %s", import);
	uint32_t text = strings_add(k->strings, buf_text(&words));
	buf_free(&words);
	return text;
}

static struct err *put_function(struct maker *k, uint32_t number, struct function *f)
{
	struct code *c = k->out;
	size_t metrics = c->metric_count;
	struct err *e = grow(c, f->shown_count);
	for (size_t i = 0; !e && i < f->a->insn_count; i++) {
		const struct annotate_insn *insn = &f->a->insns[i];
		const struct annotate_item *line = &f->a->items[insn->line];
		if (!f->shown[i])
			continue;
		bool known = line->file && line->line;
		c->insns[c->count] = (struct code_insn){
			.function = number,
			.address = insn->address,
			.text = insn_text(k, f, f->text, i),
			.intel = insn_text(k, f, f->intel, i),
			.file = known ? strings_add_fixed(k->strings, line->file) : 0,
			.line = known ? line->line : 0,
			.gap = i && !f->shown[i - 1],
		};
		memcpy(c->self + c->count * metrics, f->self + i * metrics,
		       metrics * sizeof *c->self);
		c->count++;
	}
	return e;
}

/* Whether they can be written out. Without a disassembler all else is still worth a page. */
static bool has_text(struct maker *k, struct function *f)
{
	struct err *e = text_open(f->a->isa, &f->text);
	if (!e)
		e = text_open_intel(f->a->isa, &f->intel);
	if (e && !k->out->no_text)
		k->out->no_text = e;
	else
		err_free(e);
	return f->text != NULL;
}

/* What cannot be read (a stub, a file that is gone) or has no room has none; that is no error. */
static struct err *add_function(struct maker *k, uint32_t number)
{
	const struct code_function *wanted = &k->out->functions[number];
	struct annotation a;
	struct err *e = annotate_read(k->p, k->modules, wanted->module, wanted->start, &a);
	if (e) {
		err_free(e);
		return NULL;
	}
	struct function f = {.a = &a, .image = modules_image(k->modules, wanted->module)};
	e = count_samples(k, wanted, &f);
	if (!e && k->out->count + f.shown_count <= INSNS_MAX && has_text(k, &f)) {
		e = targets_open(&a, &f.targets);
		if (!e)
			e = put_function(k, number, &f);
	}
	targets_close(f.targets);
	text_close(f.text);
	text_close(f.intel);
	free(f.self);
	free(f.shown);
	annotate_free(&a);
	return e;
}

struct err *code_make(const struct profile *profile, struct modules *modules,
		      struct strings *strings, struct code *out)
{
	struct maker k = {.p = profile, .modules = modules, .strings = strings, .out = out};
	*out = (struct code){.metric_count = profile->metric_count};
	struct err *e = find_hits(&k);
	if (!e)
		e = find_functions(&k);
	for (uint32_t i = 0; !e && out->count < INSNS_MAX && i < out->function_count; i++)
		e = add_function(&k, i);
	free(k.hits);
	if (e)
		code_free(out);
	return e;
}

void code_free(struct code *c)
{
	free(c->functions);
	free(c->insns);
	free(c->self);
	err_free(c->no_text);
	*c = (struct code){0};
}
