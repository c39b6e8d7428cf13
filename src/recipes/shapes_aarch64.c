/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include "isa/insn.h"
#include "recipes/rows.h"
#include "recipes/shapes_cpu.h"

const struct shape_trampoline trampolines_aarch64[] = {
	{"\x68\x11\x80\xd2\x01\x00\x00\xd4", 8}, /* mov x8,#139; svc #0 */
	{0},
};

/*
 * glibc's lazy binding on aarch64. The PLT has pushed x16 and x30 before it jumps here, of which
 * the unwind information does not know: it says that the caller's SP is 16 bytes too low.
 */
static const struct {
	uint32_t first[2], last[3];
	int32_t pushed;
} resolver = {
	.first = {0xa9b327e8, 0xa9011fe6}, /* stp x8,x9,[sp,#-208]!; stp x6,x7,[sp,#16] */
	.last = {0xa8cd27e8, 0xa8c17bf1,
		 0xd61f0200}, /* ldp x8,x9,[sp],#208; ldp x17,x30,[sp],#16; br x16 */
	.pushed = 208,
};

#define RESOLVER_MAX 256 /* bytes */

/* `size`: bytes up to the caller's SP; 0: all is popped. */
static void add_lazy_frame(struct rows *rows, uint64_t start, uint64_t end, int32_t size)
{
	const struct recipe recipe = {
		.cfa = RECIPE_REG,
		.cfa_reg = isa_aarch64.sp,
		.cfa_offset = size,
		.ra = size ? RECIPE_AT_CFA : RECIPE_SAME,
		.ra_offset = size ? -8 : 0,
		.source = RECIPE_FROM_SHAPE,
	};
	rows_add(rows, start, end, rows_rule(rows, &recipe));
}

/* A function that was started by makecontext returns to this, which nobody calls: nop; mov x0,x19;
   cbnz x0,setcontext; b exit. */
static void add_context_starts(const uint8_t *code, size_t size, uint64_t address,
			       struct rows *rows)
{
	const struct recipe recipe = {.cfa = RECIPE_ROOT, .source = RECIPE_FROM_SHAPE};
	for (size_t at = 0; size >= 16 && at <= size - 16; at += 4) {
		uint32_t word[4];
		memcpy(word, code + at, sizeof word);
		if (word[0] == 0xd503201f && word[1] == 0xaa1303e0 &&
		    (word[2] & 0xff80001f) == 0xb5800000 && (word[3] & 0xfc000000) == 0x14000000)
			rows_add(rows, address + (at ? at - 4 : at), address + at + sizeof word,
				 rows_rule(rows, &recipe));
	}
}

static void add_rule(struct rows *rows, uint64_t start, uint64_t end, struct recipe recipe)
{
	recipe.source = RECIPE_FROM_SHAPE;
	rows_add(rows, start, end, rows_rule(rows, &recipe));
}

/* Where `word` is among those from `from` up to `to`, or `to`. */
static size_t find_word(const uint8_t *code, size_t from, size_t to, uint32_t word)
{
	for (; from < to; from += 4)
		if (!memcmp(code + from, &word, sizeof word))
			break;
	return from;
}

#define CHECK_MAX 256 /* bytes */

/* Whether the function that calls at `call` has a frame of *size bytes with the frame record at its upper end. */
static bool is_record_on_top(const uint8_t *code, uint64_t address, size_t call, int32_t *size)
{
	const struct isa *isa = &isa_aarch64;
	int64_t record = -1;
	struct insn insn;
	for (size_t at = call; at >= 4 && call - at < CHECK_MAX;) {
		at -= 4;
		isa->decode(code + at, 4, address + at, &insn);
		const struct effect *e = &insn.effects[0];
		bool moves = insn.effect_count == 1 && e->op == EFFECT_MOVE && e->src == isa->sp;
		if (insn.kind == INSN_BAD || insn.kind == INSN_RETURN || insn.writes >> isa->sp & 1)
			return false;
		if (moves && e->dst == isa->fp && record < 0) /* add x29,sp,#… */
			record = e->imm;
		if (moves && e->dst == isa->sp) { /* sub sp,sp,#… */
			*size = (int32_t)-e->imm;
			return record > 0 && *size == record + 16;
		}
		for (unsigned i = 0; i < insn.effect_count; i++)
			if (insn.effects[i].op == EFFECT_MOVE && insn.effects[i].dst == isa->sp)
				return false;
	}
	return false;
}

