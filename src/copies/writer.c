/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of a copy are written as they stand in the function. Behind each come the ways to others that have something to
 * count. Switches get tables of their own, with the way to each case (switches.c). Before a block where exceptions come in stand the ways from
 * the calls that may throw.
 *
 * Nothing is put on the stack but right before a call: below SP may be the function's red zone.
 */
#include "copies/writer.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "copies/depth.h"
#include "image/image.h"
#include "isa/insn.h"

static bool is_call(const struct live_insn *i)
{
	return i->kind == INSN_CALL || i->kind == INSN_CALL_INDIRECT;
}

/* ---- for CPUs ---- */

void writer_add_call(struct writer *w, uint64_t target)
{
	struct copy *c = w->out;
	if (!ARRAY_ROOM(c->calls, c->call_count, w->call_room)) {
		w->failed = true;
		return;
	}
	c->calls[c->call_count++] = (struct copy_call){(uint32_t)w->code.size, target, w->direct};
}

void writer_add_fixup(struct writer *w, uint32_t block)
{
	if (!ARRAY_ROOM(w->fixups, w->fixup_count, w->fixup_room)) {
		w->failed = true;
		return;
	}
	w->fixups[w->fixup_count++] = (struct fixup){(uint32_t)w->code.size, block};
}

/* ---- where the sum is ---- */

/* Says it for all that is written from now on. */
static void add_place(struct writer *w, uint32_t block, uint8_t reg, int64_t value)
{
	struct copy *c = w->out;
	const struct copy_place place = {(uint32_t)w->code.size, block, value, reg};
	struct copy_place *last = c->place_count ? &c->places[c->place_count - 1] : NULL;
	if (last && last->block == block && last->reg == reg && last->value == value)
		return;
	if (last && last->at == place.at) {
		*last = place;
		return;
	}
	if (!ARRAY_ROOM(c->places, c->place_count, w->place_room)) {
		w->failed = true;
		return;
	}
	c->places[c->place_count++] = place;
}

static uint8_t place_register(uint8_t reg)
{
	return reg == SUMS_NONE ? COPY_KNOWN : reg;
}

void writer_lose_sum(struct writer *w)
{
	const struct copy *c = w->out;
	if (!c->place_count || c->places[c->place_count - 1].reg >= COPY_SUM_AWAY)
		return;
	uint32_t block = c->places[c->place_count - 1].block;
	add_place(w, block == COPY_WHOLE ? w->block : block, COPY_SUM_AWAY, 0);
}

/* In a block, where `reg` has the sum if it varies. */
static void add_block_place(struct writer *w, uint32_t block, uint8_t reg)
{
	const struct sums_block *b = &w->in->sums->blocks[block];
	if (b->varies)
		add_place(w, block, reg, 0);
	else
		add_place(w, block, COPY_KNOWN, b->value);
}

/* ---- more for CPUs ---- */

static const struct graph_part *part_of(const struct writer *w, uint64_t address)
{
	for (size_t i = 0; i < w->in->part_count; i++)
		if (address >= w->in->parts[i].start && address < w->in->parts[i].end)
			return &w->in->parts[i];
	return NULL;
}

bool writer_is_own_code(const struct writer *w, uint64_t address)
{
	return part_of(w, address) && address != w->in->parts[0].start &&
	       graph_find(w->in->graph, address) != GRAPH_NONE;
}

/* ---- where paths end and go on ---- */

static int64_t counter(const struct writer *w, int64_t number)
{
	return (w->in->depths ? 0 : (int64_t)w->in->counters) + 8 * (1 + number);
}

/* Counts the path that ends behind a block, with what is still to be added. */
static void put_end(struct writer *w, uint32_t block, uint32_t edge, int64_t add, bool leaves)
{
	const struct write_input *in = w->in;
	const struct sums_block *b = switches_behind(w, block);
	struct write_counter c = {.at = counter(w, b->varies ? add : b->value + add),
				  .sum = b->varies ? b->out : SUMS_NONE,
				  .in_record = in->depths,
				  .leaves = leaves};
	if (in->depths)
		c.spare = sums_free_registers(in->graph, in->live, &w->use, b, block, edge);
	add_place(w, COPY_WHOLE, place_register(c.sum), b->varies ? add : b->value + add);
	if (!sums_counting_registers(in->graph, in->live, &w->use, b, block, edge, &c.free))
		w->refused = "its code cannot be written";
	w->cpu->put_count(w, &c);
}

