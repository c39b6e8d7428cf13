/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a coroutine leaves for another: hand-written code that saves registers on its stack, takes the
 * other's SP and loads from there what that one saved the same way (Ruby's coroutine_transfer, Boost's
 * jump_fcontext, …).
 *
 *    push %rbp; push %rbx; …         stp x19,x20,[sp,#64]; …
 *    mov  %rsp,(%rdi)                mov x2,sp; str x2,[x0]
 *    mov  (%rsi),%rsp                ldr x3,[x1]; mov sp,x3       from here on it is the other one
 *    …; pop %rbx; pop %rbp           …; ldp x19,x20,[sp,#64]; …
 *    ret                             ret
 *
 * An analysis that follows one procedure has its old frame there, or none. It is told from all else that sets SP by
 * what is loaded: the same registers from the same places.
 */
#include <stdbool.h>
#include <string.h>

#include "isa/insn.h"
#include "recipes/rows.h"
#include "recipes/shapes_cpu.h"

#define INSNS_MAX 40u /* on one side of the switch */
#define SAVES_MAX 120 /* bytes of code: how far back they are looked for */
#define WORDS_MAX 32u
#define SAME_MIN 5u /* registers */

/* Words of the stack and the registers that are in them. Offsets are from SP at the switch. */
struct words {
	unsigned count;
	struct {
		uint8_t reg;
		int64_t offset;
	} at[WORDS_MAX];
};

struct switching {
	const struct isa *isa;
	const uint8_t *code;
	size_t size;
	uint64_t address;
	struct rows *rows;
	struct words saved, loaded;
	size_t begin, end; /* of the code behind the switch */
	int64_t all;       /* bytes from SP there to the other's SP when it goes on */
	uint8_t through;   /* register that the last jump or return goes through; or none */
	bool stored_sp;    /* its own SP was put into memory */
	uint32_t copies;   /* and into these registers */
};

static void decode(const struct switching *s, size_t at, struct insn *insn)
{
	if (at < s->size)
		s->isa->decode(s->code + at, s->size - at, s->address + at, insn);
	else
		*insn = (struct insn){.kind = INSN_BAD, .length = 1};
}

static void add_word(struct words *words, uint8_t reg, int64_t offset)
{
	if (reg < 32 && words->count < WORDS_MAX) {
		words->at[words->count].reg = reg;
		words->at[words->count++].offset = offset;
	}
}

static bool find_register(const struct words *words, uint8_t reg, int64_t *offset)
{
	for (unsigned i = 0; i < words->count; i++)
		if (words->at[i].reg == reg) {
			*offset = words->at[i].offset;
			return true;
		}
	return false;
}

static bool is_saved(const struct words *words, uint8_t reg, int64_t offset)
{
	for (unsigned i = 0; i < words->count; i++)
		if (words->at[i].reg == reg && words->at[i].offset == offset)
			return true;
	return false;
}

/* What an instruction does to SP, *moved bytes from where it was, and to words near it. False where SP becomes
   something else. */
static bool follow(const struct isa *isa, const struct insn *insn, int64_t *moved,
		   struct words *saved, struct words *loaded)
{
	if (insn->writes >> isa->sp & 1)
		return false;
	for (unsigned i = 0; i < insn->effect_count; i++) {
		const struct effect *e = &insn->effects[i];
		if (e->op == EFFECT_STORE && e->dst == isa->sp && saved)
			add_word(saved, e->src, *moved + e->imm);
		else if (e->op == EFFECT_LOAD && e->src == isa->sp && loaded)
			add_word(loaded, e->dst, *moved + e->imm);
		if (e->op == EFFECT_STORE || e->dst != isa->sp || e->op == EFFECT_COMPARE)
			continue;
		if (e->op != EFFECT_MOVE || e->src != isa->sp)
			return false;
		*moved += e->imm;
	}
	return true;
}

static bool is_straight(const struct insn *insn)
{
	return insn->kind == INSN_OTHER || insn->kind == INSN_NOP;
}

/* From the switch to where the other one goes on. */
static bool read_loads(struct switching *s)
{
	const struct isa *isa = s->isa;
	size_t at = s->begin;
	int64_t moved = 0;
	struct insn insn;
	s->loaded.count = 0;
	for (unsigned i = 0; i < INSNS_MAX; i++, at += insn.length) {
		decode(s, at, &insn);
		if (!is_straight(&insn))
			break;
		if (!follow(isa, &insn, &moved, NULL, &s->loaded))
			return false;
	}
	s->end = at + insn.length;
	s->through = INSN_NO_REG;
	s->all = moved;
	if (insn.kind == INSN_RETURN && isa->link == INSN_NO_REG) {
		s->all += isa->call_pushes;
		return true;
	}
	s->through = insn.reg;
	int64_t offset;
	return (insn.kind == INSN_RETURN || insn.kind == INSN_JUMP_INDIRECT) &&
	       insn.reg != INSN_NO_REG && find_register(&s->loaded, insn.reg, &offset);
}

/* Where an instruction puts SP. */
static void note_copies(struct switching *s, const struct insn *insn)
{
	const uint8_t sp = s->isa->sp;
	for (unsigned i = 0; i < insn->effect_count; i++) {
		const struct effect *e = &insn->effects[i];
		if (e->op == EFFECT_STORE && e->src == sp && e->dst != sp)
			s->stored_sp = true;
		else if (e->op == EFFECT_MOVE && e->src == sp && e->dst != sp && e->dst < 32)
			s->copies |= 1u << e->dst;
	}
}

/* From `from` to the switch, at `to`. */
static bool read_saves(struct switching *s, size_t from, size_t to)
{
	int64_t moved = 0;
	struct insn insn;
	s->saved.count = 0;
	s->stored_sp = false;
	s->copies = 0;
	while (from < to) {
		decode(s, from, &insn);
		if (!is_straight(&insn) || !follow(s->isa, &insn, &moved, &s->saved, NULL))
			return false;
		note_copies(s, &insn);
		from += insn.length;
	}
	for (unsigned i = 0; i < s->saved.count; i++)
		s->saved.at[i].offset -= moved;
	return from == to && (s->stored_sp || s->copies);
}

/* Is what was saved what is loaded, but for what it goes on through? */
static bool is_same(const struct switching *s)
{
	const struct isa *isa = s->isa;
	unsigned same = 0;
	for (unsigned i = 0; i < s->loaded.count; i++) {
		uint8_t reg = s->loaded.at[i].reg;
		int64_t offset = s->loaded.at[i].offset;
		bool kept = reg == isa->fp || isa->kept >> reg & 1;
		same += kept && is_saved(&s->saved, reg, offset);
		if (kept && !is_saved(&s->saved, reg, offset))
			return false;
		if (reg == s->through && isa->link != INSN_NO_REG &&
		    !is_saved(&s->saved, isa->link, offset))
			return false;
	}
	return same >= SAME_MIN;
}

static struct recipe recipe_at(const struct switching *s, const struct words *done, int64_t moved)
{
	const struct isa *isa = s->isa;
	struct recipe r = {.cfa = RECIPE_SPECIAL,
			   .cfa_vg = RECIPE_RESUMES,
			   .cfa_reg = isa->sp,
			   .cfa_offset = (int32_t)(s->all - moved),
			   .ra = RECIPE_AT_CFA,
			   .ra_offset = -(int32_t)isa->call_pushes,
			   .source = RECIPE_FROM_SHAPE};
	int64_t offset;
	if (s->through != INSN_NO_REG && find_register(done, s->through, &offset)) {
		r.ra = RECIPE_IN_REG;
		r.ra_offset = s->through;
	} else if (s->through != INSN_NO_REG && find_register(&s->loaded, s->through, &offset)) {
		r.ra = RECIPE_AT_SP;
		r.ra_offset = (int32_t)(offset - moved);
	}
	if (!find_register(done, isa->fp, &offset) && find_register(&s->loaded, isa->fp, &offset)) {
		r.fp = RECIPE_AT_SP;
		r.fp_offset = (int32_t)(offset - moved);
	}
	if (!find_register(done, isa->extra, &offset) &&
	    find_register(&s->loaded, isa->extra, &offset)) {
		r.extra = RECIPE_AT_SP;
		r.extra_offset = (int32_t)(offset - moved);
	}
	return r;
}

static void add_rows(const struct switching *s)
{
	struct words done = {0};
	int64_t moved = 0;
	struct insn insn;
	for (size_t at = s->begin; at < s->end; at += insn.length) {
		decode(s, at, &insn);
		struct recipe r = recipe_at(s, &done, moved);
		rows_add(s->rows, s->address + at, s->address + at + insn.length,
			 rows_rule(s->rows, &r));
		follow(s->isa, &insn, &moved, NULL, &done);
	}
}

/* Is the instruction at `at` one that takes SP from elsewhere? */
static bool takes_sp(const struct switching *s, size_t at, size_t *next, uint32_t *from)
{
	const struct isa *isa = s->isa;
	struct insn insn;
	decode(s, at, &insn);
	const struct effect *e = &insn.effects[0];
	*next = at + insn.length;
	*from = e->src < 32 ? 1u << e->src : 0;
	return insn.kind == INSN_OTHER && insn.effect_count == 1 && e->dst == isa->sp &&
	       (e->op == EFFECT_LOAD || (e->op == EFFECT_MOVE && !e->imm)) && e->src != isa->sp &&
	       e->src != isa->fp;
}

static void add_switch(struct switching *s, size_t at)
{
	uint32_t taken;
	if (!takes_sp(s, at, &s->begin, &taken) || !read_loads(s))
		return;
	size_t from = at < SAVES_MAX ? 0 : at - SAVES_MAX;
	for (from += (at - from) % s->isa->insn_min; from < at; from += s->isa->insn_min)
		if (read_saves(s, from, at) && !(s->copies & taken) && is_same(s)) {
			add_rows(s);
			return;
		}
}

/* Quick, and wrong now and then: is it mov sp,xN? */
static bool may_take_sp_aarch64(const uint8_t *code)
{
	uint32_t word;
	memcpy(&word, code, sizeof word);
	return (word & 0xfffffc1f) == 0x9100001f;
}

/* mov …,%rsp */
static bool may_take_sp_x86(const uint8_t *code)
{
	return ((code[0] & 0xfc) == 0x48 && code[1] == 0x8b && (code[2] & 0x38) == 0x20) ||
	       ((code[0] & 0xfb) == 0x48 && code[1] == 0x89 && (code[2] & 0xc7) == 0xc4);
}

void shapes_add_switches(const struct isa *isa, const uint8_t *code, size_t size, uint64_t address,
			 struct rows *rows)
{
	struct switching s = {
		.isa = isa, .code = code, .size = size, .address = address, .rows = rows};
	bool arm = isa->insn_min == 4;
	for (size_t at = 0; size >= 4 && at <= size - 4; at += isa->insn_min)
		if (arm ? may_take_sp_aarch64(code + at) : may_take_sp_x86(code + at))
			add_switch(&s, at);
}