/*
 * glibc's longjmp that checks (____longjmp_chk) has its frame by x29, which __longjmp, at `at`, loads anew before it
 * leaves. Where it calls that, SP tells as much.
 */
static void add_checked_jumps(const uint8_t *code, size_t size, uint64_t address, size_t at,
			      struct rows *rows)
{
	struct recipe r = {.cfa = RECIPE_REG,
			   .cfa_reg = isa_aarch64.sp,
			   .ra = RECIPE_AT_CFA,
			   .ra_offset = -8,
			   .fp = RECIPE_AT_CFA,
			   .fp_offset = -16};
	for (size_t call = 0; call + 4 <= size; call += 4) {
		uint32_t word, to = (uint32_t)(at - call) >> 2;
		memcpy(&word, code + call, sizeof word);
		if ((word != (0x94000000 | (to & 0x3ffffff)) && /* bl, to a nop or bti, or to it */
		     word != (0x94000000 | ((to - 1) & 0x3ffffff))) ||
		    !is_record_on_top(code, address, call, &r.cfa_offset))
			continue;
		add_rule(rows, address + call, address + call + 4, r);
	}
}

#define JUMP_MAX 192 /* bytes */

/*
 * glibc's longjmp loads all registers from the buffer at x0, in which PC and SP are mixed with a
 * secret. Its unwind information takes the buffer for the frame: a stack that there never was.
 */
static void add_longjmp(const uint8_t *code, size_t size, uint64_t address, size_t at,
			struct rows *rows)
{
	const uint8_t sp = isa_aarch64.sp;
	size_t end = size - at < JUMP_MAX ? size - size % 4 : at + JUMP_MAX;
	size_t fp = find_word(code, at, end, 0xa945101d);      /* ldp x29,x4,[x0,#80] */
	size_t ra = find_word(code, fp, end, 0xca03009e);      /* eor x30,x4,x3 */
	size_t move = find_word(code, ra, end, 0x910000bf);    /* mov sp,x5 */
	size_t leave = find_word(code, move, end, 0xd61f03c0); /* br x30 */
	if (leave == end || find_word(code, ra, move, 0xf9403404) == move || /* ldr x4,[x0,#104] */
	    find_word(code, ra, move, 0xca030085) != move - 4)               /* eor x5,x4,x3 */
		return;
	struct recipe r = {.cfa = RECIPE_REG, .cfa_reg = sp, .extra = RECIPE_LOST};
	add_checked_jumps(code, size, address, at, rows);
	add_rule(rows, address + at, address + fp + 4, r); /* as it was called */
	r.fp = RECIPE_LOST;
	add_rule(rows, address + fp + 4, address + ra + 4, r);
	add_rule(rows, address + ra + 4, address + move,
		 (struct recipe){.cfa = RECIPE_SPECIAL,
				 .cfa_vg = RECIPE_WORD | RECIPE_MIXED | RECIPE_INDEX(3, 0),
				 .cfa_reg = 0,
				 .cfa_offset = 104});
	add_rule(rows, address + move, address + move + 4,
		 (struct recipe){.cfa = RECIPE_SPECIAL, .cfa_reg = 5});
	add_rule(rows, address + move + 4, address + leave + 4,
		 (struct recipe){.cfa = RECIPE_REG, .cfa_reg = sp});
}

/* Does `word` load from the buffer at x0, and not x0 itself? */
static bool loads_saved(uint32_t word)
{
	switch (word & 0xffc003e0) {
	case 0x6d400000: /* ldp dN,dM,[x0,#…] */
	case 0xfd400000: /* ldr dN,[x0,#…] */
		return true;
	case 0xa9400000: /* ldp xN,xM,[x0,#…] */
		return word & 31 && word >> 10 & 31;
	case 0xf9400000: /* ldr xN,[x0,#…] */
		return word & 31;
	default:
		return false;
	}
}