static void put_leave(struct writer *w, uint32_t block)
{
	if (numbering_leaves(w->in->graph, block))
		put_end(w, block, SUMS_LEAVES, w->in->sums->numbering.leave[block],
			w->in->graph->blocks[block].ends != GRAPH_STOPS);
}

static bool has_code(const struct writer *w, uint32_t edge)
{
	const struct numbering_edge *e = &w->in->sums->numbering.edges[edge];
	const struct graph_edge *g = &w->in->graph->edges[edge];
	const struct sums_block *from = switches_behind(w, g->from),
				*to = &w->in->sums->blocks[g->to];
	if (g->kind == EDGE_LANDING)
		return false;
	if (e->cut)
		return true;
	return to->varies && (!from->varies || e->add || from->out != to->in);
}

/* On the way to a block, before its sum is where it is there. */
static void add_way_place(struct writer *w, uint32_t edge)
{
	const struct numbering_edge *e = &w->in->sums->numbering.edges[edge];
	const struct graph_edge *g = &w->in->graph->edges[edge];
	const struct sums_block *from = switches_behind(w, g->from);
	if (e->cut)
		add_place(w, g->to, COPY_KNOWN, e->set);
	else if (from->varies)
		add_place(w, g->to, from->out, e->add);
	else
		add_place(w, g->to, COPY_KNOWN, from->value + e->add);
}

static void put_edge(struct writer *w, uint32_t edge)
{
	const struct numbering_edge *e = &w->in->sums->numbering.edges[edge];
	const struct graph_edge *g = &w->in->graph->edges[edge];
	const struct sums_block *from = switches_behind(w, g->from),
				*to = &w->in->sums->blocks[g->to];
	if (e->cut && g->kind != EDGE_LANDING)
		put_end(w, g->from, edge, e->add, false);
	add_way_place(w, edge);
	if (!has_code(w, edge) || !to->varies)
		return;
	if (e->cut)
		w->cpu->put_set(w, to->in, e->set);
	else if (!from->varies)
		w->cpu->put_set(w, to->in, from->value + e->add);
	else
		w->cpu->put_add(w, to->in, from->out, e->add);
	add_block_place(w, g->to, to->in);
}

/* ---- ends of blocks ---- */

/* The edge of a block that is of this kind; UINT32_MAX: none. */
static uint32_t edge_of(const struct writer *w, uint32_t block, uint8_t kind)
{
	const struct graph_block *b = &w->in->graph->blocks[block];
	for (uint32_t i = b->first; i < b->first + b->count; i++)
		if (w->in->graph->edges[i].kind == kind)
			return i;
	return UINT32_MAX;
}

/* Goes on at the block behind an edge, which may be the one that is written next. */
static void put_way(struct writer *w, uint32_t edge, uint32_t next)
{
	uint32_t to = w->in->graph->edges[edge].to;
	put_edge(w, edge);
	if (to != next || w->in->graph->blocks[to].landing)
		w->cpu->put_jump_to_block(w, to);
}

static void put_branch(struct writer *w, uint32_t block, uint32_t insn, uint32_t next)
{
	const struct graph_block *b = &w->in->graph->blocks[block];
	uint64_t target = w->in->live->insns[insn].target;
	uint32_t taken = edge_of(w, block, EDGE_JUMP), falls = edge_of(w, block, EDGE_FALL);
	if (target == b->end && b->count == 1) { /* both ways are the same */
		put_way(w, b->first, next);
		return;
	}
	if (taken != UINT32_MAX && !has_code(w, taken) &&
	    w->cpu->put_if(w, insn, w->in->graph->edges[taken].to)) {
		/* done */
	} else {
		size_t over = w->cpu->put_unless(w, insn);
		if (taken != UINT32_MAX) {
			put_way(w, taken, GRAPH_NONE);
		} else {
			put_leave(w, block);
			w->cpu->put_jump(w, target);
		}
		w->cpu->end_unless(w, over);
	}
	if (falls != UINT32_MAX) {
		put_way(w, falls, next);
		return;
	}
	put_leave(w, block);
	w->cpu->put_jump(w, b->end);
}

