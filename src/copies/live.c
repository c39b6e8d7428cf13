/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values are followed backwards, from who reads them to who writes them, until nothing changes.
 *
 * What a call reads, and what a caller reads after a return, is known by the rules for calls. Assembly and some compilers
 * have rules of their own. It shows: a register is written, and by the usual rules nobody would read it, but a call or a
 * caller could. Then calls and returns are taken to read all registers.
 *
 * A caller in the same file may know which registers a function leaves alone, and keep values there, whatever the rules
 * say. So at a return, only such registers are free that the function writes itself, or that no caller needs (needs.h).
 */
#include "copies/live.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "flow/graph.h"
#include "image/image.h"
#include "isa/insn.h"
#include "paths/numbering.h"

struct finder {
	const struct live_input *in;
	struct live *out;
	size_t room;
	uint32_t calls;  /* what a call reads */
	uint32_t leaves; /* what is live where the function is left */
	bool own_rules;
};

static bool is_call(const struct live_insn *i)
{
	return i->kind == INSN_CALL || i->kind == INSN_CALL_INDIRECT;
}

/* ---- instructions ---- */

static void read_sp(const struct isa *isa, const struct insn *insn, struct live_insn *out)
{
	out->sets_sp = insn->writes >> isa->sp & 1;
	for (unsigned i = 0; i < insn->effect_count; i++) {
		const struct effect *e = &insn->effects[i];
		bool stores = e->op == EFFECT_STORE || e->op == EFFECT_COMPARE;
		if (stores || e->dst != isa->sp)
			continue;
		if (e->op == EFFECT_MOVE && e->src == isa->sp && e->imm == (int32_t)e->imm)
			out->sp_moves += (int32_t)e->imm;
		else
			out->sets_sp = true;
	}
}

static bool add_insn(struct finder *f, uint64_t address)
{
	struct live *l = f->out;
	struct insn insn;
	size_t size = 0;
	const uint8_t *code = image_bytes_at(f->in->image, address, &size);
	if (!ARRAY_ROOM(l->insns, l->insn_count, f->room))
		return false;
	struct live_insn *i = &l->insns[l->insn_count++];
	*i = (struct live_insn){.address = address, .length = 1};
	if (!code) {
		l->odd = true;
		return true;
	}
	f->in->isa->decode(code, size, address, &insn);
	i->length = insn.length ? insn.length : 1;
	i->kind = insn.kind;
	i->target = insn.target;
	i->refers = insn.refers;
	if (!is_call(i))
		read_sp(f->in->isa, &insn, i);
	if (insn.kind != INSN_TRAP)
		f->in->cpu->read(code, size, &i->use);
	l->odd |= i->use.odd || insn.kind == INSN_BAD;
	return true;
}

static bool read_insns(struct finder *f)
{
	const struct graph *g = f->in->graph;
	for (size_t b = 0; b < g->block_count; b++) {
		f->out->first[b] = (uint32_t)f->out->insn_count;
		if (!g->blocks[b].reached)
			continue;
		for (uint64_t at = g->blocks[b].start; at < g->blocks[b].end;) {
			if (!add_insn(f, at))
				return false;
			at += f->out->insns[f->out->insn_count - 1].length;
		}
	}
	f->out->first[g->block_count] = (uint32_t)f->out->insn_count;
	return true;
}

/* ---- what is live ---- */

static void set_rules(struct finder *f, bool own)
{
	const struct use_cpu *cpu = f->in->cpu;
	uint32_t writes = f->in->others | cpu->passing;
	for (size_t i = 0; i < f->out->insn_count; i++)
		writes |= f->out->insns[i].use.writes;
	f->own_rules = own;
	f->calls = own ? cpu->all : cpu->arguments;
	f->leaves = own ? cpu->all : cpu->results | cpu->kept | (f->in->needed & ~writes);
}

/* What is read where an instruction jumps to. */
static uint32_t read_behind(const struct finder *f, const struct live_insn *insn)
{
	bool jumps = insn->kind == INSN_JUMP || insn->kind == INSN_BRANCH;
	return jumps && f->in->read_at ? f->in->read_at(f->in->context, insn->target) : 0;
}

