/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aarch64: the window is one instruction, which becomes a B. So no thread can be inside of it.
 *
 * Islands use x16 and x17 freely: whoever calls a function must expect these to change, since a linker may put a veneer
 * between. Other registers and the flags stay as they are. There are no indirect jumps in an island, since the code to which
 * they go back has no landing pad (BTI).
 */
#include <elf.h>

#include "isa/insn.h"
#include "patch/emit.h"

#define NOP 0xd503201fu
#define SCRATCH 16u
#define LINK 30u
#define ZERO 31u
#define JUMP_BITS 28 /* of the distance that B and BL have, in bytes */

static uint32_t word_at(const uint8_t *code)
{
	uint32_t word;
	memcpy(&word, code, sizeof word);
	return word;
}

static void emit(struct emit *e, uint32_t word)
{
	emit_bytes(e, &word, sizeof word);
}

static uint32_t jump_word(uint64_t from, uint64_t to)
{
	return 0x14000000u | ((uint32_t)((int64_t)(to - from) >> 2) & 0x3ffffffu);
}

static void emit_jump(struct emit *e, uint64_t to)
{
	e->failed |= !emit_fits((int64_t)(to - emit_here(e)), JUMP_BITS);
	emit(e, jump_word(emit_here(e), to));
}

/* movz, movk: any 64 bits. */
static void emit_constant(struct emit *e, uint32_t reg, uint64_t value)
{
	for (uint32_t i = 0; i < 4; i++)
		emit(e, (i ? 0xf2800000u : 0xd2800000u) | i << 21 |
				((uint32_t)(value >> 16 * i) & 0xffff) << 5 | reg);
}

/* Adds 1 to the word. A third register is needed for the outcome of the store. */
static void emit_count(struct emit *e, uint64_t counter)
{
	emit(e, 0xf81f0fefu); /* str x15, [sp, #-16]! */
	emit_constant(e, SCRATCH, counter);
	emit(e, 0xc85f7e11u); /* ldxr x17, [x16] */
	emit(e, 0x91000631u); /* add x17, x17, #1 */
	emit(e, 0xc80f7e11u); /* stxr w15, x17, [x16] */
	emit(e, 0x35ffffafu); /* cbnz w15, the ldxr */
	emit(e, 0xf84107efu); /* ldr x15, [sp], #16 */
}

/* ldr of a word near by */
static void emit_load(struct emit *e, uint32_t reg, uint64_t from)
{
	int64_t distance = (int64_t)(from - emit_here(e));
	e->failed |= !emit_fits(distance, 21);
	emit(e, 0x58000000u | ((uint32_t)(distance >> 2) & 0x7ffffu) << 5 | reg);
}

/* What the function goes on with has the return address signed, if it was signed before the window: the new one is
   signed, too. */
static void emit_through(struct emit *e, uint64_t word, uint32_t landing)
{
	emit_load(e, SCRATCH, e->island - 8);
	emit_load(e, 17, word);
	emit(e, 0xd61f0220u); /* br x17 */
	e->plan->body = e->plan->island_size;
	if (landing == 0xd503233fu || landing == 0xd503237fu)
		emit(e, landing);
}

/* ---- instructions that depend on their own address ---- */

static int64_t signed_bits(uint32_t word, unsigned from, unsigned count)
{
	return (int64_t)((uint64_t)(word >> from) << (64 - count)) >> (64 - count);
}

/* adr, adrp */
static bool move_address(struct emit *e, uint32_t word, uint64_t at)
{
	if ((word & 0x1f000000u) != 0x10000000u)
		return false;
	int64_t distance = signed_bits(word, 5, 19) * 4 + (word >> 29 & 3);
	uint64_t target = word >> 31 ? (at & ~4095ull) + (uint64_t)(distance * 4096)
				     : at + (uint64_t)distance;
	if ((word & 31) != ZERO)
		emit_constant(e, word & 31, target);
	else
		emit(e, NOP);
	return true;
}

/* ldr, ldrsw, prfm of a word near by. The address goes to the register itself, if it can. */
static bool move_literal(struct emit *e, uint32_t word, uint64_t at)
{
	static const uint32_t whole[] = {0xb9400000u, 0xf9400000u, 0xb9800000u};
	static const uint32_t vector[] = {0xbd400000u, 0xfd400000u, 0x3dc00000u};
	uint32_t size = word >> 30, reg = word & 31;
	bool is_vector = word >> 26 & 1;
	if ((word & 0x3b000000u) != 0x18000000u)
		return false;
	if (size == 3) { /* a hint, or nothing that there is */
		e->unknown |= is_vector;
		emit(e, NOP);
		return true;
	}
	uint32_t base = is_vector || reg == ZERO ? SCRATCH : reg;
	emit_constant(e, base, at + (uint64_t)(signed_bits(word, 5, 19) * 4));
	emit(e, (is_vector ? vector : whole)[size] | base << 5 | reg);
	return true;
}

