/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aarch64. No code that is put in changes flags.
 *
 * To count takes several instructions. A signal handler that comes in between, in the same thread, and counts the same
 * path, is not seen, unless the CPU can add to memory at once.
 *
 * What a table of a switch has is only understood together with the instructions that read it, and compilers make these in
 * few forms. They are written anew: entries of the new tables have four bytes, and say how far it is from the table.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "copies/writer.h"
#include "image/image.h"
#include "isa/insn.h"
#include "isa/insn_aarch64.h"

#define STACK_BEGIN (-24) /* from the bank on */
#define STACK_LIMIT (-16)
#define STACK_END (-8)
#define ENTRY 16 /* bytes of the path stack */
#define NOP 0xd503201fu
#define BTI_C 0xd503245fu
#define REACH_BITS 28 /* of the distance that B and BL have, in bytes */

static bool fits(int64_t distance, unsigned bit_count)
{
	int64_t limit = (int64_t)1 << (bit_count - 1);
	return distance >= -limit && distance < limit;
}

/* ---- instructions ---- */

static void put_word(struct writer *w, uint32_t word)
{
	put(w, &word, sizeof word);
}

static uint32_t word_in(const struct writer *w, size_t at)
{
	uint32_t word = 0;
	if (!w->code.failed)
		memcpy(&word, w->code.data + at, sizeof word);
	return word;
}

static void set_word(struct writer *w, size_t at, uint32_t word)
{
	if (!w->code.failed)
		memcpy(w->code.data + at, &word, sizeof word);
}

/* Adds a part of a register: to = from + value * (shift ? 4096 : 1). 31 is sp. */
static void put_add_part(struct writer *w, unsigned to, unsigned from, int64_t value, bool shift)
{
	uint32_t size = (uint32_t)(value < 0 ? -value : value);
	put_word(w, (value < 0 ? 0xd1000000u : 0x91000000u) | (uint32_t)shift << 22 | size << 10 |
			    from << 5 | to);
}

/* to = reg, neither of them sp */
static void put_move(struct writer *w, unsigned to, unsigned reg)
{
	put_word(w, 0xaa0003e0u | reg << 16 | to);
}

/* movz or movn, movk */
static void put_set(struct writer *w, uint8_t reg, int64_t value)
{
	bool negative = value < 0;
	uint64_t rest = (uint64_t)(negative ? ~value : value);
	bool first = true;
	for (unsigned i = 0; i < 4; i++) {
		uint32_t part = (uint32_t)(rest >> 16 * i) & 0xffff;
		if (!part && (i || rest >> 16))
			continue;
		if (!first)
			part ^= negative ? 0xffff : 0;
		put_word(w, (!first     ? 0xf2800000u
			     : negative ? 0x92800000u
					: 0xd2800000u) |
				    i << 21 | part << 5 | reg);
		first = false;
	}
}

/* What is added in several steps may be a sum. */
static void lose_own(struct writer *w, uint8_t to, uint8_t from)
{
	if (to == from)
		writer_lose_sum(w);
}

static void put_add(struct writer *w, uint8_t to, uint8_t from, int64_t value)
{
	int64_t size = value < 0 ? -value : value, sign = value < 0 ? -1 : 1;
	if (!value && to != from)
		put_move(w, to, from);
	for (; size >> 24; size -= 0xfff000, from = to) {
		put_add_part(w, to, from, sign * 0xfff, true);
		lose_own(w, to, from);
	}
	if (size >> 12) {
		put_add_part(w, to, from, sign * (size >> 12), true);
		lose_own(w, to, from);
		from = to;
	}
	if (size & 0xfff)
		put_add_part(w, to, from, sign * (size & 0xfff), false);
}

/* ldur, stur of a word at [base + distance] */
static void put_memory(struct writer *w, bool load, unsigned reg, unsigned base, int distance)
{
	put_word(w, (load ? 0xf8400000u : 0xf8000000u) | ((uint32_t)distance & 0x1ff) << 12 |
			    base << 5 | reg);
}

/* The same with a distance that is not negative. */
static void put_memory_above(struct writer *w, bool load, unsigned reg, unsigned base,
			     uint32_t distance)
{
	put_word(w, (load ? 0xf9400000u : 0xf9000000u) | distance / 8 << 10 | base << 5 | reg);
}