/* What is live where a block leaves the function. */
static uint32_t live_outside(const struct finder *f, uint32_t block)
{
	const struct graph_block *b = &f->in->graph->blocks[block];
	const uint32_t end = f->out->first[block + 1];
	const struct live_insn *last = end > f->out->first[block] ? &f->out->insns[end - 1] : NULL;
	switch (b->ends) {
	case GRAPH_UNRESOLVED:
	case GRAPH_BAD:
		return f->in->cpu->all;
	case GRAPH_STOPS: /* an exception may still go to a caller */
		return f->leaves;
	case GRAPH_TAIL_CALLS:
	case GRAPH_BRANCHES:
		return f->leaves | f->calls | (last ? read_behind(f, last) : 0);
	default:
		return f->leaves;
	}
}

static void join(struct finder *f, uint32_t block, uint32_t *live, uint8_t *flags)
{
	const struct graph *g = f->in->graph;
	const struct graph_block *b = &g->blocks[block];
	bool leaves = numbering_leaves(g, block);
	bool unclear = b->ends == GRAPH_UNRESOLVED || f->own_rules;
	*live = leaves ? live_outside(f, block) : 0;
	*flags = leaves && unclear ? USE_CARRY | USE_OTHERS : 0;
	for (uint32_t i = b->first; i < b->first + b->count; i++) {
		uint32_t to = g->edges[i].to;
		bool thrown = g->edges[i].kind == EDGE_LANDING;
		*live |= thrown ? live_at_landing(f->out, f->in->cpu, to)
				: live_at_block(f->out, to);
		*flags |= thrown ? 0 : live_flags_at_block(f->out, to);
	}
}

/* What is live before an instruction, of what is live after it. */
static void step_back(const struct finder *f, const struct live_insn *i, uint32_t *live,
		      uint8_t *flags)
{
	*live = (*live & ~i->use.kills) | i->use.reads;
	*flags = (uint8_t)((*flags & ~i->use.kills_flags) | i->use.reads_flags);
	if (is_call(i)) {
		*live |= f->calls;
		*flags = f->own_rules ? USE_CARRY | USE_OTHERS : 0;
	}
}

static bool update_block(struct finder *f, uint32_t block)
{
	struct live *l = f->out;
	uint32_t live;
	uint8_t flags;
	bool changed = false;
	join(f, block, &live, &flags);
	l->after[block] = live;
	l->flags_after[block] = flags;
	for (uint32_t k = l->first[block + 1]; k-- > l->first[block];) {
		struct live_insn *i = &l->insns[k];
		step_back(f, i, &live, &flags);
		changed |= i->live != live || i->flags != flags;
		i->live = live;
		i->flags = flags;
	}
	return changed;
}

static void follow(struct finder *f)
{
	bool changed = true;
	for (size_t i = 0; i < f->out->insn_count; i++)
		f->out->insns[i].live = f->out->insns[i].flags = 0;
	while (changed) {
		changed = false;
		for (size_t b = f->in->graph->block_count; b-- > 0;)
			changed |= update_block(f, (uint32_t)b);
	}
}

/* Registers that have been in use: the function writes them, and not only to clear them, or calls may. */
static uint32_t used_registers(const struct finder *f)
{
	uint32_t used = f->in->cpu->passing;
	for (size_t i = 0; i < f->out->insn_count; i++)
		used |= f->out->insns[i].use.clears ? 0 : f->out->insns[i].use.writes;
	return used;
}

/* Whether a register that has been in use is cleared right before a return: compilers can be told to do so with all of them. */
static bool tidies_up(const struct live *l, uint32_t insn, uint32_t end, uint32_t used)
{
	if (l->insns[insn].use.kills & ~used)
		return false;
	while (insn < end && l->insns[insn].use.clears)
		insn++;
	return insn < end && l->insns[insn].kind == INSN_RETURN;
}

