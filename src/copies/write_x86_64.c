/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86-64. All jumps of a copy have the long form. Switches get tables of their own, with the way to each case.
 *
 * To count is one instruction, so a signal handler that counts, too, does no harm. Nothing is put on the stack: below SP
 * is the function's red zone.
 */
#include "copies/write.h"

#include <Zydis/Zydis.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "flow/graph.h"
#include "image/image.h"
#include "isa/insn.h"

#define STACK_END (-8) /* %gs: */
#define ENTRY 16       /* bytes of the path stack */
#define SP_HARDWARE 4  /* numbers of registers in instructions */
#define ALIGNMENT 8    /* of tables */

struct fixup { /* four bytes that say how far it is to a block */
	uint32_t at;
	uint32_t block;
};

struct table { /* of a switch */
	uint64_t from, to;
	uint64_t jump;
	uint32_t entries;
	uint8_t size;
	uint32_t refers; /* instructions that were seen to use it */
	uint32_t block;
};

struct writer {
	const struct write_input *in;
	struct copy *out;
	struct buf code;
	size_t step_room, landing_room, call_room;
	uint32_t *
		labels; /* by block: where it begins for all but exceptions; UINT32_MAX: not written yet */
	uint32_t *stubs; /* by edge of a switch: where its way begins */
	uint32_t *order; /* blocks as they are written */
	size_t block_count;
	struct fixup *fixups;
	size_t fixup_count, fixup_room;
	struct table *tables;
	size_t table_count;
	const char *refused;
	bool failed; /* there is no memory */
};

/* ---- bytes ---- */

static void put(struct writer *w, const void *bytes, size_t size)
{
	buf_append(&w->code, bytes, size);
}

static void put_byte(struct writer *w, unsigned byte)
{
	const uint8_t b = (uint8_t)byte;
	put(w, &b, 1);
}

static void put_word(struct writer *w, int64_t value)
{
	const int32_t word = (int32_t)value;
	if (value != word)
		w->refused = "what it refers to is out of reach";
	put(w, &word, sizeof word);
}

static uint64_t here(const struct writer *w)
{
	return w->in->address + w->code.size;
}

/* How far it is from behind these four bytes. */
static void put_distance(struct writer *w, uint64_t to)
{
	put_word(w, (int64_t)(to - (here(w) + 4)));
}

/* The same, to another function. */
static void put_call_distance(struct writer *w, uint64_t to)
{
	struct copy *c = w->out;
	if (!ARRAY_ROOM(c->calls, c->call_count, w->call_room)) {
		w->failed = true;
		return;
	}
	c->calls[c->call_count++] = (struct copy_call){(uint32_t)w->code.size, to};
	put_distance(w, to);
}

static void put_label(struct writer *w, uint32_t block)
{
	if (!ARRAY_ROOM(w->fixups, w->fixup_count, w->fixup_room)) {
		w->failed = true;
		return;
	}
	w->fixups[w->fixup_count++] = (struct fixup){(uint32_t)w->code.size, block};
	put_word(w, 0);
}

static void put_jump_to_block(struct writer *w, uint32_t block)
{
	put_byte(w, 0xe9);
	put_label(w, block);
}

static void put_jump(struct writer *w, uint64_t to)
{
	put_byte(w, 0xe9);
	put_call_distance(w, to);
}

/* A short jump to a place that comes soon: end_short() is there. */
static size_t put_short(struct writer *w, unsigned opcode)
{
	put_byte(w, opcode);
	put_byte(w, 0);
	return w->code.size;
}

static void end_short(struct writer *w, size_t from)
{
	size_t distance = w->code.size - from;
	if (w->code.failed)
		return;
	if (distance > 127)
		w->refused = "its code cannot be written";
	w->code.data[from - 1] = (char)distance;
}

static void put_short_back(struct writer *w, unsigned opcode, size_t to)
{
	put_byte(w, opcode);
	put_byte(w, (unsigned)(to - (w->code.size + 1)) & 0xff);
}

static void put_long_end(struct writer *w, size_t at)
{
	int32_t distance = (int32_t)(w->code.size - (at + 4));
	if (!w->code.failed)
		memcpy(w->code.data + at, &distance, sizeof distance);
}

