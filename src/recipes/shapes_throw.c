/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that leaves for another frame than its caller's.
 *
 * libgcc's unwinder ends in `uw_install_context`: a function copies the handler's registers into
 * where _Unwind_RaiseException (and _Unwind_Resume, …) has saved its caller's, the return address among
 * them; then the epilogue restores them, adds to SP what lies between the two frames
 * (__builtin_eh_return) and jumps. From the first copied word on the caller is gone, and what the
 * unwind information says of it is a mix of two frames. But all the while the handler's frame is
 * described by an object in the unwinder's own frame (struct _Unwind_Context), which does not
 * change any more: its SP and PC, and for each register the address of the word that has it.
 *
 *    words of reg[], by DWARF number; then cfa, ra, lsda, tbase, dbase, func, flags, version, args_size
 *
 * So from that call on the walk goes to the handler, as the program is about to. The code tells
 * where the object is: `cfa` and `ra` are loaded right after the call, for the debugger's hook.
 *
 * LLVM's unwinder has the handler's registers in an object, too, from which a function in assembly
 * loads all of them (Registers_…::jumpto).
 *
 * OCaml raises by setting SP to where the innermost handler is; what it needs is popped there.
 */
#include <elf.h>
#include <stdbool.h>
#include <string.h>

#include "isa/insn.h"
#include "recipes/rows.h"
#include "recipes/shapes_cpu.h"

#define CONTEXT_RA 8         /* from cfa on */
#define CONTEXT_ARGS_SIZE 64 /* the same */
#define NEAR_INSNS 8
#define REACH 2048 /* bytes: what belongs to one function */

struct throwing {
	const struct isa *isa;
	const uint8_t *code;
	size_t size;
	uint64_t address;
	struct rows *rows;
	int32_t context_words; /* of reg[] */
};

static void add_row(const struct throwing *t, size_t start, size_t end, struct recipe recipe)
{
	recipe.cfa = RECIPE_SPECIAL;
	recipe.cfa_vg |= RECIPE_RESUMES;
	recipe.source = RECIPE_FROM_SHAPE;
	rows_add(t->rows, t->address + start, t->address + end, rows_rule(t->rows, &recipe));
}

static void decode(const struct throwing *t, size_t at, struct insn *insn)
{
	if (at < t->size)
		t->isa->decode(t->code + at, t->size - at, t->address + at, insn);
	else
		*insn = (struct insn){.kind = INSN_BAD, .length = 1};
}

/* The handler's frame, by the context whose cfa is at `base` + `cfa`. */
static void add_context(const struct throwing *t, size_t start, size_t end, uint8_t base,
			int32_t cfa)
{
	int32_t registers = cfa - 8 * t->context_words;
	add_row(t, start, end,
		(struct recipe){
			.cfa_reg = base,
			.cfa_vg = RECIPE_WORD | RECIPE_WORD_MORE,
			.cfa_offset = cfa,
			.cfa_add = cfa + CONTEXT_ARGS_SIZE,
			.ra = RECIPE_AT_BASE,
			.ra_offset = cfa + CONTEXT_RA,
			.fp = RECIPE_VIA_BASE,
			.fp_offset = registers + 8 * t->isa->fp,
			.extra = RECIPE_VIA_BASE,
			.extra_offset = registers + 8 * t->isa->extra,
		});
}

/* Is there an instruction nearby that computes `base` + `offset`? The address of the context. */
static bool is_computed(const struct throwing *t, size_t at, uint8_t base, int32_t offset)
{
	size_t from = at < REACH ? 0 : at - REACH;
	for (; from < at; from += t->isa->insn_min) {
		struct insn insn;
		decode(t, from, &insn);
		const struct effect *e = &insn.effects[0];
		if (insn.effect_count == 1 && e->op == EFFECT_MOVE && e->src == base &&
		    e->dst != base && e->imm == offset)
			return true;
	}
	return false;
}

/*
 * Does `at` call what installs a context? Then two words that follow each other are loaded, cfa and
 * ra, before the next call. *cfa is where, *next that call.
 */
