/* SPDX-License-Identifier: Apache-2.0 */
#include "structure/control.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "flow/graph.h"
#include "flow/loops.h"
#include "flow/references.h"
#include "flow/trace.h"
#include "image/image.h"
#include "isa/insn.h"
#include "recipes/cfi.h"
#include "structure/extents.h"

/* ---- the module ---- */

static const uint8_t *code_bytes(const void *context, uint64_t address, size_t *size)
{
	const struct control_module *m = context;
	const struct image_segment *segments;
	size_t count = image_segments(m->image, &segments);
	for (size_t i = 0; i < count; i++)
		if (segments[i].executable && address >= segments[i].address &&
		    address - segments[i].address < segments[i].file_size)
			return image_bytes_at(m->image, address, size);
	return NULL;
}

static struct err *take_landings(struct control_module *m)
{
	struct cfi_landing *found = NULL;
	struct err *e = cfi_landings(m->image, &found, &m->landing_count);
	if (e)
		return e;
	m->landings = calloc(m->landing_count + 1, sizeof *m->landings);
	for (size_t i = 0; m->landings && i < m->landing_count; i++)
		m->landings[i] = (struct graph_landing){found[i].start, found[i].end,
							found[i].landing_pad};
	free(found);
	return m->landings ? NULL : err_new("out of memory");
}

struct err *control_open(struct image *image, const struct symbols *symbols,
			 struct control_module *out)
{
	struct err *e;
	memset(out, 0, sizeof *out);
	out->image = image;
	out->isa = isa_for_machine(image_machine(image));
	if (!out->isa)
		return NULL;
	e = survey_take(image, out->isa, symbols, &out->survey);
	if (!e)
		e = references_open(image, out->isa, &out->references);
	if (!e)
		e = take_landings(out);
	if (!e) {
		out->returns = (struct returns){
			.isa = out->isa,
			.bytes = code_bytes,
			.context = out,
			.noreturn = out->survey.noreturn,
			.noreturn_count = out->survey.noreturn_count,
			.slots = out->survey.slots,
			.slot_count = out->survey.slot_count,
		};
		if (!returns_init(&out->returns))
			e = err_new("out of memory");
	}
	if (e)
		control_close(out);
	return e;
}

void control_close(struct control_module *m)
{
	returns_free(&m->returns);
	survey_free(&m->survey);
	references_close(m->references);
	free(m->landings);
	memset(m, 0, sizeof *m);
}

static bool never_returns(const void *context, uint64_t address)
{
	const struct control_module *m = context;
	return procedure_is_noreturn(&m->returns, address) ||
	       !procedure_returns(&m->returns, address);
}

static bool never_returns_slot(const void *context, uint64_t slot)
{
	const struct control_module *m = context;
	struct insn call = {.kind = INSN_CALL_INDIRECT, .target = slot};
	uint64_t target = call_target(&m->returns, &call);
	return target == TRACE_NO_RETURN || (target && never_returns(m, target));
}

static bool returns_again(const void *context, const struct insn *call)
{
	const struct control_module *m = context;
	return m->returns_again && m->returns_again(m->again_context, call);
}

/* ---- a procedure ---- */

struct err *control_graph(const struct control_module *m, const struct extents *x,
			  uint32_t procedure, uint32_t max_blocks, struct graph *out)
{
	const struct extents_procedure *p = &x->procedures[procedure];
	struct graph_part *parts = calloc(p->count + 1, sizeof *parts);
	struct graph_input input = {
		.image = m->image,
		.isa = m->isa,
		.parts = parts,
		.part_count = p->count,
		.landings = m->landings,
		.landing_count = m->landing_count,
		.references = m->references,
		.never_returns = never_returns,
		.never_returns_slot = never_returns_slot,
		.returns_again = returns_again,
		.context = m,
		.max_blocks = max_blocks,
	};
	struct err *e;
	if (!parts)
		return err_new("out of memory");
	for (uint32_t i = 0; i < p->count; i++) {
		const struct extent *part = &x->parts[x->by_procedure[p->first + i]];
		parts[i] = (struct graph_part){part->start, part->end};
	}
	e = graph_build(&input, out);
	free(parts);
	return e;
}

/* For each loop the interval of numbers that it and those inside of it have. */
struct nest {
	uint32_t *first, *beyond;
};