/* ---- instructions ---- */

/* From numbers of DWARF. */
static unsigned hardware(uint8_t reg)
{
	static const uint8_t of[16] = {0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15};
	return of[reg & 15];
}

static void put_rex(struct writer *w, unsigned reg, unsigned index, unsigned base)
{
	put_byte(w, 0x48 | (reg >> 3 & 1) << 2 | (index >> 3 & 1) << 1 | (base >> 3 & 1));
}

/* OPCODE reg, distance(base), or the other way round. */
static void put_memory(struct writer *w, unsigned opcode, unsigned reg, unsigned base,
		       int32_t distance)
{
	put_rex(w, reg, 0, base);
	put_byte(w, opcode);
	put_byte(w, 0x80 | (reg & 7) << 3 | (base & 7));
	if ((base & 7) == SP_HARDWARE)
		put_byte(w, 0x24);
	put_word(w, distance);
}

/* OPCODE reg, %gs:address */
static void put_thread(struct writer *w, unsigned opcode, unsigned reg, int64_t address)
{
	put_byte(w, 0x65);
	put_rex(w, reg, 0, 0);
	put_byte(w, opcode);
	put_byte(w, 0x04 | (reg & 7) << 3);
	put_byte(w, 0x25);
	put_word(w, address);
}

static void put_count(struct writer *w, int64_t address)
{
	put_thread(w, 0xff, 0, address); /* incq */
}

/* OPCODE reg, %gs:address(,index,8) */
static void put_indexed(struct writer *w, unsigned opcode, unsigned reg, int64_t address,
			uint8_t index)
{
	unsigned i = hardware(index);
	put_byte(w, 0x65);
	put_rex(w, reg, i, 0);
	put_byte(w, opcode);
	put_byte(w, 0x04 | (reg & 7) << 3);
	put_byte(w, 0xc5 | (i & 7) << 3);
	put_word(w, address);
}

static void put_set(struct writer *w, uint8_t reg, int64_t value)
{
	unsigned r = hardware(reg);
	put_rex(w, 0, 0, r);
	put_byte(w, 0xc7);
	put_byte(w, 0xc0 | (r & 7));
	put_word(w, value);
}

/* to = from + value, without flags */
static void put_add(struct writer *w, uint8_t to, uint8_t from, int64_t value)
{
	unsigned t = hardware(to), f = hardware(from);
	if (value) {
		put_memory(w, 0x8d, t, f, (int32_t)value);
		return;
	}
	if (t == f)
		return;
	put_rex(w, f, 0, t);
	put_byte(w, 0x89);
	put_byte(w, 0xc0 | (f & 7) << 3 | (t & 7));
}

/* Moves the end of the path stack by an entry. */
static void put_move_end(struct writer *w, bool up)
{
	put_thread(w, 0x83, up ? 0 : 5, STACK_END); /* addq, subq */
	put_byte(w, ENTRY);
}

/* Entries of calls that never came back are dropped: their SP is not above ours. */
static void put_drop(struct writer *w, uint8_t free)
{
	unsigned t = hardware(free);
	size_t again = w->code.size;
	put_thread(w, 0x8b, t, STACK_END);
	put_memory(w, 0x39, SP_HARDWARE, t, -8); /* cmp %rsp,-8(t) */
	size_t above = put_short(w, 0x77);       /* ja */
	put_move_end(w, false);
	put_short_back(w, 0xeb, again);
	end_short(w, above);
}

/* The SP is written twice: a signal handler that comes in between uses the place, too. */
static void put_save(struct writer *w, const struct sums_block *b)
{
	unsigned t = hardware(b->save_free);
	put_drop(w, b->save_free);
	put_memory(w, 0x89, SP_HARDWARE, t, 8);
	put_move_end(w, true);
	put_memory(w, 0x89, SP_HARDWARE, t, 8);
	put_memory(w, 0x89, hardware(b->in), t, 0);
}