static bool is_install(const struct throwing *t, size_t at, uint8_t base, int32_t *cfa,
		       size_t *next)
{
	struct insn insn;
	int64_t loaded[2];
	unsigned count = 0;
	decode(t, at, &insn);
	if (insn.kind != INSN_CALL)
		return false;
	for (unsigned i = 0; i < NEAR_INSNS; i++) {
		at += insn.length;
		decode(t, at, &insn);
		if (insn.kind == INSN_CALL)
			break;
		if (insn.kind != INSN_OTHER && insn.kind != INSN_NOP)
			return false;
		for (unsigned k = 0; k < insn.effect_count; k++) {
			const struct effect *e = &insn.effects[k];
			if (e->op == EFFECT_LOAD && e->src == base && count < 2)
				loaded[count++] = e->imm;
		}
	}
	if (insn.kind != INSN_CALL || count != 2)
		return false;
	int64_t low = loaded[0] < loaded[1] ? loaded[0] : loaded[1];
	if (loaded[0] + loaded[1] != 2 * low + 8 || low < -(1 << 20) || low > 1 << 20)
		return false;
	*cfa = (int32_t)low;
	*next = at;
	return is_computed(t, at, base, *cfa - 8 * t->context_words);
}

/* ---- x86-64 ---- */

#define X86_RCX 2
#define X86_RDI 5
#define X86_R11 11
#define X86_R14 14

/* mov 0(%rbp),%rbp; mov %rcx,%rsp; pop %rcx; jmp *%rcx, or with ret as the end. */
static void add_last_x86(const struct throwing *t, size_t at)
{
	const uint8_t sp = t->isa->sp;
	bool pops = t->code[at + 7] == 0x59;
	add_row(t, at + 4, at + 7,
		(struct recipe){
			.cfa_reg = X86_RCX, .cfa_offset = 8, .ra = RECIPE_AT_CFA, .ra_offset = -8});
	add_row(t, at + 7, at + 8,
		(struct recipe){
			.cfa_reg = sp, .cfa_offset = 8, .ra = RECIPE_AT_CFA, .ra_offset = -8});
	if (pops)
		add_row(t, at + 8, at + 10,
			(struct recipe){.cfa_reg = sp, .ra = RECIPE_IN_REG, .ra_offset = X86_RCX});
}

/* Do instructions from `from` on lead to `to`? */
static bool leads_to(const struct throwing *t, size_t from, size_t to)
{
	struct insn insn;
	while (from < to) {
		decode(t, from, &insn);
		if (insn.kind == INSN_BAD || insn.kind == INSN_RETURN || !insn.length)
			return false;
		from += insn.length;
	}
	return from == to;
}

static void add_throws_x86(const struct throwing *t)
{
	static const char last[] = "\x48\x8b\x6d\x00\x48\x89\xcc";
	const uint8_t *from = t->code, *found, *end = t->code + t->size;
	while ((found = memmem(from, (size_t)(end - from), last, sizeof last - 1))) {
		size_t at = (size_t)(found - t->code), next;
		int32_t cfa;
		from = found + 1;
		if (t->size - at < 11 ||
		    (found[7] != 0xc3 &&
		     (found[7] != 0x59 || found[8] != 0xff || found[9] != 0xe1)))
			continue;
		for (size_t back = 5; back < 400 && back <= at; back++) {
			size_t call = at - back;
			if (t->code[call] != 0xe8 ||
			    !is_install(t, call, t->isa->fp, &cfa, &next) || !leads_to(t, call, at))
				continue;
			add_context(t, call, at + 4, t->isa->fp, cfa);
			add_last_x86(t, at);
			break;
		}
	}
}

/*
 * OCaml on x86-64, where r14 is the state of the runtime: N(%r14) is where the innermost handler is,
 * two words: the handler before it, and the address of its code.
 *
 *    mov N(%r14),%rsp; pop N(%r14); [mov M(%r14),%r15;] ret
 *    mov N(%r14),%rsp; pop N(%r14); pop %r11; jmp *%r11
 *
 * *end is what comes after it. False where `at` is something else.
 */