static uint32_t jump_word(uint32_t opcode, uint64_t from, uint64_t to)
{
	return opcode | ((uint32_t)((int64_t)(to - from) >> 2) & 0x3ffffffu);
}

/* b or bl to another function */
static void put_reach(struct writer *w, uint32_t opcode, uint64_t to)
{
	writer_add_call(w, to);
	if (!fits((int64_t)(to - here(w)), REACH_BITS))
		w->refused = "what it refers to is out of reach";
	put_word(w, jump_word(opcode, here(w), to));
}

static void put_jump(struct writer *w, uint64_t to)
{
	put_reach(w, 0x14000000u, to);
}

static void put_jump_to_block(struct writer *w, uint32_t block)
{
	writer_add_fixup(w, block);
	put_word(w, 0x14000000u);
}

/* Distances of branches: b.cond, cbz and cbnz have 19 bits, tbz and tbnz 14. */
static bool is_test(uint32_t word)
{
	return (word & 0x7e000000u) == 0x36000000u;
}

static bool set_distance(struct writer *w, size_t at, size_t to)
{
	uint32_t word = word_in(w, at);
	int64_t distance = (int64_t)to - (int64_t)at;
	if ((word & 0x7c000000u) == 0x14000000u) {
		set_word(w, at, jump_word(word & 0xfc000000u, at, to));
		return fits(distance, REACH_BITS);
	}
	unsigned count = is_test(word) ? 14 : 19;
	uint32_t mask = ((1u << count) - 1) << 5;
	set_word(w, at, (word & ~mask) | ((uint32_t)(distance >> 2) << 5 & mask));
	return fits(distance, count + 2);
}

static void fix(struct writer *w, uint32_t at, uint32_t to)
{
	if (!set_distance(w, at, to))
		w->too_far = true;
}

/* A branch over what is put until end_unless(). */
static size_t put_over(struct writer *w, uint32_t word)
{
	put_word(w, word);
	return w->code.size - 4;
}

static void end_unless(struct writer *w, size_t from)
{
	if (!w->refused && !set_distance(w, from, w->code.size))
		w->refused = "its code cannot be written";
}

static void put_back(struct writer *w, size_t to)
{
	put_word(w, jump_word(0x14000000u, w->code.size, to));
}

/* reg = an address */
static void put_address(struct writer *w, unsigned reg, uint64_t to, bool page_only)
{
	int64_t pages = (int64_t)((to & ~UINT64_C(4095)) - (here(w) & ~UINT64_C(4095))) / 4096;
	if (!fits(pages, 21))
		w->refused = "what it refers to is out of reach";
	put_word(w, 0x90000000u | ((uint32_t)pages & 3) << 29 |
			    ((uint32_t)(pages >> 2) & 0x7ffff) << 5 | reg);
	if (!page_only)
		put_add_part(w, reg, reg, (int64_t)(to & 0xfff), false);
}

/* ---- sums and counters ---- */

/* Takes a register out of a set. */
static uint8_t take(uint32_t *set)
{
	uint8_t reg = (uint8_t)__builtin_ctz(*set);
	*set &= *set - 1;
	return reg;
}

/* reg = the thread's bank */
static void put_bank(struct writer *w, uint8_t reg)
{
	uint64_t at = w->in->thread_word;
	if (at >> 24 || at % 8)
		w->refused = "where its thread counts is out of reach";
	put_word(w, 0xd53bd040u | reg); /* mrs reg, tpidr_el0 */
	if (at >= 8 * 4096)
		put_add_part(w, reg, reg, (int64_t)(at >> 12) & 0xfff, true);
	put_memory_above(w, true, reg, reg, (uint32_t)(at < 8 * 4096 ? at : at & 0xfff));
}

/* While a word of memory is taken for exclusive use, others should be left alone. */
static bool is_exclusive(const struct writer *w)
{
	const struct live *l = w->in->live;
	bool exclusive = false;
	for (uint32_t i = l->first[w->block]; i < l->first[w->block + 1]; i++) {
		size_t size = 0;
		uint32_t word = 0;
		const uint8_t *code = image_bytes_at(w->in->image, l->insns[i].address, &size);
		if (code && size >= 4)
			memcpy(&word, code, sizeof word);
		bool swaps = bit(word, 21) && !bit(word, 31);
		if ((word & 0x3f800000u) == 0x08000000u && !swaps)
			exclusive = bit(word, 22);
		else if ((word & 0xfffff0ffu) == 0xd503305fu) /* clrex */
			exclusive = false;
	}
	return exclusive;
}