static void put_restore(struct writer *w, const struct sums_block *b)
{
	unsigned t = hardware(b->restore_free), sp = SP_HARDWARE;
	size_t again = w->code.size;
	put_thread(w, 0x8b, t, STACK_END);
	if (b->sp_moves) {
		sp = hardware(b->out);
		put_memory(w, 0x8d, sp, SP_HARDWARE, (int32_t)-b->sp_moves);
	}
	put_memory(w, 0x39, sp, t, -8);
	size_t hit = put_short(w, 0x74);  /* je */
	size_t lost = put_short(w, 0x77); /* ja */
	put_move_end(w, false);
	put_short_back(w, 0xeb, again);
	end_short(w, lost);
	put_set(w, b->out, b->lost);
	size_t end = put_short(w, 0xeb);
	end_short(w, hit);
	put_memory(w, 0x8b, hardware(b->out), t, -ENTRY);
	put_move_end(w, false);
	end_short(w, end);
}

/* ---- where paths end and go on ---- */

static int64_t counter(const struct writer *w, int64_t number)
{
	return (int64_t)w->in->counters + 8 * (1 + number);
}

/* Counts without a change of flags. A signal handler that comes in between, and counts the same, is not seen. */
static void put_count_slowly(struct writer *w, int64_t address, const struct sums_block *b,
			     uint8_t free)
{
	unsigned t = hardware(free);
	for (int store = 0; store < 2; store++) {
		unsigned opcode = store ? 0x89 : 0x8b;
		if (b->varies)
			put_indexed(w, opcode, t, address, b->out);
		else
			put_thread(w, opcode, t, address);
		if (!store)
			put_memory(w, 0x8d, t, t, 1);
	}
}

/* Counts the path that ends behind a block, with what is still to be added. */
static void put_end(struct writer *w, uint32_t block, uint32_t edge, int64_t add)
{
	const struct write_input *in = w->in;
	const struct sums_block *b = &in->sums->blocks[block];
	int64_t at = counter(w, b->varies ? add : b->value + add);
	uint8_t free = sums_counting_register(in->graph, in->live, &use_x86_64, in->sums, block,
					      edge);
	if (free != SUMS_NONE)
		put_count_slowly(w, at, b, free);
	else if (b->varies)
		put_indexed(w, 0xff, 0, at, b->out); /* incq */
	else
		put_count(w, at);
}

static void put_leave(struct writer *w, uint32_t block)
{
	if (numbering_leaves(w->in->graph, block))
		put_end(w, block, SUMS_LEAVES, w->in->sums->numbering.leave[block]);
}

static bool has_code(const struct writer *w, uint32_t edge)
{
	const struct numbering_edge *e = &w->in->sums->numbering.edges[edge];
	const struct graph_edge *g = &w->in->graph->edges[edge];
	const struct sums_block *from = &w->in->sums->blocks[g->from],
				*to = &w->in->sums->blocks[g->to];
	if (g->kind == EDGE_LANDING)
		return false;
	if (e->cut)
		return true;
	return to->varies && (!from->varies || e->add || from->out != to->in);
}

static void put_edge(struct writer *w, uint32_t edge)
{
	const struct numbering_edge *e = &w->in->sums->numbering.edges[edge];
	const struct graph_edge *g = &w->in->graph->edges[edge];
	const struct sums_block *from = &w->in->sums->blocks[g->from],
				*to = &w->in->sums->blocks[g->to];
	if (!has_code(w, edge))
		return;
	if (e->cut)
		put_end(w, g->from, edge, e->add);
	if (!to->varies)
		return;
	if (e->cut)
		put_set(w, to->in, e->set);
	else if (!from->varies)
		put_set(w, to->in, from->value + e->add);
	else
		put_add(w, to->in, from->out, e->add);
}

/* ---- instructions of the function ---- */

struct decoded {
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	uint64_t address;
	const uint8_t *code;
};

static bool decode(struct writer *w, uint64_t address, struct decoded *out)
{
	ZydisDecoder decoder;
	size_t size = 0;
	out->address = address;
	out->code = image_bytes_at(w->in->image, address, &size);
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (out->code &&
	    ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, out->code, size, &out->in, out->ops)))
		return true;
	w->refused = "some of its bytes are no instruction";
	return false;
}

