/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86-64. All jumps of a copy have the long form.
 *
 * To count is one instruction, so a signal handler that counts, too, does no harm.
 */
#include <Zydis/Zydis.h>
#include <elf.h>
#include <stddef.h>
#include <string.h>

#include "copies/writer.h"
#include "image/image.h"
#include "isa/insn.h"
#include "safe/contexts.h"

enum { RAX = 0, RCX = 2, RSP = 7, R11 = 11 }; /* numbers of DWARF */
#define STACK_BEGIN (-24)
#define STACK_LIMIT (-16)
#define STACK_END (-8)    /* %gs: */
#define ENTRY 16          /* bytes of the path stack */
#define CONTEXT_TOP (-32) /* counter/contexts.h */
#define CONTEXT_ENTER (-40)
#define CONTEXT_ENTER_DIRECT (-48)
#define CONTEXT_CHECK (-56)
#define HEAD(field) \
	((int32_t)offsetof(struct context_head, field) - (int32_t)sizeof(struct context_head))
#define RED_ZONE 128
#define FP_HARDWARE 5
#define SP_HARDWARE 4 /* numbers of registers in instructions */
#define JUMP 5
#define ENDBR "\xf3\x0f\x1e\xfa"

/* ---- bytes ---- */

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

/* How far it is from behind these four bytes. */
static void put_distance(struct writer *w, uint64_t to)
{
	put_word(w, (int64_t)(to - (here(w) + 4)));
}

/* The same, to another function. */
static void put_call_distance(struct writer *w, uint64_t to)
{
	writer_add_call(w, to);
	put_distance(w, to);
}