static bool is_raise_x86(const struct throwing *t, size_t at, size_t *end)
{
	const uint8_t *code = t->code + at;
	if (t->size < 16 || at > t->size - 16 || memcmp(code, "\x49\x8b\x66", 3) ||
	    memcmp(code + 4, "\x41\x8f\x46", 3) || code[3] != code[7])
		return false;
	bool loads = !memcmp(code + 8, "\x4d\x8b\x7e", 3);
	*end = at + (loads ? 13 : 9);
	if (t->code[*end - 1] == 0xc3)
		return true;
	*end = at + 13;
	return !memcmp(code + 8, "\x41\x5b\x41\xff\xe3", 5);
}

static void add_raise_x86(const struct throwing *t, size_t at, size_t end)
{
	struct recipe r = {
		.cfa_reg = t->isa->sp, .cfa_offset = 16, .ra = RECIPE_AT_CFA, .ra_offset = -8};
	bool jumps = t->code[end - 1] != 0xc3;
	add_row(t, at + 4, at + 8, r);
	r.cfa_offset = 8;
	add_row(t, at + 8, jumps ? at + 10 : end, r);
	if (jumps)
		add_row(t, at + 10, end,
			(struct recipe){
				.cfa_reg = t->isa->sp, .ra = RECIPE_IN_REG, .ra_offset = X86_R11});
}

/* `depth` bytes up to the caller's SP. Where there are none, the return address was popped, and nobody
   writes over it before the next call. */
static void add_depth_x86(const struct throwing *t, size_t start, size_t end, int32_t depth)
{
	const struct recipe r = {.cfa = depth ? RECIPE_REG : RECIPE_SPECIAL,
				 .cfa_reg = t->isa->sp,
				 .cfa_offset = depth,
				 .ra = depth ? RECIPE_AT_CFA : RECIPE_AT_SP,
				 .ra_offset = -8,
				 .source = RECIPE_FROM_SHAPE};
	rows_add(t->rows, t->address + start, t->address + end, rows_rule(t->rows, &r));
}

/* How `insn` moves SP, where it does so by a number. */
static int64_t moves_sp(const struct throwing *t, const struct insn *insn)
{
	int64_t by = 0;
	for (unsigned i = 0; i < insn->effect_count; i++)
		if (insn->effects[i].op == EFFECT_MOVE && insn->effects[i].dst == t->isa->sp &&
		    insn->effects[i].src == t->isa->sp)
			by += insn->effects[i].imm;
	return by;
}

#define NOTING_MAX 64 /* bytes */

/* Where straight code from `at` on comes to another raise, after one call; 0 where it does not. *called
   is behind that. */
static size_t find_noting_x86(const struct throwing *t, size_t at, size_t *called)
{
	size_t from = at, end;
	struct insn insn;
	*called = 0;
	while (at - from < NOTING_MAX && !is_raise_x86(t, at, &end)) {
		decode(t, at, &insn);
		if (insn.kind != INSN_OTHER && (insn.kind != INSN_CALL || *called))
			return 0;
		at += insn.length;
		if (insn.kind == INSN_CALL)
			*called = at;
	}
	return *called && is_raise_x86(t, at, &end) ? at : 0;
}

/*
 * Another raise behind the first: it notes the way that it came, in a call for which the return address may
 * be popped. The unwind information goes on as if the first one had not left.
 */
static void add_noting_x86(const struct throwing *t, size_t at)
{
	int32_t depth = t->isa->call_pushes;
	size_t called, raise = find_noting_x86(t, at, &called), start = at;
	struct insn insn;
	for (; raise && at < called; at += insn.length) {
		decode(t, at, &insn);
		int64_t by = moves_sp(t, &insn);
		if (by > depth || by < -NOTING_MAX)
			return;
		if (by || at + insn.length >= called) {
			add_depth_x86(t, start, at + insn.length, depth);
			start = at + insn.length;
			depth -= (int32_t)by;
		}
	}
	if (raise)
		add_row(t, called, raise + 4,
			(struct recipe){.cfa_reg = X86_R14,
					.cfa_vg = RECIPE_WORD,
					.cfa_offset = (int8_t)t->code[raise + 3],
					.cfa_add = 16,
					.ra = RECIPE_AT_CFA,
					.ra_offset = -8});
}