static void put_switch(struct writer *w, uint32_t block, uint32_t insn)
{
	const struct graph_block *b = &w->in->graph->blocks[block];
	const struct sums_block *sum = &w->in->sums->blocks[block],
				*behind = switches_behind(w, block);
	if (behind != sum && !sum->varies) {
		w->cpu->put_set(w, behind->out, sum->value + behind->value);
	} else if (behind != sum) {
		w->cpu->put_add(w, behind->out, sum->out, behind->value);
		add_place(w, block, behind->out, -behind->value);
	}
	w->cpu->put_moved(w, insn);
	if (switches_owner(w, block) != block)
		return;
	for (uint32_t i = b->first; i < b->first + b->count; i++) {
		if (w->in->graph->edges[i].kind == EDGE_LANDING)
			continue;
		w->stubs[i] = (uint32_t)w->code.size;
		if (has_code(w, i))
			put_way(w, i, GRAPH_NONE);
		else
			w->stubs[i] = UINT32_MAX;
	}
}

static void put_call(struct writer *w, uint32_t insn)
{
	uint64_t target = w->in->live->insns[insn].target;
	if (part_of(w, target) && target != w->in->parts[0].start)
		w->refused = "it calls into itself";
	if (w->in->depths && !(w->in->live->insns[insn].live >> w->cpu->slot_register & 1)) {
		w->cpu->put_slot(w, w->slot++);
		w->direct = true;
	}
	w->cpu->put_call(w, insn);
	w->direct = false;
}

/* What ends the block, and where it goes on. `insn`: its last instruction. */
static void put_last(struct writer *w, uint32_t block, uint32_t insn, uint32_t next)
{
	const struct graph_block *b = &w->in->graph->blocks[block];
	const struct live_insn *i = &w->in->live->insns[insn];
	switch (b->ends) {
	case GRAPH_JUMPS:
		put_way(w, edge_of(w, block, EDGE_JUMP), next);
		return;
	case GRAPH_BRANCHES:
		put_branch(w, block, insn, next);
		return;
	case GRAPH_SWITCHES:
		put_switch(w, block, insn);
		return;
	case GRAPH_TAIL_CALLS:
		put_leave(w, block);
		if (i->kind == INSN_JUMP)
			w->cpu->put_jump(w, i->target);
		else
			w->cpu->put_moved(w, insn);
		return;
	default:
		break;
	}
	put_leave(w, block);
	if (i->kind == INSN_CALL)
		put_call(w, insn);
	else
		w->cpu->put_moved(w, insn);
	/* If a call comes back that never should, the function itself goes on. */
	if (b->ends == GRAPH_STOPS && i->kind != INSN_TRAP)
		w->cpu->put_jump(w, b->end);
}

/* ---- exceptions ---- */

static void add_landing(struct writer *w, uint32_t from, uint32_t to)
{
	struct copy *c = w->out;
	if (!ARRAY_ROOM(c->landings, c->landing_count, w->landing_room)) {
		w->failed = true;
		return;
	}
	c->landings[c->landing_count++] = (struct copy_landing){w->in->graph->blocks[from].last,
								w->in->graph->blocks[to].start,
								(uint32_t)w->code.size};
}

static void put_landing_set(struct writer *w, uint32_t edge)
{
	const struct sums_block *to = &w->in->sums->blocks[w->in->graph->edges[edge].to];
	if (to->varies)
		w->cpu->put_set(w, to->in, w->in->sums->numbering.edges[edge].set);
}

static void put_check(struct writer *w, uint32_t insn, uint32_t free)
{
	const struct depth *d = &w->in->depths[insn];
	w->cpu->put_check(w, free, !d->sp_known, d->sp_known ? d->sp : d->fp);
}

/* Where an exception comes in. */
static void put_landing_check(struct writer *w, uint32_t block)
{
	const struct live *l = w->in->live;
	if (w->in->depths)
		put_check(w, l->first[block], w->use.all & ~live_at_landing(l, &w->use, block));
}