static void put_count(struct writer *w, const struct write_counter *c)
{
	uint32_t free = c->free;
	if (__builtin_popcount(free) < (c->sum == SUMS_NONE ? 2 : 1)) {
		w->refused = "its code cannot be written";
		return;
	}
	if (is_exclusive(w))
		w->refused = "its paths end where memory is for exclusive use";
	/* Nobody needs the sum any more, once it is added. */
	uint8_t at = take(&free), value = c->sum != SUMS_NONE ? c->sum : take(&free);
	bool near = c->at >= 0 && c->at < 8 * 4096;
	int64_t rest = near ? c->at : c->at & 0xfff;
	put_bank(w, at);
	if (c->sum != SUMS_NONE)
		put_word(w, 0x8b000c00u | (uint32_t)c->sum << 16 | (uint32_t)at << 5 | at);
	if (!near && fits(c->at, 25)) {
		put_add(w, at, at, c->at - rest);
	} else if (!near) {
		writer_lose_sum(w);
		put_set(w, value, c->at - rest);
		put_word(w, 0x8b000000u | (uint32_t)value << 16 | (uint32_t)at << 5 | at);
	}
	if (w->in->atomics) {
		put_add(w, at, at, rest);
		writer_lose_sum(w);
		put_set(w, value, 1);
		put_word(w, 0xf820001fu | (uint32_t)value << 16 | (uint32_t)at << 5); /* stadd */
		return;
	}
	writer_lose_sum(w);
	put_memory_above(w, true, value, at, (uint32_t)rest);
	put_add_part(w, value, value, 1, false);
	put_memory_above(w, false, value, at, (uint32_t)rest);
}

struct keeping { /* registers of code that uses the path stack */
	uint8_t bank, end, sp;
};

static struct keeping take_keeping(struct writer *w, uint32_t free)
{
	struct keeping k = {0};
	if (__builtin_popcount(free) < 3) {
		w->refused = "its code cannot be written";
		return k;
	}
	k.bank = take(&free);
	k.end = take(&free);
	k.sp = take(&free);
	put_bank(w, k.bank);
	return k;
}

/* Moves the end of the path stack, which is known, by an entry. */
static void put_move_end(struct writer *w, const struct keeping *k, bool up)
{
	put_add(w, k->end, k->end, up ? ENTRY : -ENTRY);
	put_memory(w, false, k->end, k->bank, STACK_END);
}

/* sp = half of it, less half of `than`: its highest bit says whether it is below. */
static void put_compare(struct writer *w, uint8_t sp, uint8_t than)
{
	put_word(w, 0xd341fc00u | (uint32_t)sp << 5 | sp); /* lsr #1 */
	put_word(w, 0xcb400400u | (uint32_t)than << 16 | (uint32_t)sp << 5 | sp);
}

/* tbnz reg, #63 */
static size_t put_if_below(struct writer *w, uint8_t reg)
{
	return put_over(w, 0xb7f80000u | reg);
}

/* Drops entries whose SP is not above ours; the sum of the last of them to `sum`. */
static void put_drop_entries(struct writer *w, const struct keeping *k, uint8_t sum)
{
	size_t again = w->code.size;
	put_memory(w, true, k->end, k->bank, STACK_END);
	put_memory(w, true, k->end, k->end, -8);
	put_add_part(w, k->sp, SP, 0, false);
	put_compare(w, k->sp, k->end);
	size_t above = put_if_below(w, k->sp);
	put_memory(w, true, k->end, k->bank, STACK_END);
	if (sum != SUMS_NONE)
		put_memory(w, true, sum, k->end, -ENTRY);
	put_move_end(w, k, false);
	put_back(w, again);
	end_unless(w, above);
}

static void put_drop(struct writer *w, uint32_t free)
{
	struct keeping k = take_keeping(w, free);
	put_drop_entries(w, &k, SUMS_NONE);
}

static void put_left_sum(struct writer *w, const struct sums_block *to, int64_t lost)
{
	struct keeping k = take_keeping(w, to->landing_free);
	put_set(w, to->landing_sum, lost);
	put_drop_entries(w, &k, to->landing_sum);
}