static const struct graph_part *part_of(const struct writer *w, uint64_t address)
{
	for (size_t i = 0; i < w->in->part_count; i++)
		if (address >= w->in->parts[i].start && address < w->in->parts[i].end)
			return &w->in->parts[i];
	return NULL;
}

/* The table that an instruction uses; NULL: none. */
static struct table *table_at(struct writer *w, uint64_t address)
{
	for (size_t i = 0; i < w->table_count; i++)
		if (w->tables[i].from == address)
			return &w->tables[i];
	return NULL;
}

static bool is_own_code(const struct writer *w, uint64_t address)
{
	return part_of(w, address) && address != w->in->parts[0].start &&
	       graph_find(w->in->graph, address) != GRAPH_NONE;
}

/* What an operand in memory refers to, by the PC or by its address alone; 0: nothing like that. */
static uint64_t referred(const struct decoded *d, const ZydisDecodedOperand *op)
{
	if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || !d->in.raw.disp.size)
		return 0;
	if (op->mem.base == ZYDIS_REGISTER_RIP)
		return d->address + d->in.length + (uint64_t)op->mem.disp.value;
	return op->mem.base == ZYDIS_REGISTER_NONE && d->in.raw.disp.size == 32
		       ? (uint64_t)op->mem.disp.value
		       : 0;
}

/* Copies an instruction that control goes through, or leaves by. */
static void put_moved(struct writer *w, const struct decoded *d)
{
	size_t at = w->code.size;
	put(w, d->code, d->in.length);
	for (unsigned i = 0; i < d->in.operand_count_visible && !w->code.failed; i++) {
		uint64_t to = referred(d, &d->ops[i]);
		struct table *t = to ? table_at(w, to) : NULL;
		bool by_pc = to && d->ops[i].mem.base == ZYDIS_REGISTER_RIP;
		if (by_pc && !t && is_own_code(w, to))
			w->refused = "it takes addresses of its own code";
		if (!by_pc && !t)
			continue;
		uint64_t target = t ? t->to : to;
		int64_t word = by_pc ? (int64_t)(target - (w->in->address + at + d->in.length))
				     : (int64_t)(target + w->in->bias);
		const int32_t bytes = (int32_t)word;
		if (bytes != word)
			w->refused = "what it refers to is out of reach";
		if (t)
			t->refers++;
		memcpy(w->code.data + at + d->in.raw.disp.offset, &bytes, sizeof bytes);
	}
}

static void put_call(struct writer *w, const struct decoded *d, uint64_t target)
{
	size_t at = w->code.size;
	if (part_of(w, target) && target != w->in->parts[0].start)
		w->refused = "it calls into itself";
	put(w, d->code, d->in.raw.imm[0].offset);
	put_call_distance(w, target);
	size_t rest = d->in.length - (w->code.size - at);
	put(w, d->code + d->in.length - rest, rest);
}

static void add_step(struct writer *w, uint64_t from, size_t to)
{
	struct copy *c = w->out;
	if (!ARRAY_ROOM(c->steps, c->step_count, w->step_room)) {
		w->failed = true;
		return;
	}
	c->steps[c->step_count++] = (struct copy_step){from, (uint32_t)to};
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
		put_jump_to_block(w, to);
}

/* A jump over what comes, if the condition of the branch does not hold. Returns what end_way() needs. */
static size_t put_unless(struct writer *w, const struct decoded *d)
{
	unsigned opcode = d->in.opcode;
	bool usual = d->in.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT ? opcode >> 4 == 7
								  : opcode >> 4 == 8;
	if (usual) {
		put_byte(w, 0x0f);
		put_byte(w, 0x80 | ((opcode & 0xf) ^ 1));
	} else if (opcode >= 0xe0 && opcode <= 0xe3 && d->in.raw.imm[0].size == 8) {
		/* loop, jrcxz: over the jump that is taken else. */
		put(w, d->code, d->in.length - 1);
		put_byte(w, 5);
		put_byte(w, 0xe9);
	} else {
		w->refused = "it has a branch that cannot be moved";
	}
	put_word(w, 0);
	return w->code.size - 4;
}