/* The way of an exception from a call. */
static void put_landing_edge(struct writer *w, uint32_t edge)
{
	const struct numbering_edge *e = &w->in->sums->numbering.edges[edge];
	const struct graph_edge *g = &w->in->graph->edges[edge];
	const struct sums_block *from = &w->in->sums->blocks[g->from],
				*to = &w->in->sums->blocks[g->to];
	struct write_counter c = {.at = counter(w, from->varies ? e->add : from->value + e->add),
				  .sum = from->varies ? to->landing_sum : SUMS_NONE,
				  .free = w->use.to_count ? to->landing_free : 0,
				  .in_record = w->in->depths,
				  .spare = to->landing_free};
	add_landing(w, g->from, g->to);
	put_landing_check(w, g->to);
	add_place(w, g->from, from->varies ? COPY_SUM_AWAY : COPY_KNOWN, from->value);
	if (from->varies)
		w->cpu->put_left_sum(w, to, from->lost);
	else
		w->cpu->put_drop(w, to->landing_free);
	add_place(w, COPY_WHOLE, place_register(c.sum),
		  from->varies ? e->add : from->value + e->add);
	w->cpu->put_count(w, &c);
	add_place(w, g->to, COPY_KNOWN, e->set);
	put_landing_set(w, edge);
}

/* What exceptions meet before a block: first those of which no more is known. */
static void put_landings(struct writer *w, uint32_t block)
{
	const struct graph *g = w->in->graph;
	const struct sums_block *b = &w->in->sums->blocks[block];
	uint32_t any = UINT32_MAX;
	put_landing_check(w, block);
	if (b->landing_free)
		w->cpu->put_drop(w, b->landing_free);
	for (uint32_t i = 0; i < g->edge_count && any == UINT32_MAX; i++)
		any = g->edges[i].to == block && g->edges[i].kind == EDGE_LANDING ? i : any;
	if (any == UINT32_MAX)
		return;
	add_place(w, block, COPY_KNOWN, w->in->sums->numbering.edges[any].set);
	put_landing_set(w, any);
	for (uint32_t i = any; i < g->edge_count; i++)
		if (g->edges[i].to == block && g->edges[i].kind == EDGE_LANDING &&
		    g->blocks[g->edges[i].from].reached &&
		    !w->in->sums->numbering.edges[i].thrown) {
			w->cpu->put_jump_to_block(w, block);
			put_landing_edge(w, i);
		}
}

static int by_call(const void *a, const void *b)
{
	const struct copy_landing *x = a, *y = b;
	return x->call < y->call ? -1 : x->call > y->call;
}

/* ---- blocks ---- */

static void add_step(struct writer *w, uint64_t from, size_t to)
{
	struct copy *c = w->out;
	if (!ARRAY_ROOM(c->steps, c->step_count, w->step_room)) {
		w->failed = true;
		return;
	}
	c->steps[c->step_count++] = (struct copy_step){from, (uint32_t)to};
}

static uint32_t falls_to(const struct writer *w, uint32_t block)
{
	const struct graph_block *b = &w->in->graph->blocks[block];
	return b->ends == GRAPH_FALLS || b->ends == GRAPH_CALLS ? edge_of(w, block, EDGE_FALL)
								: UINT32_MAX;
}

static void put_insn(struct writer *w, uint32_t block, uint32_t insn, uint32_t next)
{
	const struct live *l = w->in->live;
	const struct live_insn *i = &l->insns[insn];
	const struct sums_block *b = &w->in->sums->blocks[block];
	bool last = insn + 1 == l->first[block + 1];
	if (b->varies && insn == b->save)
		w->cpu->put_save(w, b);
	else if (b->varies && b->save != b->restore && insn == b->save + 1)
		add_place(w, block, COPY_SUM_AWAY, 0);
	add_step(w, i->address, w->code.size);
	if (last && falls_to(w, block) == UINT32_MAX)
		put_last(w, block, insn, next);
	else if (i->kind == INSN_CALL)
		put_call(w, insn);
	else
		w->cpu->put_moved(w, insn);
	if (b->varies && insn == b->restore)
		add_place(w, block, COPY_SUM_AWAY, 0);
	if (w->in->depths && is_call(i) &&
	    !(last && w->in->graph->blocks[block].ends == GRAPH_STOPS))
		put_check(w, insn, w->use.all & ~live_behind(l, block, insn));
	if (b->varies && insn == b->restore) {
		w->cpu->put_restore(w, b);
		add_place(w, block, b->out, 0);
	}
}