/* The SP is written twice: a signal handler that comes in between uses the place, too. */
static void put_save(struct writer *w, const struct sums_block *b)
{
	struct keeping k = take_keeping(w, b->save_free);
	put_drop_entries(w, &k, SUMS_NONE);
	put_memory(w, true, k.end, k.bank, STACK_END);
	put_add_part(w, k.sp, SP, 0, false);
	put_memory(w, false, k.sp, k.end, 8);
	put_move_end(w, &k, true);
	put_memory(w, false, k.sp, k.end, -8);
	put_memory(w, false, b->in, k.end, -ENTRY);
}

static void put_restore(struct writer *w, const struct sums_block *b)
{
	struct keeping k = take_keeping(w, b->restore_free);
	if (!fits(b->sp_moves, 25))
		w->refused = "its code cannot be written";
	size_t again = w->code.size;
	put_memory(w, true, k.end, k.bank, STACK_END);
	put_memory(w, true, b->out, k.end, -8);
	if (b->sp_moves)
		put_add(w, k.sp, SP, -b->sp_moves);
	else
		put_add_part(w, k.sp, SP, 0, false);
	put_compare(w, k.sp, b->out);
	size_t hit = put_over(w, 0xb4000000u | k.sp); /* cbz */
	size_t lost = put_if_below(w, k.sp);
	put_move_end(w, &k, false);
	put_back(w, again);
	end_unless(w, lost);
	put_memory(w, true, k.sp, k.bank, STACK_LIMIT);
	put_word(w, 0xcb000000u | (uint32_t)k.end << 16 | (uint32_t)k.sp << 5 | k.sp); /* sub */
	size_t room = put_over(w, 0xb6f80000u | k.sp); /* tbz #63: there is room */
	put_memory(w, true, k.end, k.bank, STACK_BEGIN);
	put_memory(w, false, k.end, k.bank, STACK_END);
	end_unless(w, room);
	put_set(w, b->out, b->lost);
	size_t end = put_over(w, 0x14000000u);
	end_unless(w, hit);
	put_memory(w, true, b->out, k.end, -ENTRY);
	put_move_end(w, &k, false);
	end_unless(w, end);
}

/* ---- instructions of the function ---- */

static uint32_t word_of(const struct writer *w, uint32_t insn)
{
	size_t size = 0;
	uint32_t word = 0;
	const uint8_t *code = image_bytes_at(w->in->image, w->in->live->insns[insn].address, &size);
	if (code && size >= 4)
		memcpy(&word, code, sizeof word);
	return word;
}

static uint32_t block_of(const struct writer *w, uint32_t insn)
{
	return graph_find(w->in->graph, w->in->live->insns[insn].address);
}

/* The instruction of the same block that has set a register before `insn`; UINT32_MAX: none. */
static uint32_t writer_of(const struct writer *w, uint32_t insn, unsigned reg)
{
	const struct live *l = w->in->live;
	uint32_t block = block_of(w, insn);
	if (block == GRAPH_NONE)
		return UINT32_MAX;
	for (uint32_t i = insn; i-- > l->first[block];)
		if (l->insns[i].use.writes >> reg & 1)
			return i;
	return UINT32_MAX;
}

/* The address that an instruction makes: adr, or add behind adrp; 0: none. */
static uint64_t made_by(const struct writer *w, uint32_t insn)
{
	uint32_t word = word_of(w, insn);
	if ((word & 0x9f000000u) == 0x10000000u)
		return w->in->live->insns[insn].refers;
	if ((word & 0xffc00000u) != 0x91000000u)
		return 0;
	uint32_t from = writer_of(w, insn, rn(word));
	if (from == UINT32_MAX || (word_of(w, from) & 0x9f000000u) != 0x90000000u)
		return 0;
	return w->in->live->insns[from].refers + bits(word, 21, 10);
}

/* ---- switches ---- */

struct dispatch { /* the instructions at the end of a block which go where a table says */
	uint32_t first, load;
	uint8_t table, index, option; /* what the load adds up, as in its operand */
	uint8_t size;                 /* of an entry */
	uint64_t base;                /* 0: the table */
	uint8_t shift;
	uint32_t writes;
};