static uint32_t word_at(const uint8_t *code, size_t at)
{
	uint32_t word;
	memcpy(&word, code + at, sizeof word);
	return word;
}

/* The offset of what ldr xN,[x0,#…] loads between `from` and `to`, or 0; *at is where. */
static int32_t find_load(const uint8_t *code, size_t from, size_t to, unsigned reg, size_t *at)
{
	for (*at = from; *at < to; *at += 4) {
		uint32_t word = word_at(code, *at);
		if ((word & 0xffc003ff) == (0xf9400000 | reg))
			return (int32_t)(word >> 10 & 0xfff) * 8;
	}
	return 0;
}

/*
 * A longjmp without secrets (Free Pascal's, musl's), from ldp x29,x30,[x0,#…] on, when the caller is lost: all registers are
 * loaded from the buffer at x0, one of them becomes SP.
 */
static void add_plain_longjmp(const uint8_t *code, size_t size, uint64_t address, size_t at,
			      struct rows *rows)
{
	size_t end = size - at < JUMP_MAX ? size - size % 4 : at + JUMP_MAX;
	size_t first = at, move = at, loaded, leave;
	while (first >= 4 && at - first < JUMP_MAX && loads_saved(word_at(code, first - 4)))
		first -= 4;
	while (move < end && loads_saved(word_at(code, move)))
		move += 4;
	if (move == end || (word_at(code, move) & 0xfffffc1f) != 0x9100001f) /* mov sp,xN */
		return;
	unsigned reg = word_at(code, move) >> 5 & 31;
	int32_t sp = find_load(code, first, move, reg, &loaded);
	for (leave = move + 4; leave < end; leave += 4) {
		uint32_t word = word_at(code, leave);
		if (word == 0xd65f03c0 || word == 0xd61f03c0) /* ret; br x30 */
			break;
		if ((word >> 26 & 7) == 5) /* jumps elsewhere */
			return;
	}
	if (!sp || leave == end)
		return;
	size_t known = loaded > at ? loaded + 4 : at + 4;
	add_rule(rows, address + at + 4, address + known,
		 (struct recipe){.cfa = RECIPE_SPECIAL,
				 .cfa_vg = (int16_t)RECIPE_WORD,
				 .cfa_reg = 0,
				 .cfa_offset = sp});
	add_rule(rows, address + known, address + move + 4,
		 (struct recipe){.cfa = RECIPE_SPECIAL, .cfa_reg = (uint8_t)reg});
	add_rule(rows, address + move + 4, address + leave + 4,
		 (struct recipe){.cfa = RECIPE_REG, .cfa_reg = isa_aarch64.sp});
}

#define CONTEXT_RA 192 /* in an object of glibc: x1, which gets the return address */
#define CONTEXT_SP 432

/* As it was called, by the object at reg - offset, which has the return address and SP. */
static void add_saved_context(struct rows *rows, uint64_t start, uint64_t end, uint8_t reg,
			      int32_t offset)
{
	add_rule(rows, start, end,
		 (struct recipe){.cfa = RECIPE_SPECIAL,
				 .cfa_vg = (int16_t)RECIPE_WORD,
				 .cfa_reg = reg,
				 .cfa_offset = CONTEXT_SP - offset,
				 .ra = RECIPE_AT_BASE,
				 .ra_offset = CONTEXT_RA - offset});
}

/*
 * glibc's swapcontext, from stp xzr,x30,[x0,#184] on: what it saves is to go on behind the jump at its end,
 * whose address is in the link register meanwhile. There x1 has what the first instruction saved. Between them
 * x0 has the object, then x2, for a system call, beyond which it leads to the other stack.
 */
