/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loops_dump FILE: the control-flow graphs of a module, for bench/loops to compare. A line for
 * each thing of what has unwind information; addresses in hexadecimal:
 *
 *     procedure START PARTS BLOCKS NAME
 *     switch JUMP TABLE ENTRIES ENTRY_SIZE EXACT TARGET...
 *     unresolved JUMP
 *     loop HEADER DEPTH IRREDUCIBLE LAST_JUMP_BACK PARENT_HEADER
 *     block START END REACHED         with --blocks
 *     seconds SECONDS
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "flow/graph.h"
#include "flow/loops.h"
#include "flow/references.h"
#include "flow/returns.h"
#include "flow/survey.h"
#include "flow/trace.h"
#include "image/image.h"
#include "image/symbols.h"
#include "isa/insn.h"
#include "recipes/cfi.h"
#include "structure/extents.h"

struct module {
	struct image *image;
	const struct isa *isa;
	struct symbols *symbols;
	struct survey survey;
	struct returns returns;
	struct references *references;
	struct graph_landing *landings;
	size_t landing_count;
	struct extents extents;
	struct cfi_range *ranges; /* ascending */
	size_t range_count;
	bool blocks;
	unsigned depth; /* of questions whether a procedure returns */
	uint64_t known[65536];
};

static const uint8_t *code_at(const void *context, uint64_t address, size_t *size)
{
	return image_bytes_at(((const struct module *)context)->image, address, size);
}

static bool build(const struct module *m, uint32_t procedure, struct graph *out);

/* A quick look at its code, else its graph tells whether a procedure returns. */
static bool never_returns(const void *context, uint64_t address)
{
	struct module *m = (struct module *)context;
	uint64_t *known = &m->known[address * 0x9e3779b97f4a7c15u >> 48];
	struct graph g;
	if (!procedure_returns(&m->returns, address))
		return true;
	if (*known >> 1 == address)
		return *known & 1;
	uint32_t procedure = extents_at(&m->extents, address);
	if (procedure == EXTENT_NONE || extents_start(&m->extents, procedure) != address ||
	    m->depth == 3)
		return false;
	m->depth++;
	bool stops = build(m, procedure, &g) && !graph_returns(&g);
	graph_free(&g);
	m->depth--;
	*known = address << 1 | stops;
	return stops;
}

static bool never_returns_slot(const void *context, uint64_t slot)
{
	const struct module *m = context;
	struct insn call = {.kind = INSN_CALL_INDIRECT, .target = slot};
	uint64_t to = call_target(&m->returns, &call);
	return to && !procedure_returns(&m->returns, to);
}

static struct err *open_module(const char *path, struct module *m)
{
	struct cfi_landing *found = NULL;
	struct err *e = image_open(path, &m->image);
	if (e)
		return e;
	m->isa = isa_for_machine(image_machine(m->image));
	e = symbols_read(m->image, NULL, &m->symbols);
	if (!e)
		e = survey_take(m->image, m->isa, m->symbols, &m->survey);
	if (!e)
		e = references_open(m->image, m->isa, &m->references);
	if (!e)
		e = cfi_landings(m->image, &found, &m->landing_count);
	if (!e)
		e = cfi_ranges(m->image, NULL, &m->ranges, &m->range_count);
	if (!e)
		e = extents_find(m->image, NULL, m->symbols, NULL, 0, &m->extents);
	if (e)
		return e;
	m->landings = calloc(m->landing_count + 1, sizeof *m->landings);
	for (size_t i = 0; i < m->landing_count; i++)
		m->landings[i] = (struct graph_landing){found[i].start, found[i].end,
							found[i].landing_pad};
	free(found);
	m->returns = (struct returns){
		.isa = m->isa,
		.bytes = code_at,
		.context = m,
		.noreturn = m->survey.noreturn,
		.noreturn_count = m->survey.noreturn_count,
		.slots = m->survey.slots,
		.slot_count = m->survey.slot_count,
	};
	return returns_init(&m->returns) ? NULL : err_new("out of memory");
}

