/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs and loops of machine code. The first byte says the CPU (bit 0), whether landing pads are
 * known (bit 1), whether calls return (bit 2) and how many parts there are besides the whole (the next
 * two bits), each a begin and a size of two bytes; then how many bytes of constant data stand at the
 * end (two bytes). The rest is code and data.
 */
#include <assert.h>
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "elf_parts.h"
#include "flow/graph.h"
#include "flow/loops.h"
#include "flow/references.h"
#include "image/image.h"
#include "isa/insn.h"

#define CODE_MAX (16u << 10)
#define PARTS_MAX 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool never_returns(const void *context, uint64_t address)
{
	(void)context;
	return address & 4;
}

static void check_graph(const struct graph *g)
{
	size_t edges = 0;
	for (uint32_t i = 0; i < g->block_count; i++) {
		const struct graph_block *b = &g->blocks[i];
		assert(b->start < b->end && b->last >= b->start && b->last < b->end);
		assert(!i || g->blocks[i - 1].end <= b->start);
		assert(b->first == edges && b->ends <= GRAPH_BAD);
		edges += b->count;
		for (uint32_t k = 0; k < b->count; k++) {
			const struct graph_edge *e = &g->edges[b->first + k];
			assert(e->from == i && e->to < g->block_count && e->kind <= EDGE_LANDING);
			assert(!k || e[-1].to < e->to);
			assert(!b->reached || g->blocks[e->to].reached);
		}
		assert(graph_find(g, b->start) == i && graph_find(g, b->end - 1) == i);
	}
	assert(edges == g->edge_count);
	assert(!g->block_count || g->entry == GRAPH_NONE || g->blocks[g->entry].reached);
}

static void check_loops(const struct graph *g)
{
	struct loops l;
	uint32_t *idom;
	struct err *e = loops_find(g, &l);
	assert(!e);
	for (uint32_t i = 0; i < l.count; i++) {
		const struct loop *x = &l.loops[i];
		assert(x->parent == LOOP_NONE
			       ? x->depth == 1
			       : x->parent < i && x->depth == l.loops[x->parent].depth + 1);
		assert(x->header < g->block_count && l.innermost[x->header] == i);
		assert(x->back_from < g->block_count && x->block_count);
	}
	for (uint32_t i = 0; i < g->block_count; i++)
		assert(l.innermost[i] == LOOP_NONE || l.innermost[i] < l.count);
	e = dominators_find(g, &idom);
	assert(!e);
	for (uint32_t i = 0; i < g->block_count; i++)
		assert(idom[i] == GRAPH_NONE || idom[i] < g->block_count);
	free(idom);
	loops_free(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t count, head, tail;
	struct graph_part parts[PARTS_MAX] = {{0, 0}};
	struct graph_landing landing;
	struct graph_input in = {.parts = parts, .landings = &landing};
	struct graph g;
	struct err *e;
	if (!size || size > CODE_MAX)
		return 0;
	count = data[0] >> 3 & 3;
	head = 3 + 4 * count;
	if (head >= size)
		return 0;
	tail = (data[head - 2] | (size_t)data[head - 1] << 8) % (size - head);
	parts[0] = (struct graph_part){ELF_CODE, ELF_CODE + size - head - tail};
	for (size_t i = 0; i < count; i++) {
		const uint8_t *at = data + 1 + 4 * i;
		uint64_t start = ELF_CODE + (at[0] | (uint64_t)at[1] << 8);
		parts[i + 1] = (struct graph_part){start, start + (at[2] | (uint64_t)at[3] << 8)};
	}
	landing = (struct graph_landing){ELF_CODE, ELF_CODE + size / 2,
					 ELF_CODE + size / 3 / 4 * 4};
	in.isa = data[0] & 1 ? &isa_aarch64 : &isa_x86_64;
	in.image = elf_code(in.isa->elf_machine, data + head, size - head, NULL, 0);
	in.part_count = count + 1;
	in.landing_count = data[0] >> 1 & 1;
	in.never_returns = data[0] & 4 ? never_returns : NULL;
	e = references_open(in.image, in.isa, &in.references);
	assert(!e);
	e = graph_build(&in, &g);
	assert(!e);
	check_graph(&g);
	check_loops(&g);
	(void)graph_returns(&g);
	graph_free(&g);
	references_close(in.references);
	image_close(in.image);
	return 0;
}