/* caml_c_call: pop N(%r14); mov %rsp,M(%r14); sub $8,%rsp */
static void add_c_calls_x86(const struct throwing *t)
{
	static const uint8_t store[] = {0x49, 0x89, 0xa6};
	const uint8_t *from = t->code, *found, *end = t->code + t->size;
	while ((found = memmem(from, (size_t)(end - from), store, sizeof store))) {
		size_t at = (size_t)(found - t->code);
		from = found + 1;
		if (at >= 7 && t->size - at >= 11 && !memcmp(found - 7, "\x41\x8f\x86", 3) &&
		    !memcmp(found + 7, "\x48\x83\xec\x08", 4))
			add_depth_x86(t, at, at + 11, 0);
	}
}

/* LLVM's jumpto: rdi is the object, in which rsp is made to point to two words more. */
static void add_jumpto_x86(const struct throwing *t)
{
	static const char first[] = "\x48\x8b\x47\x38\x48\x83\xe8\x10\x48\x89\x47\x38",
			  last[] = "\x48\x8b\x67\x38\x5f";
	const uint8_t *from = t->code, *found, *end = t->code + t->size;
	while ((found = memmem(from, (size_t)(end - from), first, sizeof first - 1))) {
		size_t at = (size_t)(found - t->code), left = t->size - at;
		const uint8_t *loads = memmem(found, left < 160 ? left : 160, last,
					      sizeof last - 1);
		from = found + 1;
		if (!loads || end - loads < 8)
			continue;
		size_t pop = (size_t)(loads - t->code) + 4;
		struct recipe r = {.cfa_reg = X86_RDI,
				   .cfa_vg = RECIPE_WORD,
				   .cfa_offset = 0x38,
				   .ra = RECIPE_AT_BASE,
				   .ra_offset = 0x80,
				   .fp = RECIPE_AT_BASE,
				   .fp_offset = 0x30,
				   .extra = RECIPE_AT_BASE,
				   .extra_offset = 8};
		add_row(t, at, at + 12, r);
		r.cfa_add = 16;
		add_row(t, at + 12, pop, r);
		r = (struct recipe){.cfa_reg = t->isa->sp,
				    .cfa_offset = 16,
				    .ra = RECIPE_AT_CFA,
				    .ra_offset = -8};
		add_row(t, pop, pop + 1, r);
		r.cfa_offset = 8;
		add_row(t, pop + 1, pop + 2, r);
		if (loads[5] == 0x59)
			add_row(t, pop + 2, pop + 4,
				(struct recipe){.cfa_reg = t->isa->sp,
						.ra = RECIPE_IN_REG,
						.ra_offset = X86_RCX});
	}
}

static void add_raises_x86(const struct throwing *t)
{
	static const uint8_t load[] = {0x49, 0x8b, 0x66};
	const uint8_t *from = t->code, *found, *last = t->code + t->size;
	while ((found = memmem(from, (size_t)(last - from), load, sizeof load))) {
		size_t at = (size_t)(found - t->code), end;
		from = found + 1;
		if (!is_raise_x86(t, at, &end))
			continue;
		add_raise_x86(t, at, end);
		add_noting_x86(t, end);
	}
	add_c_calls_x86(t);
}

/* ---- aarch64 ---- */

#define ARM_RET 0xd65f03c0u

static uint32_t word_at(const struct throwing *t, size_t at)
{
	uint32_t word = 0;
	if (at + sizeof word <= t->size)
		memcpy(&word, t->code + at, sizeof word);
	return word;
}

/* The end of a function with __builtin_eh_return: registers are loaded, SP is moved to where it was at the
   entry, then by what is in a register. */
struct epilogue {
	size_t begin; /* at the first load */
	size_t pops;  /* add sp,sp,#… */
	size_t last;  /* add sp,sp,xN */
	int32_t size;
	int32_t ra, fp, extra; /* where they are, from SP on */
	uint8_t reg;
};