/* Whether what a register had was a secret of the instruction before, as the guard of a stack. */
static bool clears_secret(const struct live *l, uint32_t first, uint32_t insn)
{
	const struct use *u = &l->insns[insn].use;
	return u->clears && insn > first && u->kills & l->insns[insn - 1].use.reads;
}

/* Marks instructions that do nothing but write registers which nobody reads. Returns whether there are some. */
static bool mark_vain(const struct finder *f, bool *vain)
{
	const struct live *l = f->out;
	const uint32_t used = used_registers(f);
	bool any = false;
	for (uint32_t b = 0; b < f->in->graph->block_count; b++)
		for (uint32_t k = l->first[b]; k < l->first[b + 1]; k++) {
			const struct use *u = &l->insns[k].use;
			vain[k] = u->only_writes && u->kills &&
				  !(u->kills & live_behind(l, b, k)) &&
				  !clears_secret(l, l->first[b], k) &&
				  !tidies_up(l, k, l->first[b + 1], used);
			any |= vain[k];
		}
	return any;
}

static bool is_any_read(const struct finder *f, const bool *vain)
{
	const struct live *l = f->out;
	for (uint32_t b = 0; b < f->in->graph->block_count; b++)
		for (uint32_t k = l->first[b]; k < l->first[b + 1]; k++)
			if (vain[k] && l->insns[k].use.kills & live_behind(l, b, k))
				return true;
	return false;
}

/* What it reads itself, and what it jumps to: else nothing is live where it calls or is left. */
static uint32_t find_reads(struct finder *f)
{
	f->own_rules = false;
	f->calls = f->leaves = 0;
	follow(f);
	return f->in->graph->block_count ? live_at_block(f->out, f->in->graph->entry) : 0;
}

static void follow_by(struct finder *f, bool own)
{
	set_rules(f, own);
	follow(f);
}

/* What is written in vain by the usual rules, and may be read by a call or a caller, is written for somebody whom these
   rules do not know. Compilers also leave some instructions that are of no use to anybody. */
static bool follow_all(struct finder *f)
{
	bool *vain = calloc(f->out->insn_count + 1, sizeof *vain);
	if (!vain)
		return false;
	if (f->in->jumped_to)
		f->out->reads = find_reads(f);
	follow_by(f, false);
	if (mark_vain(f, vain)) {
		follow_by(f, true);
		f->out->own_rules = is_any_read(f, vain);
		if (!f->out->own_rules)
			follow_by(f, false);
	}
	free(vain);
	return true;
}

struct err *live_find(const struct live_input *input, struct live *out)
{
	struct finder f = {.in = input, .out = out};
	size_t blocks = input->graph->block_count;
	*out = (struct live){0};
	out->first = calloc(blocks + 1, sizeof *out->first);
	out->after = calloc(blocks + 1, sizeof *out->after);
	out->flags_after = calloc(blocks + 1, sizeof *out->flags_after);
	if (!out->first || !out->after || !out->flags_after || !read_insns(&f) || !follow_all(&f)) {
		live_free(out);
		return err_new("out of memory");
	}
	return NULL;
}

void live_free(struct live *l)
{
	free(l->insns);
	free(l->first);
	free(l->after);
	free(l->flags_after);
	*l = (struct live){0};
}

uint32_t live_behind(const struct live *l, uint32_t block, uint32_t insn)
{
	return insn + 1 < l->first[block + 1] ? l->insns[insn + 1].live : l->after[block];
}

uint32_t live_at_block(const struct live *l, uint32_t block)
{
	uint32_t first = l->first[block];
	return first < l->first[block + 1] ? l->insns[first].live : l->after[block];
}

uint32_t live_at_landing(const struct live *l, const struct use_cpu *cpu, uint32_t block)
{
	return live_at_block(l, block) & (cpu->kept | cpu->thrown);
}

uint8_t live_flags_at_block(const struct live *l, uint32_t block)
{
	uint32_t first = l->first[block];
	return first < l->first[block + 1] ? l->insns[first].flags : l->flags_after[block];
}