/* A conditional jump becomes one over a jump:  b.cond 1f; b 2f; 1: b target; 2: */
static void emit_branch(struct emit *e, uint32_t word, uint64_t target, uint32_t distance_bits)
{
	emit_goes(e, target);
	emit(e, (word & ~distance_bits) | (8u / 4) << 5);
	emit_jump(e, emit_here(e) + 8);
	emit_jump(e, target);
}

static bool move_branch(struct emit *e, uint32_t word, uint64_t at)
{
	if ((word & 0xff000000u) == 0x54000000u || (word & 0x7e000000u) == 0x34000000u) {
		/* b.cond, bc.cond, cbz, cbnz */
		emit_branch(e, word, at + (uint64_t)(signed_bits(word, 5, 19) * 4), 0x00ffffe0u);
		return true;
	}
	if ((word & 0x7e000000u) == 0x36000000u) { /* tbz, tbnz */
		emit_branch(e, word, at + (uint64_t)(signed_bits(word, 5, 14) * 4), 0x0007ffe0u);
		return true;
	}
	return false;
}

/* b, bl: a call returns to where the original does. */
static bool move_jump(struct emit *e, uint32_t word, uint64_t at)
{
	if ((word & 0x7c000000u) != 0x14000000u)
		return false;
	uint64_t target = at + (uint64_t)(signed_bits(word, 0, 26) * 4);
	if (word >> 31)
		emit_constant(e, LINK, at + 4);
	emit_goes(e, target);
	emit_jump(e, target);
	return true;
}

/* blr and its kin with a key: it would return into the island. */
static bool is_call(uint32_t word)
{
	return (word & 0xfefff000u) == 0xd63f0000u;
}

/* ---- the plan ---- */

/* Whether an indirect call may land here: bti, paciasp, pacibsp. */
static bool is_landing(uint32_t word)
{
	return (word & 0xffffff3fu) == 0xd503241fu || word == 0xd503233fu || word == 0xd503237fu;
}

static void move(struct emit *e, uint32_t word, uint64_t at)
{
	e->unknown |= is_call(word);
	if (!move_address(e, word, at) && !move_literal(e, word, at) && !move_branch(e, word, at) &&
	    !move_jump(e, word, at))
		emit(e, word);
}

static enum patch_refusal plan(const struct patch_input *in, struct patch_plan *out)
{
	size_t skip = in->size >= 4 && is_landing(word_at(in->code)) ? 4 : 0;
	struct emit e = {.plan = out, .island = in->island};
	struct insn insn;
	if (in->size < skip + 4 || in->size % 4 || in->address % 4 || in->island % 4)
		return PATCH_TOO_SMALL;
	uint32_t word = word_at(in->code + skip);
	out->at = in->address + skip;
	out->window = out->length = 4;
	isa_aarch64.decode(in->code + skip, 4, out->at, &insn);
	if (insn.kind == INSN_BAD || insn.kind == INSN_TRAP)
		return PATCH_UNKNOWN;
	memcpy(out->original, in->code + skip, 4);
	if (!emit_fits((int64_t)(in->island - out->at), JUMP_BITS))
		return PATCH_OUT_OF_REACH;
	const uint32_t jump = jump_word(out->at, in->island);
	memcpy(out->jump, &jump, sizeof jump);
	if (in->counter)
		emit_count(&e, in->counter);
	if (in->through)
		emit_through(&e, in->through, word_at(in->code));
	emit_step(&e, 0);
	move(&e, word, out->at);
	emit_jump(&e, out->at + 4);
	return emit_end(&e);
}

/* ldr x17, 8 bytes from here; br x17; and the address */
static size_t far_jump(uint64_t to, uint8_t out[PATCH_FAR_MAX])
{
	static const uint32_t jump[] = {0x58000051u, 0xd61f0220u};
	memcpy(out, jump, sizeof jump);
	memcpy(out + sizeof jump, &to, sizeof to);
	return sizeof jump + sizeof to;
}

const struct patch_cpu patch_aarch64 = {
	.elf_machine = EM_AARCH64,
	.reach = 1ull << 27,
	.plan = plan,
	.far_jump = far_jump,
};
