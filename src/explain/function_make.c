/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/function.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/modules.h"
#include "annotate/annotate.h"
#include "base/array.h"
#include "base/err.h"
#include "explain/internal.h"
#include "explain/machine.h"
#include "explain/seen.h"
#include "explain/spots.h"
#include "image/image.h"
#include "isa/insn.h"
#include "isa/text.h"
#include "structure/structure.h"

static const char *const names[CAUSES] = {
	"d-cache",    "d-tlb",    "mispredict",  "i-cache",    "i-tlb", "store-buffer",
	"forwarding", "division", "ports",       "dependency", "lock",  "sharing",
	"page-fault", "stolen",   "unexplained", "execution",
};
static const char *const titles[CAUSES] = {
	"data cache misses",
	"data TLB misses",
	"mispredicted branches",
	"instruction cache misses",
	"instruction TLB misses",
	"full store buffer",
	"failed store forwarding",
	"division",
	"busy ports",
	"dependency chains",
	"locks and fences",
	"lines other threads write",
	"page faults",
	"stolen time",
	"unexplained",
	"execution",
};

const char *cause_name(enum cause cause)
{
	return names[cause];
}

const char *cause_title(enum cause cause)
{
	return titles[cause];
}

unsigned causes_order(const struct range_sum *sum, double least, uint8_t out[CAUSES])
{
	unsigned count = 0;
	for (uint8_t i = 0; i < CAUSES; i++) {
		double middle = sum->of[i].low + sum->of[i].high;
		if (middle / 2 < least || middle <= 0)
			continue;
		unsigned at = count++;
		for (; at && sum->of[i].likely > sum->of[out[at - 1]].likely; at--)
			out[at] = out[at - 1];
		out[at] = i;
	}
	return count;
}

/* ---- the code ---- */

static void read_insn(struct function *f, struct image *image, const struct spots *spots,
		      size_t index)
{
	const struct annotate_insn *a = &f->annotation->insns[index];
	struct explain_insn *i = &f->insns[index];
	size_t size = 0;
	const uint8_t *code = image_bytes_at(image, a->address, &size);
	i->address = a->address;
	i->length = a->length;
	i->kind = a->kind;
	i->block = graph_find(&f->graph, a->address);
	i->why = CAUSE_EXECUTION;
	i->samples = (double)annotate_insn_self(f->annotation, index, f->metric);
	const struct spot *place = spots_at(spots, f->annotation->module, a->address);
	if (place) {
		i->faults = (double)place->faults;
		i->shared = place->shared;
	}
	if (!code)
		return;
	const char *text = function_text(f, index);
	operands_read(f->annotation->isa, code, size < a->length ? size : a->length, text,
		      &i->operands);
	model_find(f->machine->model, text, &f->own->costs[index]);
}

const char *function_text(const struct function *f, size_t index)
{
	const struct annotate_insn *a = &f->annotation->insns[index];
	size_t size = 0;
	struct insn insn;
	const uint8_t *code = image_bytes_at(
		modules_image(f->annotation->modules, f->annotation->module), a->address, &size);
	if (!code)
		return "";
	f->annotation->isa->decode(code, size, a->address, &insn);
	return text_insn(f->own->text, code, size, &insn, NULL);
}

bool function_constant(const struct function *f, size_t index, int64_t *out)
{
	const struct annotate_insn *a = &f->annotation->insns[index];
	size_t size = 0;
	struct insn insn;
	const uint8_t *code = image_bytes_at(
		modules_image(f->annotation->modules, f->annotation->module), a->address, &size);
	if (!code)
		return false;
	f->annotation->isa->decode(code, size, a->address, &insn);
	if (insn.effect_count != 1 || insn.effects[0].op != EFFECT_CONST)
		return false;
	*out = insn.effects[0].imm;
	return true;
}

static void place_insns(struct function *f)
{
	struct function_private *p = f->own;
	for (size_t i = f->insn_count; i-- > 0;) {
		uint32_t block = f->insns[i].block;
		if (block == GRAPH_NONE)
			continue;
		p->first[block] = (uint32_t)i;
		p->count[block]++;
	}
}