static void put_label(struct writer *w, uint32_t block)
{
	writer_add_fixup(w, block);
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

/* The same, as far as need be. */
static size_t put_far(struct writer *w)
{
	put_byte(w, 0xe9);
	put_word(w, 0);
	return w->code.size - 4;
}

static void end_far(struct writer *w, size_t from)
{
	int32_t distance = (int32_t)(w->code.size - (from + 4));
	if (!w->code.failed)
		memcpy(w->code.data + from, &distance, sizeof distance);
}

static void put_short_back(struct writer *w, unsigned opcode, size_t to)
{
	put_byte(w, opcode);
	put_byte(w, (unsigned)(to - (w->code.size + 1)) & 0xff);
}

static void fix(struct writer *w, uint32_t at, uint32_t to)
{
	int32_t distance = (int32_t)(to - (at + 4));
	memcpy(w->code.data + at, &distance, sizeof distance);
}

/* ---- instructions ---- */

/* From numbers of DWARF. */
static unsigned hardware(uint8_t reg)
{
	static const uint8_t of[16] = {0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15};
	return of[reg & 15];
}

/* The only register of a set, or its first one. */
static unsigned hardware_of(uint32_t set)
{
	return hardware((uint8_t)__builtin_ctz(set));
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

/* OPCODE reg, distance(base,index,1 << scale) */
static void put_base_indexed(struct writer *w, unsigned opcode, unsigned reg, unsigned base,
			     int32_t distance, unsigned index, unsigned scale)
{
	put_rex(w, reg, index, base);
	put_byte(w, opcode);
	put_byte(w, 0x84 | (reg & 7) << 3);
	put_byte(w, scale << 6 | (index & 7) << 3 | (base & 7));
	put_word(w, distance);
}

static void put_push(struct writer *w, unsigned reg)
{
	if (reg >= 8)
		put_byte(w, 0x41);
	put_byte(w, 0x50 | (reg & 7));
}

static void put_pop(struct writer *w, unsigned reg)
{
	if (reg >= 8)
		put_byte(w, 0x41);
	put_byte(w, 0x58 | (reg & 7));
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
static void put_drop(struct writer *w, uint32_t free)
{
	unsigned t = hardware_of(free);
	size_t again = w->code.size;
	put_thread(w, 0x8b, t, STACK_END);
	put_memory(w, 0x39, SP_HARDWARE, t, -8); /* cmp %rsp,-8(t) */
	size_t above = put_short(w, 0x77);       /* ja */
	put_move_end(w, false);
	put_short_back(w, 0xeb, again);
	end_short(w, above);
}

/* The SP is written twice: a signal handler that comes in between uses the place, too. If no register is free, one is kept
   below the stack, which is nobody's right before a call. Then the SP must be made good. */
static void put_save(struct writer *w, const struct sums_block *b)
{
	const uint8_t kept = b->in == RAX ? RCX : RAX;
	uint32_t free = b->save_free ? b->save_free : 1u << kept;
	unsigned t = hardware_of(free);
	if (!b->save_free)
		put_byte(w, 0x50 | t); /* push */
	put_drop(w, free);
	put_memory(w, 0x89, SP_HARDWARE, t, 8);
	put_move_end(w, true);
	put_memory(w, 0x89, SP_HARDWARE, t, 8);
	put_memory(w, 0x89, hardware(b->in), t, 0);
	if (b->save_free)
		return;
	put_memory(w, 0x83, 0, t, 8); /* addq $8,8(t) */
	put_byte(w, 8);
	put_byte(w, 0x58 | t); /* pop */
}

static void put_restore(struct writer *w, const struct sums_block *b)
{
	unsigned t = hardware_of(b->restore_free), sp = SP_HARDWARE;
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
	put_thread(w, 0x3b, t, STACK_LIMIT); /* cmp */
	size_t room = put_short(w, 0x72);    /* jb */
	put_thread(w, 0x8b, t, STACK_BEGIN);
	put_thread(w, 0x89, t, STACK_END);
	end_short(w, room);
	put_set(w, b->out, b->lost);
	size_t end = put_short(w, 0xeb);
	end_short(w, hit);
	put_memory(w, 0x8b, hardware(b->out), t, -ENTRY);
	put_move_end(w, false);
	end_short(w, end);
}

/* The sum of the path that an exception has left: of the entries that nobody waits for any more, it is the last. */
static void put_left_sum(struct writer *w, const struct sums_block *to, int64_t lost)
{
	unsigned t = hardware_of(to->landing_free);
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

/* OPCODE reg, the counter */
static void put_counter(struct writer *w, unsigned opcode, unsigned reg,
			const struct write_counter *c)
{
	if (c->sum != SUMS_NONE)
		put_indexed(w, opcode, reg, c->at, c->sum);
	else
		put_thread(w, opcode, reg, c->at);
}

/* OPCODE reg, the counter in the record at `base` */
static void put_record_counter(struct writer *w, unsigned opcode, unsigned reg, unsigned base,
			       const struct write_counter *c)
{
	if (c->sum == SUMS_NONE)
		put_memory(w, opcode, reg, base, (int32_t)c->at);
	else
		put_base_indexed(w, opcode, reg, base, (int32_t)c->at, hardware(c->sum), 3);
}

/* A register that is free; or one that is kept below the red zone: *kept. */
static unsigned take_register(struct writer *w, const struct write_counter *c, bool *kept)
{
	uint32_t busy = c->free | 1u << RSP | (c->sum == SUMS_NONE ? 0 : 1u << c->sum);
	uint32_t free = c->spare & ~busy;
	*kept = !free;
	unsigned reg = hardware((uint8_t)__builtin_ctz(free ? free : 0xffff & ~busy));
	if (*kept) {
		put_memory(w, 0x8d, SP_HARDWARE, SP_HARDWARE, -RED_ZONE);
		put_push(w, reg);
	}
	return reg;
}

static void put_add_one(struct writer *w, const struct write_counter *c, unsigned record)
{
	if (!c->free) {
		put_record_counter(w, 0xff, 0, record, c); /* incq */
		return;
	}
	unsigned v = hardware_of(c->free);
	put_record_counter(w, 0x8b, v, record, c);
	put_memory(w, 0x8d, v, v, 1);
	put_record_counter(w, 0x89, v, record, c);
}

static void put_record_count(struct writer *w, const struct write_counter *c)
{
	if (w->in->keeps_record) {
		put_add_one(w, c, hardware(R11));
		return;
	}
	bool kept;
	unsigned t = take_register(w, c, &kept), v = c->free ? hardware_of(c->free) : t;
	put_thread(w, 0x8b, t, CONTEXT_TOP);
	if (c->leaves && c->free)
		put_memory(w, 0x8d, v, t, -ENTRY);
	put_memory(w, 0x8b, t, t, 0);
	if (c->leaves && c->free) {
		put_thread(w, 0x89, v, CONTEXT_TOP);
	} else if (c->leaves) {
		put_thread(w, 0x83, 5, CONTEXT_TOP); /* subq */
		put_byte(w, ENTRY);
	}
	put_add_one(w, c, t);
	if (!kept)
		return;
	put_pop(w, t);
	put_memory(w, 0x8d, SP_HARDWARE, SP_HARDWARE, RED_ZONE);
}

/* Without a change of flags it takes three instructions: a signal handler that comes in between, and counts the same, is
   not seen. */
static void put_count(struct writer *w, const struct write_counter *c)
{
	if (c->in_record) {
		put_record_count(w, c);
		return;
	}
	if (!c->free) {
		put_counter(w, 0xff, 0, c); /* incq */
		return;
	}
	unsigned t = hardware_of(c->free);
	put_counter(w, 0x8b, t, c);
	put_memory(w, 0x8d, t, t, 1);
	put_counter(w, 0x89, t, c);
}

/* ---- contexts ---- */

/* A call by a word of the thread. It is told more by NOPs. */
static void put_ask(struct writer *w, int32_t word, const int32_t *told, size_t count)
{
	put(w, "\x65\xff\x14\x25", 4);
	put_word(w, word);
	for (size_t i = 0; i < count; i++) {
		put(w, "\x0f\x1f\x80", 3);
		put_word(w, told[i]);
	}
}

static void put_enter_ask(struct writer *w, int32_t word, bool counts_calls)
{
	const struct write_input *in = w->in;
	const int32_t told[] = {(int32_t)in->function, (int32_t)(1 + in->sums->words),
				(int32_t)(in->slots | (counts_calls ? UINT32_C(1) << 31 : 0) |
					  (in->keeps_record ? UINT32_C(1) << 30 : 0))};
	put_ask(w, word, told, 3);
}

/* The record is in u. Who comes in between finds a record in the entry, and writes there, too: so it is written twice. */
static void put_new_entry(struct writer *w, unsigned s, unsigned u)
{
	put_memory(w, 0x89, SP_HARDWARE, s, ENTRY + 8);
	put_memory(w, 0x89, u, s, ENTRY);
	put_memory(w, 0x8d, s, s, ENTRY);
	put_thread(w, 0x89, s, CONTEXT_TOP);
	put_memory(w, 0x89, SP_HARDWARE, s, 8);
	put_memory(w, 0x89, u, s, 0);
}

/* test reg, reg */
static void put_test(struct writer *w, unsigned reg)
{
	put_rex(w, reg, 0, reg);
	put_byte(w, 0x85);
	put_byte(w, 0xc0 | (reg & 7) << 3 | (reg & 7));
}

struct scratch { /* registers for code at the entry: of these, some are kept in the red zone, which is nobody's yet */
	unsigned s, u, v;
	unsigned kept[3];
	unsigned kept_count;
};

static unsigned take_scratch(struct scratch *x, uint32_t *free, uint32_t *others)
{
	uint32_t *from = *free ? free : others;
	unsigned reg = hardware_of(*from);
	if (from == others)
		x->kept[x->kept_count++] = reg;
	*from &= *from - 1;
	return reg;
}

static struct scratch find_scratch(uint32_t free)
{
	const uint32_t never = 1u << RSP | 1u << R11;
	uint32_t left = free & ~never, others = 0xffff & ~free & ~never;
	struct scratch x = {0};
	x.s = take_scratch(&x, &left, &others);
	x.u = take_scratch(&x, &left, &others);
	x.v = free >> R11 & 1 ? hardware(R11) : take_scratch(&x, &left, &others);
	return x;
}

static void put_kept(struct writer *w, const struct scratch *x, bool back)
{
	for (unsigned i = 0; i < x->kept_count; i++)
		put_memory(w, back ? 0x8b : 0x89, x->kept[i], SP_HARDWARE, -8 * (int32_t)(i + 2));
}

/* u: what the function's cache has for who has called it, if that was by a way that tells nothing. Returns from where code
   jumps that has found nothing: to `asks`. */
static void put_look(struct writer *w, const struct scratch *x, size_t asks[4])
{
	const struct write_input *in = w->in;
	const unsigned s = x->s, u = x->u, v = x->v;
	int64_t cache = 8 * ((int64_t)in->function + 1 + (int64_t)in->sums->words + in->slots);
	put_thread(w, 0x8b, s, CONTEXT_TOP);
	put_memory(w, 0x39, SP_HARDWARE, s, 8); /* cmp %rsp,8(s) */
	asks[0] = put_short(w, 0x76);           /* jbe */
	put_memory(w, 0x8b, v, SP_HARDWARE, 0);
	put_memory(w, 0x8b, u, s, 0);
	put_rex(w, v, 0, u); /* add */
	put_byte(w, 0x01);
	put_byte(w, 0xc0 | (v & 7) << 3 | (u & 7));
	put_rex(w, 0, 0, u); /* and */
	put_byte(w, 0x81);
	put_byte(w, 0xe0 | (u & 7));
	put_word(w, 8 * (CONTEXTS_CACHE - 1));
	put_byte(w, 0x65);
	put_memory(w, 0x8b, u, u, (int32_t)cache);
	put_test(w, u);
	asks[1] = put_short(w, 0x74);
	put_memory(w, 0x39, v, u, HEAD(from));
	asks[2] = put_short(w, 0x75);
	put_memory(w, 0x8b, v, s, 0);
	put_memory(w, 0x39, v, u, HEAD(parent));
	asks[3] = put_short(w, 0x75);
	put_memory(w, 0x8b, u, u, HEAD(record));
}

/* The function has its record, in u. */
static void put_entered(struct writer *w, const struct write_enter *e, const struct scratch *x)
{
	if (!w->in->keeps_record)
		put_new_entry(w, x->s, x->u);
	else
		put_memory(w, 0x8d, hardware(R11), x->u, 0);
	if (e->counts_calls)
		put_memory(w, 0xff, 0, x->u, 0); /* incq */
	put_kept(w, x, true);
}

static void put_enter(struct writer *w, const struct write_enter *e)
{
	struct scratch x = find_scratch(e->free);
	size_t asks[4];
	put_kept(w, &x, false);
	put_look(w, &x, asks);
	size_t found = put_far(w);
	for (unsigned i = 0; i < 4; i++)
		end_short(w, asks[i]);
	put_kept(w, &x, true);
	put_enter_ask(w, CONTEXT_ENTER, e->counts_calls);
	size_t asked = put_far(w);
	w->out->direct = (uint32_t)w->code.size;
	put_kept(w, &x, false);
	put_thread(w, 0x8b, x.s, CONTEXT_TOP);
	put_memory(w, 0x8b, x.u, x.s, 0);
	put_base_indexed(w, 0x8b, x.u, x.u, 0, hardware(R11), 0);
	put_test(w, x.u);
	size_t known = put_short(w, 0x75);
	put_kept(w, &x, true);
	put_enter_ask(w, CONTEXT_ENTER_DIRECT, e->counts_calls);
	size_t told = put_far(w);
	end_short(w, known);
	end_far(w, found);
	put_entered(w, e, &x);
	end_far(w, told);
	end_far(w, asked);
}

static void put_check(struct writer *w, uint32_t free, bool by_fp, int32_t distance)
{
	const int32_t told[] = {(int32_t)w->in->function, distance, by_fp};
	unsigned base = by_fp ? FP_HARDWARE : SP_HARDWARE;
	size_t good = 0;
	free &= ~(1u << RSP);
	if (free) {
		unsigned t = hardware_of(free);
		put_thread(w, 0x8b, t, CONTEXT_TOP);
		put_memory(w, 0x8b, t, t, 8);
		put_rex(w, base, 0, t); /* sub */
		put_byte(w, 0x29);
		put_byte(w, 0xc0 | base << 3 | (t & 7));
		put_rex(w, 0, 0, t); /* cmp */
		put_byte(w, 0x81);
		put_byte(w, 0xf8 | (t & 7));
		put_word(w, distance);
		good = put_short(w, 0x74);
	}
	put_ask(w, CONTEXT_CHECK, told, 3);
	if (free)
		end_short(w, good);
}

static void put_slot(struct writer *w, uint32_t slot)
{
	put(w, "\x41\xbb", 2); /* movl, r11d */
	put_word(w, (int32_t)(8 * (1 + w->in->sums->words + slot)));
}

/* ---- instructions of the function ---- */

struct decoded {
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	uint64_t address;
	const uint8_t *code;
};

static bool decode(struct writer *w, uint32_t insn, struct decoded *out)
{
	ZydisDecoder decoder;
	size_t size = 0;
	out->address = w->in->live->insns[insn].address;
	out->code = image_bytes_at(w->in->image, out->address, &size);
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (out->code &&
	    ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, out->code, size, &out->in, out->ops)))
		return true;
	w->refused = "some of its bytes are no instruction";
	return false;
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

/* Sets what an operand refers to that is somewhere else for the copy. */
static void put_operand(struct writer *w, size_t at, const struct decoded *d,
			const ZydisDecodedOperand *op)
{
	uint64_t to = referred(d, op);
	struct table *t = to ? writer_table_at(w, to) : NULL;
	bool by_pc = to && op->mem.base == ZYDIS_REGISTER_RIP;
	if (by_pc && !t && writer_is_own_code(w, to))
		w->refused = "it takes addresses of its own code";
	if (!by_pc && !t)
		return;
	uint64_t target = t ? t->to : to;
	int64_t word = by_pc ? (int64_t)(target - (w->in->address + at + d->in.length))
			     : (int64_t)(target + w->in->bias);
	const int32_t bytes = (int32_t)word;
	if (bytes != word)
		w->refused = "what it refers to is out of reach";
	if (t)
		t->used++;
	memcpy(w->code.data + at + d->in.raw.disp.offset, &bytes, sizeof bytes);
}

static void put_moved(struct writer *w, uint32_t insn)
{
	struct decoded d;
	size_t at = w->code.size;
	if (!decode(w, insn, &d))
		return;
	put(w, d.code, d.in.length);
	for (unsigned i = 0; i < d.in.operand_count_visible && !w->code.failed; i++)
		put_operand(w, at, &d, &d.ops[i]);
	/* By a table that was not found: it may be the one of a switch. */
	if (d.in.mnemonic == ZYDIS_MNEMONIC_JMP && d.ops[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
	    d.ops[0].mem.index != ZYDIS_REGISTER_NONE &&
	    !writer_table_at(w, referred(&d, &d.ops[0])))
		w->refused = "where a jump goes is not known";
}

static void put_call(struct writer *w, uint32_t insn)
{
	struct decoded d;
	size_t at = w->code.size;
	if (!decode(w, insn, &d))
		return;
	put(w, d.code, d.in.raw.imm[0].offset);
	put_call_distance(w, w->in->live->insns[insn].target);
	size_t rest = d.in.length - (w->code.size - at);
	put(w, d.code + d.in.length - rest, rest);
}

/* Whether its opcode says the condition. */
static bool is_usual(const ZydisDecodedInstruction *in)
{
	return in->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT ? in->opcode >> 4 == 7
							  : in->opcode >> 4 == 8;
}

static size_t put_unless(struct writer *w, uint32_t insn)
{
	struct decoded d;
	if (!decode(w, insn, &d))
		return 0;
	unsigned opcode = d.in.opcode;
	if (is_usual(&d.in)) {
		put_byte(w, 0x0f);
		put_byte(w, 0x80 | ((opcode & 0xf) ^ 1));
	} else if (opcode >= 0xe0 && opcode <= 0xe3 && d.in.raw.imm[0].size == 8) {
		/* loop, jrcxz: over the jump that is taken else. */
		put(w, d.code, d.in.length - 1);
		put_byte(w, 5);
		put_byte(w, 0xe9);
	} else {
		w->refused = "it has a branch that cannot be moved";
	}
	put_word(w, 0);
	return w->code.size - 4;
}

static void end_unless(struct writer *w, size_t from)
{
	if (!w->code.failed && !w->refused)
		fix(w, (uint32_t)from, (uint32_t)w->code.size);
}

static bool put_if(struct writer *w, uint32_t insn, uint32_t block)
{
	struct decoded d;
	if (!decode(w, insn, &d) || !is_usual(&d.in))
		return false;
	put_byte(w, 0x0f);
	put_byte(w, 0x80 | (d.in.opcode & 0xf));
	put_label(w, block);
	return true;
}

static const char *check_table(struct writer *w, struct table *t)
{
	const struct graph_table *of = t->of;
	t->size = of->entry_size;
	if (of->entry_size == 8)
		return image_type(w->in->image) != ET_EXEC ? WRITE_NO_TABLE : NULL;
	bool usual = of->entry_size == 4 && of->base == of->table && of->is_signed && !of->shift;
	return usual ? NULL : WRITE_NO_TABLE;
}

/* ---- from outside ---- */

static void aim(uint8_t *code, uint64_t from, uint64_t to)
{
	int32_t distance = (int32_t)(to - (from + sizeof distance));
	memcpy(code, &distance, sizeof distance);
}

static const char *enter(const struct write_entry *e, struct write_jump *out)
{
	size_t skip = e->size >= 4 + JUMP && !memcmp(e->code, ENDBR, 4) ? 4 : 0;
	if (e->size < JUMP)
		return "it is too small for a jump";
	*out = (struct write_jump){.at = e->address + skip, .size = JUMP, .bytes = {0xe9}};
	int64_t distance = (int64_t)(e->copy - (out->at + JUMP));
	if (distance != (int32_t)distance)
		return "its copy is out of reach";
	aim(out->bytes + 1, out->at + 1, e->copy);
	return NULL;
}

const struct write_cpu write_x86_64 = {
	.elf_machine = EM_X86_64,
	.use = &use_x86_64,
	.reach = (UINT64_C(1) << 31) - (UINT64_C(16) << 20),
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
	.slot_register = R11,
	.put_enter = put_enter,
	.put_check = put_check,
	.put_slot = put_slot,
	.aim = aim,
	.enter = enter,
};