/* Counts the call. */
static void put_entry(struct writer *w)
{
	const struct write_enter enter = {.free = w->use.all &
						  ~live_at_block(w->in->live, w->in->graph->entry),
					  .counts_calls = w->in->sums->counts_calls};
	if (w->in->depths) {
		w->cpu->put_enter(w, &enter);
		return;
	}
	const struct write_counter c = {
		.at = (int64_t)w->in->counters, .sum = SUMS_NONE, .free = w->in->sums->entry_free};
	w->cpu->put_count(w, &c);
}

static void put_block(struct writer *w, uint32_t block, uint32_t next)
{
	const struct live *l = w->in->live;
	size_t first_step = w->out->step_count, start = w->code.size;
	w->block = block;
	add_place(w, block, COPY_SUM_AWAY, 0);
	if (w->in->graph->blocks[block].landing)
		put_landings(w, block);
	if (block == w->in->graph->entry && (w->in->sums->counts_calls || w->in->depths)) {
		add_place(w, block, COPY_KNOWN, w->in->sums->numbering.starts[0].set);
		put_entry(w);
	}
	w->labels[block] = (uint32_t)w->code.size;
	add_block_place(w, block, w->in->sums->blocks[block].in);
	for (uint32_t i = l->first[block]; i < l->first[block + 1] && !w->refused; i++)
		put_insn(w, block, i, next);
	/* Who comes by an exception comes to what is put before the block. */
	if (w->out->step_count > first_step)
		w->out->steps[first_step].to = (uint32_t)start;
	uint32_t falls = falls_to(w, block);
	if (falls != UINT32_MAX)
		put_way(w, falls, next);
}

/* Blocks part by part, as they stand in the function. */
static void order_blocks(struct writer *w)
{
	const struct graph *g = w->in->graph;
	for (size_t k = 0; k < w->in->part_count; k++)
		for (uint32_t b = 0; b < g->block_count; b++)
			if (g->blocks[b].reached &&
			    part_of(w, g->blocks[b].start) == &w->in->parts[k])
				w->order[w->block_count++] = b;
}

static void put_blocks(struct writer *w)
{
	order_blocks(w);
	if (!w->block_count || w->order[0] != w->in->graph->entry)
		w->refused = "its code does not begin with its entry";
	for (size_t k = 0; k < w->block_count && !w->refused && !w->failed; k++)
		put_block(w, w->order[k], k + 1 < w->block_count ? w->order[k + 1] : GRAPH_NONE);
	for (size_t i = 0; i < w->fixup_count && !w->refused && !w->code.failed; i++)
		w->cpu->fix(w, w->fixups[i].at, w->labels[w->fixups[i].block]);
}

/* ---- all of it ---- */

static bool prepare(struct writer *w)
{
	const struct graph *g = w->in->graph;
	w->labels = calloc(g->block_count + 1, sizeof *w->labels);
	w->order = calloc(g->block_count + 1, sizeof *w->order);
	w->stubs = calloc(g->edge_count + 1, sizeof *w->stubs);
	w->tables = calloc(g->table_count + 1, sizeof *w->tables);
	for (size_t i = 0; w->stubs && i < g->edge_count; i++)
		w->stubs[i] = UINT32_MAX;
	return w->labels && w->order && w->stubs && w->tables;
}

static void forget(struct writer *w)
{
	free(w->labels);
	free(w->order);
	free(w->stubs);
	free(w->tables);
	free(w->fixups);
	buf_free(&w->code);
}

static const char *why_not(const struct graph *g, const struct live *live)
{
	for (size_t i = 0; i < g->block_count; i++)
		if (g->blocks[i].reached && g->blocks[i].ends == GRAPH_UNRESOLVED)
			return "where a jump goes is not known";
		else if (g->blocks[i].reached && g->blocks[i].ends == GRAPH_BAD)
			return "where its code ends is not known";
	if (g->truncated)
		return "it is too large";
	return live->odd ? "it has an instruction that cannot be moved" : NULL;
}

static const struct write_cpu *cpu_for(uint16_t elf_machine)
{
	return elf_machine == write_aarch64.elf_machine ? &write_aarch64 : &write_x86_64;
}