static void print_graph(const struct module *m, const struct graph *g, const struct loops *l)
{
	for (size_t i = 0; i < g->table_count; i++) {
		const struct graph_table *t = &g->tables[i];
		const struct graph_block *b = &g->blocks[graph_find(g, t->jump)];
		printf("switch %lx %lx %u %u %d", t->jump, t->table, t->entries, t->entry_size,
		       t->exact);
		for (uint32_t k = 0; k < b->count; k++)
			printf(" %lx", g->blocks[g->edges[b->first + k].to].start);
		printf("\n");
	}
	for (size_t i = 0; i < g->block_count; i++) {
		const struct graph_block *b = &g->blocks[i];
		if (b->ends == GRAPH_UNRESOLVED)
			printf("unresolved %lx\n", b->last);
		if (m->blocks)
			printf("block %lx %lx %d %d\n", b->start, b->end, b->reached, b->ends);
	}
	for (size_t i = 0; i < l->count; i++) {
		const struct loop *x = &l->loops[i];
		printf("loop %lx %u %d %lx %lx\n", g->blocks[x->header].start, x->depth,
		       x->irreducible, x->back_at,
		       x->parent == LOOP_NONE ? 0 : g->blocks[l->loops[x->parent].header].start);
	}
}

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool build(const struct module *m, uint32_t procedure, struct graph *out)
{
	const struct extents_procedure *p = &m->extents.procedures[procedure];
	struct graph_part *parts = calloc(p->count, sizeof *parts);
	struct graph_input in = {
		.image = m->image,
		.isa = m->isa,
		.parts = parts,
		.part_count = p->count,
		.landings = m->landings,
		.landing_count = m->landing_count,
		.never_returns = never_returns,
		.never_returns_slot = never_returns_slot,
		.context = m,
		.references = m->references,
	};
	for (uint32_t i = 0; i < p->count; i++) {
		const struct extent *part =
			&m->extents.parts[m->extents.by_procedure[p->first + i]];
		parts[i] = (struct graph_part){part->start, part->end};
	}
	struct err *e = graph_build(&in, out);
	free(parts);
	if (e)
		fprintf(stderr, "%s\n", err_text(e));
	err_free(e);
	return !e;
}

/* Did a compiler describe it? What else there is, was written by hand or by another program. */
static bool is_compiled(const struct module *m, uint32_t procedure)
{
	uint64_t start = extents_start(&m->extents, procedure);
	size_t low = 0, high = m->range_count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (m->ranges[middle].end <= start)
			low = middle + 1;
		else
			high = middle;
	}
	return !m->range_count || (low < m->range_count && m->ranges[low].start <= start);
}

static struct err *dump(const struct module *m, uint32_t procedure)
{
	const struct extents_procedure *p = &m->extents.procedures[procedure];
	struct graph g;
	struct loops l;
	if (!build(m, procedure, &g))
		return err_new("cannot build the graph");
	struct err *e = loops_find(&g, &l);
	if (!e) {
		printf("procedure %lx %u %zu %s\n", extents_start(&m->extents, procedure), p->count,
		       g.block_count, p->name ? p->name : "?");
		print_graph(m, &g, &l);
		loops_free(&l);
	}
	graph_free(&g);
	return e;
}

int main(int argc, char **argv)
{
	static struct module m;
	struct err *e;
	if (argc < 2)
		return 2;
	m.blocks = argc > 2 && !strcmp(argv[2], "--blocks");
	e = open_module(argv[1], &m);
	double from = seconds();
	for (uint32_t i = 0; !e && i < m.extents.procedure_count; i++)
		e = is_compiled(&m, i) ? dump(&m, i) : NULL;
	if (e)
		fprintf(stderr, "%s\n", err_text(e));
	printf("seconds %.3f\n", seconds() - from);
	return e != NULL;
}
