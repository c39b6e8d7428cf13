/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/internal.h"

#include <string.h>

#include "isa/insn.h"

static bool is_call(const struct explain_insn *i)
{
	return i->kind == INSN_CALL || i->kind == INSN_CALL_INDIRECT || i->kind == INSN_SYSCALL;
}

void path_to(const struct function *f, uint32_t block, size_t most, struct path *out, size_t *own)
{
	const struct function_private *p = f->own;
	size_t at = most; /* filled from the end */
	bool broken = false;
	*own = 0;
	for (uint32_t b = block; b != GRAPH_NONE && !broken; b = p->before[b]) {
		uint32_t count = p->count[b];
		if (count > at)
			break;
		for (uint32_t i = count; i-- > 0 && !broken;) {
			broken = b != block && is_call(&f->insns[p->first[b] + i]);
			if (!broken)
				out->insns[--at] = p->first[b] + i;
		}
		if (b == block && !*own)
			*own = most - at;
		if (!count)
			break;
	}
	out->count = most - at;
	memmove(out->insns, out->insns + at, out->count * sizeof *out->insns);
}

static bool is_inside(const struct function *f, uint32_t block, uint32_t loop)
{
	uint32_t at = f->loops.innermost[block];
	while (at != LOOP_NONE && at != loop)
		at = f->loops.loops[at].parent;
	return at == loop;
}

/* Where a block mostly goes, in the loop. */
static uint32_t next_of(const struct function *f, uint32_t block, uint32_t loop)
{
	const struct graph_block *b = &f->graph.blocks[block];
	uint32_t best = GRAPH_NONE;
	double most = -1;
	for (uint32_t i = b->first; i < b->first + b->count; i++) {
		uint32_t to = f->graph.edges[i].to;
		if (is_inside(f, to, loop) && f->frequency.edges[i].executions > most) {
			most = f->frequency.edges[i].executions;
			best = to;
		}
	}
	return best;
}

bool path_around(const struct function *f, uint32_t loop, size_t most, struct path *out)
{
	const struct function_private *p = f->own;
	uint32_t header = f->loops.loops[loop].header, at = header;
	size_t blocks = 0;
	out->count = 0;
	do {
		if (f->loops.innermost[at] != loop || out->count + p->count[at] > most)
			return false;
		for (uint32_t i = 0; i < p->count[at]; i++)
			out->insns[out->count++] = p->first[at] + i;
		at = next_of(f, at, loop);
	} while (at != header && at != GRAPH_NONE && ++blocks < most);
	return at == header && out->count;
}