/* The condition holds: straight to a block. */
static bool put_if(struct writer *w, const struct decoded *d, uint32_t block)
{
	unsigned opcode = d->in.opcode;
	bool usual = d->in.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT ? opcode >> 4 == 7
								  : opcode >> 4 == 8;
	if (!usual)
		return false;
	put_byte(w, 0x0f);
	put_byte(w, 0x80 | (opcode & 0xf));
	put_label(w, block);
	return true;
}

static void put_branch(struct writer *w, uint32_t block, const struct decoded *d, uint32_t next)
{
	const struct graph_block *b = &w->in->graph->blocks[block];
	uint64_t target = d->address + d->in.length + d->in.raw.imm[0].value.u;
	uint32_t taken = edge_of(w, block, EDGE_JUMP), falls = edge_of(w, block, EDGE_FALL);
	if (target == b->end && b->count == 1) { /* both ways are the same */
		put_way(w, b->first, next);
		return;
	}
	if (taken != UINT32_MAX && !has_code(w, taken) &&
	    put_if(w, d, w->in->graph->edges[taken].to)) {
		/* done */
	} else {
		size_t over = put_unless(w, d);
		if (taken != UINT32_MAX) {
			put_way(w, taken, GRAPH_NONE);
		} else {
			put_leave(w, block);
			put_jump(w, target);
		}
		put_long_end(w, over);
	}
	if (falls != UINT32_MAX) {
		put_way(w, falls, next);
		return;
	}
	put_leave(w, block);
	put_jump(w, b->end);
}