/* ldrb, ldrh, ldr of a word, ldrsw [table, index] */
static bool read_load(const struct writer *w, uint32_t insn, uint8_t to, struct dispatch *d)
{
	uint32_t word = word_of(w, insn);
	bool usual = (word & 0x3fe00c00u) == 0x38600800u && bits(word, 31, 30) < 3;
	if ((!usual && (word & 0xffe00c00u) != 0xb8a00800u) || rd(word) != to)
		return false;
	d->load = insn;
	d->table = rn(word);
	d->index = rm(word);
	d->option = (uint8_t)bits(word, 15, 13);
	d->size = (uint8_t)(1u << bits(word, 31, 30));
	return d->size == 1 || bit(word, 12);
}

static bool read_base(const struct writer *w, uint32_t insn, uint8_t to, struct dispatch *d)
{
	uint32_t word = word_of(w, insn);
	d->base = w->in->live->insns[insn].refers;
	return (word & 0x9f000000u) == 0x10000000u && rd(word) == to;
}

/* Of an add of an entry: GCC has add x, base, w, sxth #2; LLVM add x, base, x, lsl #2, or without a shift. */
static bool read_add(uint32_t word, struct dispatch *d)
{
	bool extends = (word & 0xffe01c00u) == 0x8b200800u && bits(word, 15, 13) >= 4;
	bool plain = (word & 0xffe0fc00u) == 0x8b000000u;
	d->shift = plain ? 0 : 2;
	return extends || plain || (word & 0xffe0fc00u) == 0x8b000800u;
}

/* The load and what sets the base come before it, in any order. */
static bool read_with_base(const struct writer *w, uint32_t add, struct dispatch *d)
{
	uint32_t word = word_of(w, add);
	d->first = add - 2;
	return read_add(word, d) &&
	       ((read_load(w, add - 2, rm(word), d) && read_base(w, add - 1, rn(word), d)) ||
		(read_base(w, add - 2, rn(word), d) && read_load(w, add - 1, rm(word), d) &&
		 d->index != rn(word) && d->table != rn(word)));
}

/* ldrsw x, [table, index, lsl #2]; add x, table, x */
static bool read_plain(const struct writer *w, uint32_t add, struct dispatch *d)
{
	uint32_t word = word_of(w, add);
	d->first = add - 1;
	d->base = 0;
	return read_add(word, d) && !d->shift &&
	       ((read_load(w, add - 1, rm(word), d) && d->table == rn(word)) ||
		(read_load(w, add - 1, rn(word), d) && d->table == rm(word)));
}

static bool read_dispatch(const struct writer *w, uint32_t block, struct dispatch *out)
{
	const struct live *l = w->in->live;
	uint32_t end = l->first[block + 1], start = l->first[block];
	if (end - start < 3)
		return false;
	uint32_t jump = word_of(w, end - 1), add = end - 2;
	*out = (struct dispatch){0};
	if ((jump & 0xfffffc1fu) != 0xd61f0000u || rd(word_of(w, add)) != rn(jump))
		return false;
	if (!(end - start >= 4 && read_with_base(w, add, out)) && !read_plain(w, add, out))
		return false;
	for (uint32_t i = out->first; i < end; i++)
		out->writes |= l->insns[i].use.writes;
	return true;
}

/* Whether the register with the table has its address, as far as the code tells. */
static bool has_table(const struct writer *w, const struct dispatch *d, uint64_t table)
{
	const struct live *l = w->in->live;
	uint32_t near = writer_of(w, d->load, d->table);
	if (near != UINT32_MAX)
		return made_by(w, near) == table;
	for (uint32_t i = 0; i < l->insn_count; i++)
		if (l->insns[i].use.writes >> d->table & 1 && made_by(w, i) == table)
			return true;
	return false;
}

/* What is left of a set of registers behind a block that none of its instructions writes; *read: those that one reads. */
static uint32_t pass_block(const struct live *l, uint32_t block, uint32_t set, uint32_t *read)
{
	for (uint32_t i = l->first[block]; i < l->first[block + 1]; i++) {
		*read |= set & l->insns[i].use.reads;
		set &= ~l->insns[i].use.kills;
	}
	return set;
}

/* Whether an instruction reads one of these registers, as it is at the end of a block. Who is called or returned to does not:
   they have parts of the table. */