static void add_swapcontext(const uint8_t *code, size_t size, uint64_t address, size_t at,
			    struct rows *rows)
{
	size_t end = size - at < 2 * JUMP_MAX ? size - size % 4 : at + 2 * JUMP_MAX;
	size_t again = find_word(code, at, end, 0xaa0103fe);                    /* mov x30,x1 */
	if (again == end || (word_at(code, at + 4) & 0x9f00001f) != 0x1000001e) /* adr x30 */
		return;
	size_t saved = find_word(code, at, again, 0xf900d802);   /* str x2,[x0,#432] */
	size_t mask = find_word(code, saved, again, 0x9100a002); /* add x2,x0,#40 */
	size_t call = find_word(code, mask, again, 0xd4000001);  /* svc #0 */
	if (call < again && find_word(code, at, call, 0xd2800000) == mask + 4) { /* mov x0,#0 */
		add_saved_context(rows, address + saved + 4, address + mask + 4, 0, 0);
		size_t leaves = call + 4; /* bl setcontext */
		while (leaves < again && word_at(code, leaves) >> 26 != 0x25)
			leaves += 4;
		add_saved_context(rows, address + mask + 4, address + leaves + 4, 2, 40);
	}
	add_rule(rows, address + at + 8, address + again - 4,
		 (struct recipe){.cfa = RECIPE_COMPLEX});
	add_rule(rows, address + again - 4, address + again + 4,
		 (struct recipe){.cfa = RECIPE_REG,
				 .cfa_reg = isa_aarch64.sp,
				 .ra = RECIPE_IN_REG,
				 .ra_offset = 1});
}

/* glibc's setcontext, from ldp x18,x19,[x0,#328] on: as with longjmp, the frame is said to be the object. */
static void add_setcontext(const uint8_t *code, size_t size, uint64_t address, size_t at,
			   struct rows *rows)
{
	size_t end = size - at < JUMP_MAX ? size - size % 4 : at + JUMP_MAX;
	size_t leave = find_word(code, at, end, 0xd61f0200); /* br x16 */
	if (leave == end || find_word(code, at, leave, 0xa94b8400) != leave - 4)
		return; /* ldp x0,x1,[x0,#184] */
	add_rule(rows, address + at, address + leave, (struct recipe){.cfa = RECIPE_COMPLEX});
	add_rule(rows, address + leave, address + leave + 4,
		 (struct recipe){.cfa = RECIPE_SPECIAL,
				 .cfa_vg = RECIPE_RESUMES,
				 .cfa_reg = isa_aarch64.sp,
				 .ra = RECIPE_IN_REG,
				 .ra_offset = 16});
}

static void add_jumps(const uint8_t *code, size_t size, uint64_t address, struct rows *rows)
{
	for (size_t at = 0; size >= 16 && at <= size - 16; at += 4) {
		uint32_t word;
		memcpy(&word, code + at, sizeof word);
		if (word == 0xa9405013) /* ldp x19,x20,[x0] */
			add_longjmp(code, size, address, at, rows);
		else if (word == 0xa90bf81f) /* stp xzr,x30,[x0,#184] */
			add_swapcontext(code, size, address, at, rows);
		else if ((word & 0xffc07fff) == 0xa940781d) /* ldp x29,x30,[x0,#…] */
			add_plain_longjmp(code, size, address, at, rows);
		else if (word == 0xa954cc12) /* ldp x18,x19,[x0,#328] */
			add_setcontext(code, size, address, at, rows);
	}
}

void shapes_add_aarch64(struct image *image, const uint8_t *code, size_t size, uint64_t address,
			struct rows *rows)
{
	(void)image;
	add_context_starts(code, size, address, rows);
	add_jumps(code, size, address, rows);
	for (size_t at = 4; size >= 12 && at <= size - 12; at += 4) {
		if (memcmp(code + at, resolver.first, sizeof resolver.first))
			continue;
		for (size_t end = at; end <= size - 12 && end - at < RESOLVER_MAX; end += 4) {
			if (memcmp(code + end, resolver.last, sizeof resolver.last))
				continue;
			add_lazy_frame(rows, address + at - 4, address + at + 4,
				       16); /* with nop or bti */
			add_lazy_frame(rows, address + at + 4, address + end + 4,
				       resolver.pushed + 16);
			add_lazy_frame(rows, address + end + 4, address + end + 8, 16);
			add_lazy_frame(rows, address + end + 8, address + end + 12, 0);
			return;
		}
	}
}