static bool number_nest(const struct loops *loops, struct nest *out)
{
	size_t n = loops->count;
	uint32_t at = 0;
	uint32_t *given = calloc(n + 1, sizeof *given);
	out->first = calloc(n + 1, sizeof *out->first);
	out->beyond = calloc(n + 1, sizeof *out->beyond);
	if (!given || !out->first || !out->beyond) {
		free(given);
		return false;
	}
	for (size_t i = n; i-- > 0;) { /* beyond: how many, for now */
		out->beyond[i]++;
		if (loops->loops[i].parent != LOOP_NONE)
			out->beyond[loops->loops[i].parent] += out->beyond[i];
	}
	for (size_t i = 0; i < n; i++) {
		uint32_t parent = loops->loops[i].parent;
		uint32_t *from = parent == LOOP_NONE ? &at : &given[parent];
		out->first[i] = *from;
		*from += out->beyond[i];
		given[i] = out->first[i] + 1;
		out->beyond[i] += out->first[i];
	}
	free(given);
	return true;
}

static bool stays_in(const struct nest *nest, uint32_t inner, uint32_t outer)
{
	return inner != LOOP_NONE && nest->first[inner] >= nest->first[outer] &&
	       nest->first[inner] < nest->beyond[outer];
}

/* Does an edge of this block go back to the header, or out of the loop? */
static bool decides(const struct graph *g, const struct loops *loops, const struct nest *nest,
		    uint32_t block)
{
	const struct graph_block *b = &g->blocks[block];
	uint32_t loop = loops->innermost[block];
	if (loop == LOOP_NONE || b->ends == GRAPH_FALLS || b->ends == GRAPH_CALLS)
		return false;
	for (uint32_t i = 0; i < b->count; i++) {
		const struct graph_edge *edge = &g->edges[b->first + i];
		if (edge->kind != EDGE_LANDING &&
		    (edge->to == loops->loops[loop].header ||
		     !stays_in(nest, loops->innermost[edge->to], loop)))
			return true;
	}
	return false;
}

static bool falls(const struct graph *g, uint32_t block)
{
	const struct graph_block *b = &g->blocks[block];
	for (uint32_t i = 0; i < b->count; i++)
		if (g->blocks[g->edges[b->first + i].to].start == b->end &&
		    g->edges[b->first + i].kind == EDGE_FALL)
			return true;
	return false;
}

static bool copy_blocks(const struct graph *g, const struct loops *loops, struct control *out)
{
	struct nest nest = {0};
	bool good = number_nest(loops, &nest);
	out->blocks = calloc(g->block_count + 1, sizeof *out->blocks);
	out->loops = calloc(loops->count + 1, sizeof *out->loops);
	good = good && out->blocks && out->loops;
	for (uint32_t i = 0; good && i < g->block_count; i++)
		out->blocks[out->block_count++] = (struct control_block){
			.start = g->blocks[i].start,
			.end = g->blocks[i].end,
			.last = g->blocks[i].last,
			.loop = loops->innermost[i] == LOOP_NONE ? WEAVE_NONE : loops->innermost[i],
			.control = decides(g, loops, &nest, i),
			.falls = falls(g, i),
		};
	for (size_t i = 0; good && i < loops->count; i++) {
		const struct loop *l = &loops->loops[i];
		out->loops[out->loop_count++] = (struct weave_loop){
			.parent = l->parent == LOOP_NONE ? WEAVE_NONE : l->parent,
			.header = g->blocks[l->header].start,
			.back = l->back_at,
			.irreducible = l->irreducible,
		};
	}
	free(nest.first);
	free(nest.beyond);
	return good;
}

struct err *control_read(const struct control_module *m, const struct extents *x,
			 uint32_t procedure, uint32_t max_blocks, struct control *out)
{
	struct graph graph;
	struct loops loops;
	struct err *e;
	memset(out, 0, sizeof *out);
	if (!m->isa)
		return NULL;
	e = control_graph(m, x, procedure, max_blocks, &graph);
	if (e)
		return e;
	out->unresolved = graph.unresolved;
	out->truncated = graph.truncated;
	if (!graph.truncated && graph.block_count) {
		e = loops_find(&graph, &loops);
		if (!e) {
			if (!copy_blocks(&graph, &loops, out))
				e = err_new("out of memory");
			loops_free(&loops);
		}
	}
	graph_free(&graph);
	if (e)
		control_free(out);
	return e;
}

void control_free(struct control *code)
{
	free(code->blocks);
	free(code->loops);
	memset(code, 0, sizeof *code);
}