/* Edges by where they go. */
static void sort_edges(struct function *f)
{
	struct function_private *p = f->own;
	const struct graph *g = &f->graph;
	for (size_t i = 0; i < g->edge_count; i++)
		p->come_first[g->edges[i].to + 2]++;
	for (size_t i = 1; i < g->block_count + 1; i++)
		p->come_first[i + 1] += p->come_first[i];
	for (size_t i = 0; i < g->edge_count; i++)
		p->come[p->come_first[g->edges[i].to + 1]++] = (uint32_t)i;
}

static struct err *read_code(struct function *f, const struct spots *spots)
{
	const struct annotation *a = f->annotation;
	struct structure *structure = modules_structure(a->modules, a->module);
	struct image *image = modules_image(a->modules, a->module);
	if (!structure)
		return err_new("nothing tells where the functions of this file begin and end");
	struct err *e = structure_graph(structure, a->start, &f->graph);
	if (!e)
		e = loops_find(&f->graph, &f->loops);
	if (!e)
		e = text_open(a->isa, &f->own->text);
	if (e)
		return e;
	struct function_private *p = f->own;
	size_t blocks = f->graph.block_count;
	f->insn_count = a->insn_count;
	f->insns = calloc(f->insn_count + 1, sizeof *f->insns);
	f->loop_list = calloc(f->loops.count + 1, sizeof *f->loop_list);
	p->costs = calloc(f->insn_count + 1, sizeof *p->costs);
	p->before = calloc(blocks + 1, sizeof *p->before);
	p->slowness = calloc(f->loops.count + 1, sizeof *p->slowness);
	p->first = calloc(blocks + 1, sizeof *p->first);
	p->count = calloc(blocks + 1, sizeof *p->count);
	p->come = calloc(f->graph.edge_count + 1, sizeof *p->come);
	p->come_first = calloc(blocks + 3, sizeof *p->come_first);
	if (!f->insns || !f->loop_list || !p->costs || !p->slowness || !p->before || !p->first ||
	    !p->count || !p->come || !p->come_first)
		return err_new("out of memory");
	for (size_t i = 0; i < f->insn_count; i++)
		read_insn(f, image, spots, i);
	place_insns(f);
	sort_edges(f);
	for (size_t i = 0; i < f->insn_count; i++) {
		f->samples += f->insns[i].samples;
		f->faults += f->insns[i].faults;
	}
	f->cycles = (f->samples + f->faults) * f->cycles_per_sample;
	f->incomplete = f->graph.unresolved > 0 || f->graph.truncated;
	return NULL;
}

/* ---- frequencies ---- */

static void find_before(struct function *f)
{
	struct function_private *p = f->own;
	double *most = calloc(f->graph.block_count + 1, sizeof *most);
	for (size_t i = 0; i < f->graph.block_count; i++)
		p->before[i] = GRAPH_NONE;
	for (size_t i = 0; most && i < f->graph.edge_count; i++) {
		const struct graph_edge *e = &f->graph.edges[i];
		double runs = f->frequency.edges[i].executions;
		if (e->kind != EDGE_LANDING && runs > most[e->to]) {
			most[e->to] = runs;
			p->before[e->to] = e->from;
		}
	}
	free(most);
}

static void take_frequencies(struct function *f)
{
	for (size_t i = 0; i < f->insn_count; i++)
		if (f->insns[i].block != GRAPH_NONE)
			f->insns[i].frequency = f->frequency.blocks[f->insns[i].block].executions;
	find_before(f);
}