static bool is_read_behind(struct writer *w, uint32_t block, uint32_t set)
{
	const struct graph *g = w->in->graph;
	uint32_t *at = calloc(g->block_count, sizeof *at), read = 0;
	bool changed = at != NULL;
	w->failed |= !at;
	for (size_t i = 0; at && i < g->blocks[block].count; i++)
		at[g->edges[g->blocks[block].first + i].to] = set;
	while (changed && !read) {
		changed = false;
		for (uint32_t b = 0; b < g->block_count; b++) {
			uint32_t left = pass_block(w->in->live, b, at[b], &read);
			for (uint32_t i = 0; i < g->blocks[b].count; i++) {
				uint32_t *to = &at[g->edges[g->blocks[b].first + i].to];
				changed |= left & ~*to;
				*to |= left;
			}
		}
	}
	free(at);
	return read;
}

/* Registers for the new instructions. */
static uint32_t free_at_switch(const struct writer *w, uint32_t block, const struct dispatch *d)
{
	const struct sums_block *b = &w->in->sums->blocks[block];
	uint32_t busy = w->in->live->after[block] & ~d->writes;
	if (b->varies)
		busy |= 1u << b->out;
	return use_aarch64.all & ~busy & ~(1u << d->index);
}

static const char *check_table(struct writer *w, struct table *t)
{
	const struct graph_table *of = t->of;
	struct dispatch d;
	t->size = 4;
	if (t->block == GRAPH_NONE || !read_dispatch(w, t->block, &d))
		return WRITE_NO_TABLE;
	bool same = d.size == of->entry_size && (d.base ? d.base : of->table) == of->base &&
		    d.shift == of->shift;
	if (!same || !has_table(w, &d, of->table) || is_read_behind(w, t->block, d.writes) ||
	    __builtin_popcount(free_at_switch(w, t->block, &d)) < 2)
		return WRITE_NO_TABLE;
	t->first = d.first;
	return NULL;
}

static struct table *switch_at(struct writer *w, uint32_t insn)
{
	for (size_t i = 0; i < w->table_count; i++)
		if (w->tables[i].block == w->block && insn >= w->tables[i].first)
			return &w->tables[i];
	return NULL;
}

/* Each of the old instructions becomes at least one of the new ones. */
static void put_dispatch(struct writer *w, struct table *t, uint32_t insn)
{
	struct dispatch d;
	uint32_t last = w->in->live->first[w->block + 1] - 1, left = last - insn;
	read_dispatch(w, w->block, &d);
	uint32_t free = free_at_switch(w, w->block, &d);
	uint32_t at = take(&free), entry = take(&free);
	if (left == 3 || (left == 2 && insn == t->first))
		put_address(w, at, t->to, true);
	if (left == 2)
		put_add_part(w, at, at, (int64_t)(t->to & 0xfff), false);
	if (left == 1) /* ldrsw */
		put_word(w, 0xb8a01800u | (uint32_t)d.index << 16 | (uint32_t)d.option << 13 |
				    at << 5 | entry);
	if (left)
		return;
	put_word(w, 0x8b000000u | entry << 16 | at << 5 | at);
	put_word(w, 0xd61f0000u | at << 5);
	t->used++;
}

/* ---- what depends on its address ---- */

/* ldr, ldrsw, prfm of something near by. Its address goes to the register itself, if that can be. */
static void put_literal(struct writer *w, uint32_t insn, uint32_t word)
{
	static const uint32_t whole[] = {0xb9400000u, 0xf9400000u, 0xb9800000u};
	static const uint32_t vector[] = {0xbd400000u, 0xfd400000u, 0x3dc00000u};
	const struct live_insn *i = &w->in->live->insns[insn];
	const struct sums_block *b = &w->in->sums->blocks[w->block];
	uint32_t size = word >> 30, base = rd(word);
	bool is_vector = bit(word, 26);
	if (size == 3 || (!is_vector && base == ZR)) { /* a hint */
		put_word(w, NOP);
		return;
	}
	if (is_vector) {
		uint32_t busy = i->live | (b->varies ? 1u << b->in | 1u << b->out : 0);
		uint32_t free = use_aarch64.all & ~busy;
		if (!free) {
			w->refused = "too few registers are free";
			return;
		}
		base = take(&free);
	}
	put_address(w, base, i->refers, false);
	put_word(w, (is_vector ? vector : whole)[size] | base << 5 | rd(word));
}