static void write_all(struct writer *w, struct buf *tables)
{
	struct copy *out = w->out;
	out->steps = NULL;
	out->landings = NULL;
	out->calls = NULL;
	out->direct = 0;
	out->places = NULL;
	out->step_count = out->landing_count = out->call_count = out->place_count = 0;
	w->refused = why_not(w->in->graph, w->in->live);
	w->failed = !prepare(w);
	if (!w->failed && !w->refused)
		switches_take(w);
	if (!w->failed && !w->refused)
		put_blocks(w);
	if (!w->failed && !w->refused)
		switches_put(w, tables);
	w->failed |= w->code.failed;
	if (out->landing_count)
		qsort(out->landings, out->landing_count, sizeof *out->landings, by_call);
	out->size = w->code.size;
	out->code = (uint8_t *)buf_take(&w->code);
	forget(w);
}

struct err *write_copy(const struct write_input *input, struct copy *out, struct buf *tables,
		       const char **refused)
{
	const struct write_cpu *cpu = cpu_for(image_machine(input->image));
	struct writer w = {.in = input, .cpu = cpu, .out = out, .use = *cpu->use};
	if (input->keeps_record)
		w.use.all &= ~(1u << cpu->slot_register);
	size_t before = tables->size;
	write_all(&w, tables);
	if (w.too_far && !w.failed && !w.refused) {
		tables->size = before;
		copy_free(out);
		w = (struct writer){.in = input, .cpu = cpu, .out = out, .use = w.use, .far = true};
		write_all(&w, tables);
	}
	*refused = w.refused;
	if (w.failed || w.refused) {
		tables->size = before;
		copy_free(out);
	}
	return w.failed ? err_new("out of memory") : NULL;
}

/* ---- contexts ---- */

uint32_t write_slots(const struct live *live)
{
	uint32_t count = 0;
	for (size_t i = 0; i < live->insn_count; i++)
		count += live->insns[i].kind == INSN_CALL;
	return count;
}

bool write_can_keep(uint16_t elf_machine, const struct live *live, struct use_cpu *out)
{
	const struct write_cpu *cpu = cpu_for(elf_machine);
	uint32_t reg = cpu->slot_register == SUMS_NONE ? 0 : 1u << cpu->slot_register;
	for (size_t i = 0; i < live->insn_count; i++) {
		const struct live_insn *k = &live->insns[i];
		if (is_call(k) || (k->live | k->use.reads | k->use.writes) & reg)
			return false;
	}
	*out = *cpu->use;
	out->all &= ~reg;
	return reg;
}

static bool is_known_depth(const struct depth *d)
{
	return d->sp_known || d->fp_known;
}

/* Whether what comes behind each call of a block, and comes in by an exception, can be checked. */
static const char *check_block(const struct write_input *in, const struct depth *depths,
			       uint32_t block)
{
	static const char unknown[] = "where its frame is, is not known after a call";
	const struct live *l = in->live;
	const struct graph_block *b = &in->graph->blocks[block];
	uint32_t end = l->first[block + 1];
	if (b->landing && (l->first[block] == end || !is_known_depth(&depths[l->first[block]])))
		return unknown;
	for (uint32_t k = l->first[block]; k < end; k++) {
		if (!is_call(&l->insns[k]) || (k + 1 == end && b->ends == GRAPH_STOPS))
			continue;
		if (!is_known_depth(&depths[k]))
			return unknown;
		if (k + 1 < end ? l->insns[k + 1].flags : l->flags_after[block])
			return "flags are needed after a call";
	}
	return NULL;
}

const char *write_contexts(const struct write_input *in, const struct depth *depths)
{
	const char *why = NULL;
	if (cpu_for(image_machine(in->image))->slot_register == SUMS_NONE)
		return "contexts are for x86-64 only, so far";
	if (live_flags_at_block(in->live, in->graph->entry))
		return "flags are needed where it begins";
	for (uint32_t b = 0; b < in->graph->block_count && !why; b++)
		if (in->graph->blocks[b].reached)
			why = check_block(in, depths, b);
	return why;
}

/* ---- from outside ---- */

uint64_t write_reach(uint16_t elf_machine)
{
	return cpu_for(elf_machine)->reach;
}

bool write_needs_word(uint16_t elf_machine)
{
	return cpu_for(elf_machine)->needs_word;
}

void write_aim(uint16_t elf_machine, uint8_t *code, uint64_t from, uint64_t to)
{
	cpu_for(elf_machine)->aim(code, from, to);
}

const char *write_enter(uint16_t elf_machine, const struct write_entry *entry,
			struct write_jump *out)
{
	return cpu_for(elf_machine)->enter(entry, out);
}
