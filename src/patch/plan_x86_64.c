/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86-64: the window is the instructions that the five bytes of a jump reach into. Registers and flags stay as they are,
 * and SP is moved only for the flags: below SP is nobody's at the beginning of a function.
 *
 * A call in the window must return to where the original returns, for whoever walks the stack or throws through it. It
 * becomes a push of that address and a jump, and it must be the last instruction of the window: what follows it there
 * would not be found at its place.
 */
#include <Zydis/Zydis.h>
#include <elf.h>

#include "patch/emit.h"

#define JUMP 5u /* bytes */

struct decoded {
	ZydisDecodedInstruction in;
	uint64_t at;
	const uint8_t *code;
};

static bool decode(const struct patch_input *in, size_t offset, struct decoded *out)
{
	ZydisDecoder decoder;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	out->code = in->code + offset;
	out->at = in->address + offset;
	return ZYAN_SUCCESS(
		ZydisDecoderDecodeFull(&decoder, out->code, in->size - offset, &out->in, operands));
}

/* Appends four bytes that say the distance from behind them, and `behind` bytes more, to an address. */
static void emit_distance(struct emit *e, uint64_t to, unsigned behind)
{
	int64_t distance = (int64_t)(to - (emit_here(e) + 4 + behind));
	const int32_t word = (int32_t)distance;
	e->failed |= !emit_fits(distance, 32);
	emit_bytes(e, &word, sizeof word);
}

static void emit_jump(struct emit *e, uint64_t to)
{
	emit_bytes(e, "\xe9", 1);
	emit_distance(e, to, 0);
}

static void emit_count(struct emit *e, uint64_t counter)
{
	emit_bytes(e, "\x9c", 1);             /* pushfq */
	emit_bytes(e, "\xf0\x48\xff\x05", 4); /* lock incq counter(%rip) */
	emit_distance(e, counter, 0);
	emit_bytes(e, "\x9d", 1); /* popfq */
}

static void emit_through(struct emit *e, uint64_t word)
{
	emit_bytes(e, "\xff\x35", 2); /* push the word before the island */
	emit_distance(e, e->island - 8, 0);
	emit_bytes(e, "\xff\x25", 2); /* jmp *word(%rip) */
	emit_distance(e, word, 0);
	e->plan->body = e->plan->island_size;
}

/* push $low; movl $high, 4(%rsp) */
static void emit_push(struct emit *e, uint64_t value)
{
	const uint32_t low = (uint32_t)value, high = (uint32_t)(value >> 32);
	emit_bytes(e, "\x68", 1);
	emit_bytes(e, &low, sizeof low);
	emit_bytes(e, "\xc7\x44\x24\x04", 4);
	emit_bytes(e, &high, sizeof high);
}

/* Whether control goes on behind it. */
static bool falls(const struct decoded *d)
{
	switch (d->in.mnemonic) {
	case ZYDIS_MNEMONIC_JMP:
	case ZYDIS_MNEMONIC_RET:
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT3:
		return false;
	default:
		return true;
	}
}

static bool is_call(const struct decoded *d)
{
	return d->in.mnemonic == ZYDIS_MNEMONIC_CALL;
}

/* Direct jumps and calls. False: one that has no long form (loop, jrcxz, xbegin). */
static bool move_direct(struct emit *e, const struct decoded *d)
{
	uint64_t target = d->at + d->in.length + d->in.raw.imm[0].value.u;
	emit_goes(e, target);
	if (is_call(d)) {
		emit_push(e, d->at + d->in.length);
		emit_jump(e, target);
		return true;
	}
	if (d->in.mnemonic == ZYDIS_MNEMONIC_JMP) {
		emit_jump(e, target);
		return true;
	}
	bool shorted = d->in.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
		       (d->in.opcode & 0xf0) == 0x70;
	bool longed = d->in.opcode_map == ZYDIS_OPCODE_MAP_0F && (d->in.opcode & 0xf0) == 0x80;
	if (!shorted && !longed)
		return false;
	const uint8_t bytes[] = {0x0f, 0x80 | (d->in.opcode & 15)};
	emit_bytes(e, bytes, sizeof bytes);
	emit_distance(e, target, 0);
	return true;
}

/* Whether an operand is in memory at a distance from the instruction. */
static bool is_relative(const struct decoded *d)
{
	return d->in.raw.disp.size == 32 && d->in.attributes & ZYDIS_ATTRIB_HAS_MODRM &&
	       d->in.raw.modrm.mod == 0 && d->in.raw.modrm.rm == 5;
}

/* Copies an instruction whose operand is in memory at a distance from it. */
static void move_relative(struct emit *e, const struct decoded *d)
{
	unsigned start = d->in.raw.disp.offset, end = start + 4, behind = d->in.length - end;
	uint64_t target = d->at + d->in.length + (uint64_t)d->in.raw.disp.value;
	emit_bytes(e, d->code, start);
	emit_distance(e, target, behind);
	emit_bytes(e, d->code + end, behind);
}

static bool move(struct emit *e, const struct decoded *d)
{
	if (d->in.raw.imm[0].is_relative)
		return move_direct(e, d);
	if (is_call(d)) /* through a register or memory: it would return into the island */
		return false;
	if (is_relative(d))
		move_relative(e, d);
	else
		emit_bytes(e, d->code, d->in.length);
	return true;
}

static size_t landing_size(const struct patch_input *in)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	return in->size > sizeof endbr64 && !memcmp(in->code, endbr64, sizeof endbr64)
		       ? sizeof endbr64
		       : 0;
}

static enum patch_refusal plan(const struct patch_input *in, struct patch_plan *out)
{
	size_t skip = landing_size(in), size = 0;
	struct emit e = {.plan = out, .island = in->island};
	struct decoded d;
	bool goes_on = true;
	out->at = in->address + skip;
	out->length = JUMP;
	if (in->counter)
		emit_count(&e, in->counter);
	if (in->through)
		emit_through(&e, in->through);
	while (size < JUMP) {
		if (!goes_on || skip + size >= in->size)
			return PATCH_TOO_SMALL;
		if (!decode(in, skip + size, &d))
			return PATCH_UNKNOWN;
		emit_step(&e, size);
		size += d.in.length;
		if (!move(&e, &d) || (is_call(&d) && size < JUMP))
			return PATCH_UNKNOWN;
		goes_on = falls(&d);
	}
	/* A call goes on where it returns to. */
	if (goes_on && !is_call(&d))
		emit_jump(&e, out->at + size);
	int64_t distance = (int64_t)(in->island - (out->at + JUMP));
	const int32_t word = (int32_t)distance;
	e.failed |= !emit_fits(distance, 32);
	out->window = (uint8_t)size;
	memcpy(out->original, in->code + skip, size);
	memcpy(out->jump, out->original, size);
	out->jump[0] = 0xe9;
	memcpy(out->jump + 1, &word, sizeof word);
	return emit_end(&e);
}

const struct patch_cpu patch_x86_64 = {
	.elf_machine = EM_X86_64,
	.reach = 1ull << 31,
	.plan = plan,
};
