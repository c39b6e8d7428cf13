/* SPDX-License-Identifier: Apache-2.0 */
/* Followed forwards from the entry, until nothing changes. What is not the same by all ways is not known. */
#include "copies/depth.h"

#include <stdlib.h>

#include "copies/live.h"
#include "flow/graph.h"
#include "image/image.h"
#include "isa/insn.h"

#define FAR (1 << 28)

struct follower {
	struct image *image;
	const struct isa *isa;
	const struct graph *graph;
	const struct live *live;
	struct depth *before; /* by instruction */
	struct depth *at;     /* by block: where it begins */
	bool *seen;
};

static bool same(const struct depth *a, const struct depth *b)
{
	return a->sp_known == b->sp_known && a->fp_known == b->fp_known && a->sp == b->sp &&
	       a->fp == b->fp;
}

/* What is known by both ways. */
static struct depth meet(const struct depth *a, const struct depth *b)
{
	struct depth out = {.sp_known = a->sp_known && b->sp_known && a->sp == b->sp,
			    .fp_known = a->fp_known && b->fp_known && a->fp == b->fp};
	out.sp = out.sp_known ? a->sp : 0;
	out.fp = out.fp_known ? a->fp : 0;
	return out;
}

static void set(const struct isa *isa, struct depth *d, uint8_t reg, bool known, int64_t value)
{
	known = known && value > -FAR && value < FAR;
	if (reg == isa->sp) {
		d->sp_known = known;
		d->sp = known ? (int32_t)value : 0;
	} else if (reg == isa->fp) {
		d->fp_known = known;
		d->fp = known ? (int32_t)value : 0;
	}
}

static void apply(const struct isa *isa, const struct effect *e, struct depth *d)
{
	if (e->op == EFFECT_STORE || e->op == EFFECT_COMPARE || e->op == EFFECT_SIGN)
		return;
	if (e->op == EFFECT_MOVE && e->src == isa->sp)
		set(isa, d, e->dst, d->sp_known, d->sp - e->imm);
	else if (e->op == EFFECT_MOVE && e->src == isa->fp)
		set(isa, d, e->dst, d->fp_known, d->fp - e->imm);
	else
		set(isa, d, e->dst, false, 0);
}

/* A call gives SP and the frame pointer back as they were. */
static void step(const struct follower *f, const struct live_insn *i, struct depth *d)
{
	struct insn insn;
	size_t size = 0;
	const uint8_t *code = image_bytes_at(f->image, i->address, &size);
	if (i->kind == INSN_CALL || i->kind == INSN_CALL_INDIRECT)
		return;
	if (!code) {
		*d = (struct depth){0};
		return;
	}
	f->isa->decode(code, size, i->address, &insn);
	for (unsigned k = 0; k < insn.effect_count; k++)
		apply(f->isa, &insn.effects[k], d);
	if (insn.writes >> f->isa->sp & 1)
		set(f->isa, d, f->isa->sp, false, 0);
	if (insn.writes >> f->isa->fp & 1)
		set(f->isa, d, f->isa->fp, false, 0);
}

static bool pass_on(struct follower *f, uint32_t to, const struct depth *d)
{
	struct depth met = f->seen[to] ? meet(&f->at[to], d) : *d;
	bool changed = !f->seen[to] || !same(&met, &f->at[to]);
	f->seen[to] = true;
	f->at[to] = met;
	return changed;
}

static bool follow_block(struct follower *f, uint32_t block)
{
	const struct graph_block *b = &f->graph->blocks[block];
	struct depth d = f->at[block];
	bool changed = false;
	for (uint32_t k = f->live->first[block]; k < f->live->first[block + 1]; k++) {
		f->before[k] = d;
		step(f, &f->live->insns[k], &d);
	}
	for (uint32_t i = b->first; i < b->first + b->count; i++)
		changed |= pass_on(f, f->graph->edges[i].to, &d);
	return changed;
}

static void follow(struct follower *f)
{
	const struct graph *g = f->graph;
	bool changed = g->block_count > 0;
	if (!changed)
		return;
	f->seen[g->entry] = true;
	f->at[g->entry] = (struct depth){.sp_known = true};
	while (changed) {
		changed = false;
		for (uint32_t b = 0; b < g->block_count; b++)
			if (f->seen[b] && g->blocks[b].reached)
				changed |= follow_block(f, b);
	}
}

struct depth *depth_find(struct image *image, const struct isa *isa, const struct graph *graph,
			 const struct live *live)
{
	struct follower f = {.image = image, .isa = isa, .graph = graph, .live = live};
	f.before = calloc(live->insn_count + 1, sizeof *f.before);
	f.at = calloc(graph->block_count + 1, sizeof *f.at);
	f.seen = calloc(graph->block_count + 1, sizeof *f.seen);
	if (f.before && f.at && f.seen) {
		follow(&f);
	} else {
		free(f.before);
		f.before = NULL;
	}
	free(f.at);
	free(f.seen);
	return f.before;
}