static void put_moved(struct writer *w, uint32_t insn)
{
	uint32_t word = word_of(w, insn);
	struct table *t = switch_at(w, insn);
	if (t) {
		put_dispatch(w, t, insn);
		return;
	}
	uint64_t made = made_by(w, insn);
	if (made && writer_is_own_code(w, made))
		w->refused = "it takes addresses of its own code";
	if ((word & 0x1f000000u) == 0x10000000u) /* adr, adrp */
		put_address(w, rd(word), w->in->live->insns[insn].refers, word >> 31);
	else if ((word & 0x3b000000u) == 0x18000000u)
		put_literal(w, insn, word);
	else
		put_word(w, word);
}

static void put_call(struct writer *w, uint32_t insn)
{
	put_reach(w, 0x94000000u, w->in->live->insns[insn].target);
}

/* ---- branches ---- */

static bool put_if(struct writer *w, uint32_t insn, uint32_t block)
{
	uint32_t word = word_of(w, insn);
	if (w->far || is_test(word))
		return false;
	writer_add_fixup(w, block);
	put_word(w, word & ~0x00ffffe0u);
	return true;
}

static size_t put_unless(struct writer *w, uint32_t insn)
{
	uint32_t word = word_of(w, insn);
	bool conditional = (word & 0xff000000u) == 0x54000000u;
	bool compares = (word & 0x7e000000u) == 0x34000000u;
	if (conditional && (word & 14) == 14) /* always */
		w->refused = "it has a branch that cannot be moved";
	if (conditional)
		return put_over(w, (word & ~0x00ffffe0u) ^ 1);
	if (compares)
		return put_over(w, (word & ~0x00ffffe0u) ^ (1u << 24));
	if (!is_test(word))
		w->refused = "it has a branch that cannot be moved";
	return put_over(w, (word & ~0x0007ffe0u) ^ (1u << 24));
}

/* ---- from outside ---- */

static void aim(uint8_t *code, uint64_t from, uint64_t to)
{
	uint32_t word;
	memcpy(&word, code, sizeof word);
	word = jump_word(word & 0xfc000000u, from, to);
	memcpy(code, &word, sizeof word);
}

/* An instruction that indirect calls may come to, and that does nothing else, stays where it is. One that signs the
   return address as well must not be run twice: the copy begins with it. */
static const char *enter(const struct write_entry *e, struct write_jump *out)
{
	uint32_t word;
	if (e->size < 4)
		return "it is too small for a jump";
	memcpy(&word, e->code, sizeof word);
	bool stays = (word & 0xffffff3fu) == 0xd503241fu && e->size >= 8;
	bool signs = e->guarded && (word == 0xd503233fu || word == 0xd503237fu);
	if (signs && e->size < 8)
		return "it is too small for a jump";
	*out = (struct write_jump){.at = e->address + (stays ? 4 : 0), .size = signs ? 8 : 4};
	uint64_t from = e->address + (stays || signs ? 4 : 0);
	if (!fits((int64_t)(e->copy - from), REACH_BITS))
		return "its copy is out of reach";
	uint32_t landing = BTI_C, jump = jump_word(0x14000000u, from, e->copy);
	memcpy(out->bytes, &landing, sizeof landing);
	memcpy(out->bytes + (signs ? 4 : 0), &jump, sizeof jump);
	return NULL;
}

const struct write_cpu write_aarch64 = {
	.elf_machine = EM_AARCH64,
	.use = &use_aarch64,
	.needs_word = true,
	.reach = (UINT64_C(1) << (REACH_BITS - 1)) - (UINT64_C(16) << 20),
	.put_moved = put_moved,
	.put_call = put_call,
	.put_if = put_if,
	.put_unless = put_unless,
	.end_unless = end_unless,
	.check_table = check_table,
	.put_jump = put_jump,
	.put_jump_to_block = put_jump_to_block,
	.fix = fix,
	.put_set = put_set,
	.put_add = put_add,
	.put_count = put_count,
	.put_save = put_save,
	.put_restore = put_restore,
	.put_drop = put_drop,
	.put_left_sum = put_left_sum,
	.slot_register = SUMS_NONE,
	.aim = aim,
	.enter = enter,
};