/* Reads it backwards from add sp,sp,xN; ret. */
static bool read_epilogue(const struct throwing *t, size_t last, struct epilogue *e)
{
	const struct isa *isa = t->isa;
	size_t at = last;
	struct insn insn;
	*e = (struct epilogue){
		.last = last, .ra = -1, .fp = -1, .extra = -1, .reg = word_at(t, last) >> 16 & 31};
	for (; at >= 4; at -= 4, e->pops = at) {
		decode(t, at - 4, &insn);
		const struct effect *f = &insn.effects[0];
		if (insn.effect_count != 1 || f->op != EFFECT_MOVE || f->dst != isa->sp ||
		    f->src != isa->sp || f->imm <= 0 || f->imm > 1 << 20)
			break;
		e->size += (int32_t)f->imm;
	}
	for (e->begin = at; e->begin >= 4; e->begin -= 4) {
		decode(t, e->begin - 4, &insn);
		bool loads = word_at(t, e->begin - 4) >> 26 ==
			     0x1b; /* ldp of doubles: no effects */
		for (unsigned i = 0; i < insn.effect_count; i++) {
			const struct effect *f = &insn.effects[i];
			if (f->op != EFFECT_LOAD || f->src != isa->sp)
				return e->size && e->ra >= 0 && e->fp >= 0;
			loads = true;
			int32_t *to = f->dst == isa->link    ? &e->ra
				      : f->dst == isa->fp    ? &e->fp
				      : f->dst == isa->extra ? &e->extra
							     : NULL;
			if (to)
				*to = (int32_t)f->imm;
		}
		if (!loads)
			break;
	}
	return e->size && e->ra >= 0 && e->fp >= 0;
}

/* From where the way of an exception comes to it: the handler's PC is in the slot of the return
   address, what SP is to be moved by in a register. All others move it by 0. */
static void add_epilogue(const struct throwing *t, const struct epilogue *e, size_t entered)
{
	const uint8_t sp = t->isa->sp;
	struct recipe r = {.cfa_reg = sp,
			   .cfa_vg = RECIPE_INDEX(e->reg, 0),
			   .cfa_offset = e->size,
			   .ra = RECIPE_AT_SP,
			   .ra_offset = e->ra,
			   .fp = RECIPE_AT_SP,
			   .fp_offset = e->fp,
			   .extra = e->extra < 0 ? RECIPE_SAME : RECIPE_AT_SP,
			   .extra_offset = e->extra < 0 ? 0 : e->extra};
	add_row(t, entered, e->pops + 4, r);
	int32_t left = e->size;
	for (size_t at = e->pops; at < e->last; at += 4) {
		struct insn insn;
		decode(t, at, &insn);
		left -= (int32_t)insn.effects[0].imm;
		add_row(t, at + 4, at + 8,
			(struct recipe){.cfa_reg = sp,
					.cfa_vg = RECIPE_INDEX(e->reg, 0),
					.cfa_offset = left});
	}
	add_row(t, e->last + 4, e->last + 8, (struct recipe){.cfa_reg = sp});
}

/* Where str xN,[x29,#8] puts the handler's PC over the return address: true where that leads to the epilogue,
   *entered is where, *end what lies before. */
static bool enters_epilogue(const struct throwing *t, size_t store, const struct epilogue *e,
			    size_t *entered, size_t *end)
{
	struct insn insn;
	decode(t, store + 4, &insn);
	*end = store + 4;
	*entered = store + 4;
	if (insn.kind == INSN_JUMP) {
		*end = store + 8;
		*entered = (size_t)(insn.target - t->address);
	}
	return *entered <= e->begin && e->begin - *entered <= 4 * NEAR_INSNS;
}

static void add_throw_aarch64(const struct throwing *t, const struct epilogue *e)
{
	size_t from = e->last < REACH ? 0 : e->last - REACH, to = e->last + REACH;
	for (size_t store = from; store < to && store + 8 <= t->size; store += 4) {
		size_t entered, end, next;
		int32_t cfa;
		if ((word_at(t, store) & ~31u) != 0xf90007a0 ||
		    !enters_epilogue(t, store, e, &entered, &end))
			continue;
		for (size_t back = 4; back <= 8 * NEAR_INSNS && back <= store; back += 4) {
			if (!is_install(t, store - back, t->isa->sp, &cfa, &next) || next > store)
				continue;
			add_context(t, store - back, end, t->isa->sp, cfa);
			add_epilogue(t, e, entered);
			return;
		}
	}
}