static struct err *list_sampled(struct function *f)
{
	struct frequency_insn *insns = calloc(f->insn_count + 1, sizeof *insns);
	struct image *image = modules_image(f->annotation->modules, f->annotation->module);
	f->own->sampled = insns;
	if (!insns)
		return err_new("out of memory");
	for (size_t i = 0; i < f->insn_count; i++) {
		size_t size = 0;
		const uint8_t *code = image_bytes_at(image, f->insns[i].address, &size);
		insns[i].address = f->insns[i].address;
		insns[i].samples = f->insns[i].samples;
		if (code)
			insns[i].kind = (uint8_t)frequency_kind_of(f->annotation->isa, code, size);
	}
	return NULL;
}

static struct frequency_input input_of(const struct function *f)
{
	return (struct frequency_input){
		.graph = &f->graph,
		.insns = f->own->sampled,
		.insn_count = f->insn_count,
		.observations = f->own->seen,
		.observation_count = f->own->seen_count,
		.cycles_per_sample = f->cycles_per_sample,
		.isa = f->annotation->isa,
		.width = f->machine->numbers.width,
	};
}

static struct err *estimate(struct function *f, const struct frequency_costs *costs)
{
	struct frequency_input input = input_of(f);
	input.costs = costs;
	struct err *e = frequency_estimate(&input, &f->frequency);
	if (!e) {
		take_frequencies(f);
		samples_place(f);
		e = function_find_fixed(f);
	}
	if (!e)
		e = frequency_refine(f, &input);
	if (!e)
		take_frequencies(f);
	return e;
}

/* ---- all of it ---- */

struct err *function_read(const struct annotation *annotation, const struct machine *machine,
			  const struct function_options *o, struct function *out)
{
	*out = (struct function){
		.annotation = annotation,
		.machine = machine,
		.metric = o->metric,
		.cycles_per_sample = o->cycles_per_sample,
		.own = calloc(1, sizeof *out->own),
	};
	struct err *e = out->own ? read_code(out, o->spots) : err_new("out of memory");
	if (!e)
		e = list_sampled(out);
	if (e)
		function_free(out);
	if (!e) {
		out->own->hot_lines = o->hot_lines;
		out->own->hot_pages = o->hot_pages;
		out->own->unseen_lines = o->unseen_lines;
	}
	return e;
}

struct err *function_learn(const struct function *const *functions, size_t count,
			   struct frequency_costs **out)
{
	struct frequency_input *inputs = calloc(count + 1, sizeof *inputs);
	*out = NULL;
	if (!inputs)
		return err_new("out of memory");
	for (size_t i = 0; i < count; i++)
		inputs[i] = input_of(functions[i]);
	struct err *e = frequency_learn(inputs, count, out);
	free(inputs);
	return e;
}

struct err *function_see(struct function *f, const struct seen *seen)
{
	free(f->own->seen);
	return seen_list(seen, f->annotation->module, &f->graph, &f->own->seen,
			 &f->own->seen_count);
}

struct err *function_guess(const struct function *f, const struct frequency_costs *costs,
			   struct frequency_result *out)
{
	struct frequency_input input = input_of(f);
	input.costs = costs;
	return frequency_estimate(&input, out);
}

void function_weigh(const struct function *f, const struct frequency_result *result,
		    struct seen *seen)
{
	seen_weigh(seen, f->annotation->module, &f->graph, f->own->sampled, f->insn_count, result);
}

struct err *function_explain(struct function *f, const struct frequency_costs *costs)
{
	struct err *e = estimate(f, costs);
	if (!e)
		e = function_find_fixed(f);
	if (e)
		return e;
	samples_place(f);
	stalls_find(f);
	loops_measure(f);
	culprits_find(f);
	loops_explain(f);
	return NULL;
}

void function_free(struct function *f)
{
	if (f->own) {
		text_close(f->own->text);
		free(f->own->costs);
		free(f->own->before);
		free(f->own->slowness);
		free(f->own->first);
		free(f->own->count);
		free(f->own->come);
		free(f->own->come_first);
		free(f->own->sampled);
		free(f->own->seen);
	}
	free(f->own);
	frequency_free(&f->frequency);
	loops_free(&f->loops);
	graph_free(&f->graph);
	free(f->insns);
	free(f->loop_list);
	*f = (struct function){0};
}