static void put_switch(struct writer *w, uint32_t block, const struct decoded *d)
{
	const struct graph_block *b = &w->in->graph->blocks[block];
	put_moved(w, d);
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

/* What ends the block, and where it goes on. `d`: its last instruction. */
static void put_last(struct writer *w, uint32_t block, const struct decoded *d, uint32_t next)
{
	const struct graph_block *b = &w->in->graph->blocks[block];
	const struct live_insn *i = &w->in->live->insns[w->in->live->first[block + 1] - 1];
	switch (b->ends) {
	case GRAPH_JUMPS:
		put_way(w, edge_of(w, block, EDGE_JUMP), next);
		return;
	case GRAPH_BRANCHES:
		put_branch(w, block, d, next);
		return;
	case GRAPH_SWITCHES:
		put_switch(w, block, d);
		return;
	case GRAPH_TAIL_CALLS:
		put_leave(w, block);
		if (i->kind == INSN_JUMP)
			put_jump(w, i->target);
		else
			put_moved(w, d);
		if (d->ops[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    d->ops[0].mem.index != ZYDIS_REGISTER_NONE)
			w->refused = "where a jump goes is not known"; /* or it is a switch */
		return;
	default:
		break;
	}
	put_leave(w, block);
	if (i->kind == INSN_CALL)
		put_call(w, d, i->target);
	else
		put_moved(w, d);
	/* If a call comes back that never should, the function itself goes on. */
	if (b->ends == GRAPH_STOPS && i->kind != INSN_TRAP)
		put_jump(w, b->end);
}

/* ---- blocks ---- */

static uint32_t falls_to(const struct writer *w, uint32_t block)
{
	const struct graph_block *b = &w->in->graph->blocks[block];
	return b->ends == GRAPH_FALLS || b->ends == GRAPH_CALLS ? edge_of(w, block, EDGE_FALL)
								: UINT32_MAX;
}

/* The sum of the path that an exception has left: of the entries that nobody waits for any more, it is the last. */
static void put_left_sum(struct writer *w, const struct sums_block *to, int64_t lost)
{
	unsigned t = hardware(to->landing_free);
	put_set(w, to->landing_sum, lost);
	size_t again = w->code.size;
	put_thread(w, 0x8b, t, STACK_END);
	put_memory(w, 0x39, SP_HARDWARE, t, -8); /* cmp %rsp,-8(t) */
	size_t above = put_short(w, 0x77);       /* ja */
	put_memory(w, 0x8b, hardware(to->landing_sum), t, -ENTRY);
	put_move_end(w, false);
	put_short_back(w, 0xeb, again);
	end_short(w, above);
}

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
		put_set(w, to->in, w->in->sums->numbering.edges[edge].set);
}

/* The way of an exception from a call. */
static void put_landing_edge(struct writer *w, uint32_t edge)
{
	const struct numbering_edge *e = &w->in->sums->numbering.edges[edge];
	const struct graph_edge *g = &w->in->graph->edges[edge];
	const struct sums_block *from = &w->in->sums->blocks[g->from],
				*to = &w->in->sums->blocks[g->to];
	add_landing(w, g->from, g->to);
	if (from->varies) {
		put_left_sum(w, to, from->lost);
		put_indexed(w, 0xff, 0, counter(w, e->add), to->landing_sum);
	} else {
		put_drop(w, to->landing_free);
		put_count(w, counter(w, from->value + e->add));
	}
	put_landing_set(w, edge);
}

/* What exceptions meet before a block: first those of which no more is known. */
static void put_landings(struct writer *w, uint32_t block)
{
	const struct graph *g = w->in->graph;
	const struct sums_block *b = &w->in->sums->blocks[block];
	uint32_t any = UINT32_MAX;
	if (b->landing_free != SUMS_NONE)
		put_drop(w, b->landing_free);
	for (uint32_t i = 0; i < g->edge_count && any == UINT32_MAX; i++)
		any = g->edges[i].to == block && g->edges[i].kind == EDGE_LANDING ? i : any;
	if (any == UINT32_MAX)
		return;
	put_landing_set(w, any);
	for (uint32_t i = any; i < g->edge_count; i++)
		if (g->edges[i].to == block && g->edges[i].kind == EDGE_LANDING &&
		    g->blocks[g->edges[i].from].reached &&
		    !w->in->sums->numbering.edges[i].thrown) {
			put_jump_to_block(w, block);
			put_landing_edge(w, i);
		}
}

static int by_call(const void *a, const void *b)
{
	const struct copy_landing *x = a, *y = b;
	return x->call < y->call ? -1 : x->call > y->call;
}

static void put_insn(struct writer *w, uint32_t block, uint32_t insn, uint32_t next)
{
	const struct live *l = w->in->live;
	const struct live_insn *i = &l->insns[insn];
	const struct sums_block *b = &w->in->sums->blocks[block];
	bool last = insn + 1 == l->first[block + 1];
	struct decoded d;
	if (!decode(w, i->address, &d))
		return;
	if (b->varies && insn == b->save)
		put_save(w, b);
	add_step(w, i->address, w->code.size);
	if (last && falls_to(w, block) == UINT32_MAX)
		put_last(w, block, &d, next);
	else if (i->kind == INSN_CALL)
		put_call(w, &d, i->target);
	else
		put_moved(w, &d);
	if (b->varies && insn == b->restore)
		put_restore(w, b);
}

static void put_block(struct writer *w, uint32_t block, uint32_t next)
{
	const struct live *l = w->in->live;
	size_t first_step = w->out->step_count, start = w->code.size;
	if (w->in->graph->blocks[block].landing)
		put_landings(w, block);
	if (block == w->in->graph->entry)
		put_count(w, (int64_t)w->in->counters);
	w->labels[block] = (uint32_t)w->code.size;
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
	for (size_t i = 0; i < w->fixup_count && !w->refused && !w->code.failed; i++) {
		uint32_t to = w->labels[w->fixups[i].block];
		int32_t distance = (int32_t)(to - (w->fixups[i].at + 4));
		memcpy(w->code.data + w->fixups[i].at, &distance, sizeof distance);
	}
}

/* ---- tables ---- */

/* Which block an entry of a table leads to; GRAPH_NONE: that is not known. */
static uint32_t target_of(const struct writer *w, const struct table *t, uint32_t index)
{
	size_t size = 0;
	const uint8_t *bytes = image_bytes_at(w->in->image, t->from + (uint64_t)index * t->size,
					      &size);
	uint64_t address = 0;
	if (!bytes || size < t->size)
		return GRAPH_NONE;
	memcpy(&address, bytes, t->size);
	if (t->size == 4)
		address = t->from + (uint64_t)(int64_t)(int32_t)address;
	uint32_t block = graph_find(w->in->graph, address);
	if (block == GRAPH_NONE || w->in->graph->blocks[block].start != address)
		return GRAPH_NONE;
	return block;
}

static bool goes_to(const struct graph *g, uint32_t from, uint32_t to)
{
	for (uint32_t i = g->blocks[from].first; i < g->blocks[from].first + g->blocks[from].count;
	     i++)
		if (g->edges[i].to == to)
			return true;
	return false;
}

static const char *check_table(const struct writer *w, const struct graph_table *from,
			       const struct table *t)
{
	const char *unclear = "a switch has a table that cannot be copied";
	if (!from->exact)
		return "how long the table of a switch is, is not known for sure";
	if ((t->size != 4 && t->size != 8) || t->block == GRAPH_NONE)
		return unclear;
	if (t->size == 8 && image_type(w->in->image) != ET_EXEC)
		return unclear;
	for (uint32_t i = 0; i < t->entries; i++) {
		uint32_t to = target_of(w, t, i);
		if (to == GRAPH_NONE || !goes_to(w->in->graph, t->block, to))
			return unclear;
	}
	return NULL;
}

static void take_tables(struct writer *w)
{
	const struct graph *g = w->in->graph;
	uint64_t at = w->in->tables;
	for (size_t i = 0; i < g->table_count && !w->refused; i++) {
		const struct graph_table *from = &g->tables[i];
		struct table t = {.from = from->table,
				  .to = at,
				  .jump = from->jump,
				  .entries = from->entries,
				  .size = from->entry_size,
				  .block = graph_find(g, from->jump)};
		if (t.block == GRAPH_NONE || !g->blocks[t.block].reached)
			continue;
		w->refused = table_at(w, t.from) ? "two switches have the same table"
						 : check_table(w, from, &t);
		at += ((uint64_t)t.entries * t.size + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
		w->tables[w->table_count++] = t;
	}
}

/* Where the way to a block begins, from a switch. */
static uint32_t way_to(const struct writer *w, uint32_t from, uint32_t to)
{
	const struct graph_block *b = &w->in->graph->blocks[from];
	for (uint32_t i = b->first; i < b->first + b->count; i++)
		if (w->in->graph->edges[i].to == to && w->stubs[i] != UINT32_MAX)
			return w->stubs[i];
	return w->labels[to];
}

static void put_tables(struct writer *w, struct buf *out)
{
	for (size_t k = 0; k < w->table_count && !w->refused; k++) {
		const struct table *t = &w->tables[k];
		if (!t->refers)
			w->refused = "where the table of a switch is used was not found";
		for (uint32_t i = 0; i < t->entries; i++) {
			uint64_t to = w->in->address + way_to(w, t->block, target_of(w, t, i));
			uint64_t word = t->size == 4 ? to - t->to : to + w->in->bias;
			buf_append(out, &word, t->size);
		}
		while (out->size % ALIGNMENT)
			buf_append(out, "", 1);
	}
	w->failed |= out->failed;
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

struct err *write_copy(const struct write_input *input, struct copy *out, struct buf *tables,
		       const char **refused)
{
	struct writer w = {.in = input, .out = out};
	size_t before = tables->size;
	out->steps = NULL;
	out->landings = NULL;
	out->calls = NULL;
	out->step_count = out->landing_count = out->call_count = 0;
	w.refused = why_not(input->graph, input->live);
	w.failed = !prepare(&w);
	if (!w.failed && !w.refused)
		take_tables(&w);
	if (!w.failed && !w.refused)
		put_blocks(&w);
	if (!w.failed && !w.refused)
		put_tables(&w, tables);
	w.failed |= w.code.failed;
	if (out->landing_count)
		qsort(out->landings, out->landing_count, sizeof *out->landings, by_call);
	out->size = w.code.size;
	out->code = (uint8_t *)buf_take(&w.code);
	forget(&w);
	*refused = w.refused;
	if (w.failed || w.refused) {
		tables->size = before;
		copy_free(out);
	}
	return w.failed ? err_new("out of memory") : NULL;
}