/* mov sp,x26; ldr x16,[sp,#8]; ldr x26,[sp],#16; br x16: in x26 is where the handler is. */
static void add_raise_aarch64(const struct throwing *t, size_t at)
{
	const uint8_t sp = t->isa->sp;
	struct recipe r = {.cfa_reg = 26, .cfa_offset = 16, .ra = RECIPE_AT_CFA, .ra_offset = -8};
	if (word_at(t, at + 4) != 0xf94007f0 || word_at(t, at + 8) != 0xf84107fa ||
	    word_at(t, at + 12) != 0xd61f0200)
		return;
	add_row(t, at, at + 4, r);
	/* bl …; mov x0,x19; b: come back from noting the way that it came, the return address is lost. */
	for (size_t back = at + 16; back < at + 16 + 4 * NEAR_INSNS; back += 4) {
		struct insn insn;
		decode(t, back + 4, &insn);
		if (word_at(t, back) == 0xaa1303e0 && insn.kind == INSN_JUMP &&
		    insn.target == t->address + at)
			add_row(t, back, back + 8, r);
	}
	r.cfa_reg = sp;
	add_row(t, at + 4, at + 12, r);
	add_row(t, at + 12, at + 16,
		(struct recipe){.cfa_reg = sp, .ra = RECIPE_IN_REG, .ra_offset = 16});
}

/* LLVM's jumpto: x0 is the object. Here is its end: ldr x16,[x0,#248]; ldp x0,x1,[x0]; mov sp,x16; ret */
static void add_jumpto_aarch64(const struct throwing *t, size_t at)
{
	if (word_at(t, at + 4) != 0xa9400400 || word_at(t, at + 8) != 0x9100021f ||
	    word_at(t, at + 12) != ARM_RET)
		return;
	size_t first = at;
	while (first && at - first < 160 &&
	       word_at(t, first) != 0xa9410c02) /* ldp x2,x3,[x0,#16] */
		first -= 4;
	if (word_at(t, first) != 0xa9410c02)
		return;
	add_row(t, first, at + 8,
		(struct recipe){.cfa_reg = 0,
				.cfa_vg = RECIPE_WORD,
				.cfa_offset = 248,
				.ra = RECIPE_AT_BASE,
				.ra_offset = 256,
				.fp = RECIPE_AT_BASE,
				.fp_offset = 8 * t->isa->fp,
				.extra = RECIPE_AT_BASE,
				.extra_offset = 8 * t->isa->extra});
	add_row(t, at + 8, at + 12, (struct recipe){.cfa_reg = 16});
	add_row(t, at + 12, at + 16, (struct recipe){.cfa_reg = t->isa->sp});
}

static void add_throws_aarch64(const struct throwing *t)
{
	for (size_t at = 0; t->size >= 16 && at <= t->size - 16; at += 4) {
		uint32_t word = word_at(t, at);
		struct epilogue e;
		if (word == 0x9100035f) /* mov sp,x26 */
			add_raise_aarch64(t, at);
		else if (word == 0xf9407c10) /* ldr x16,[x0,#248] */
			add_jumpto_aarch64(t, at);
		else if ((word & ~(31u << 16)) == 0x8b2063ff && word_at(t, at + 4) == ARM_RET &&
			 read_epilogue(t, at, &e))
			add_throw_aarch64(t, &e);
	}
}

void shapes_add_throws(const struct isa *isa, const uint8_t *code, size_t size, uint64_t address,
		       struct rows *rows)
{
	bool arm = isa->elf_machine == EM_AARCH64;
	struct throwing t = {.isa = isa,
			     .code = code,
			     .size = size,
			     .address = address,
			     .rows = rows,
			     .context_words = arm ? 98 : 18};
	if (arm) {
		add_throws_aarch64(&t);
		return;
	}
	add_throws_x86(&t);
	add_jumpto_x86(&t);
	add_raises_x86(&t);
}
