/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86-64: the window is the instructions that the five bytes of a jump reach into. Registers and flags stay as they are,
 * and SP is moved only for the flags: below SP is nobody's at the beginning of a function.
 *
 * A call in the window must return to where the original returns, for whoever walks the stack or throws through it. It
 * becomes a push of that address and a jump, and it must be the last instruction of the window: what follows it there
 * would not be found at its place.
 *
 * Other tools put uprobes at the first instruction: the kernel makes its first byte a breakpoint, executes the instruction as
 * the file has it, and goes on behind it; afterwards it makes the first byte that of the file. So our jump must not be there. A
 * call that goes through other code has its jump behind the first instruction, if that can stay. If it changes SP, the island
 * undoes it, and the body begins with it; else the body goes on behind it, since the other code keeps registers and flags. Where
 * that cannot be, the jump is at the beginning.
 *
 * The kernel writes a page at a time. Whoever writes may be killed in between, and half a jump would crash the program. So a jump
 * is never in two pages.
 */
#include <Zydis/Zydis.h>
#include <elf.h>

#include "patch/emit.h"

#define JUMP 5u /* bytes */
#define PAGE 4096u

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

/* ---- the first instruction ---- */

static bool is_register(const ZydisDecodedOperand *o)
{
	return o->type == ZYDIS_OPERAND_TYPE_REGISTER;
}

static ZydisRegister whole(ZydisRegister r)
{
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);
}

/* A register that a function may change as its first act. */
static bool is_scratch(ZydisRegister r)
{
	switch (whole(r)) {
	case ZYDIS_REGISTER_RAX:
	case ZYDIS_REGISTER_RCX:
	case ZYDIS_REGISTER_RDX:
	case ZYDIS_REGISTER_RSI:
	case ZYDIS_REGISTER_RDI:
	case ZYDIS_REGISTER_R8:
	case ZYDIS_REGISTER_R9:
	case ZYDIS_REGISTER_R10:
	case ZYDIS_REGISTER_R11:
		return true;
	default:
		return false;
	}
}

/* What it writes may be left as it is: the probe keeps registers that a function may change as its first act, and flags. Others
   belong to the caller, whom the probe looks at. What is below SP is overwritten. */
static bool is_own(const ZydisDecodedOperand *o)
{
	if (o->type != ZYDIS_OPERAND_TYPE_REGISTER)
		return o->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		       whole(o->mem.base) != ZYDIS_REGISTER_RSP;
	switch (ZydisRegisterGetClass(o->reg.value)) {
	case ZYDIS_REGCLASS_GPR8:
	case ZYDIS_REGCLASS_GPR16:
	case ZYDIS_REGCLASS_GPR32:
	case ZYDIS_REGCLASS_GPR64:
		return is_scratch(o->reg.value);
	case ZYDIS_REGCLASS_FLAGS:
	case ZYDIS_REGCLASS_XMM:
	case ZYDIS_REGCLASS_YMM:
	case ZYDIS_REGCLASS_ZMM:
	case ZYDIS_REGCLASS_MASK:
		return true;
	default:
		return false;
	}
}

/* Whether the function may be called through other code behind this instruction. */
static bool stays(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *o)
{
	switch (in->meta.category) {
	case ZYDIS_CATEGORY_BINARY:
	case ZYDIS_CATEGORY_LOGICAL:
	case ZYDIS_CATEGORY_LOGICAL_FP:
	case ZYDIS_CATEGORY_DATAXFER:
	case ZYDIS_CATEGORY_SHIFT:
	case ZYDIS_CATEGORY_BITBYTE:
	case ZYDIS_CATEGORY_CONVERT:
	case ZYDIS_CATEGORY_SSE:
	case ZYDIS_CATEGORY_AVX:
	case ZYDIS_CATEGORY_AVX2:
	case ZYDIS_CATEGORY_CMOV:
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_WIDENOP:
	case ZYDIS_CATEGORY_MISC: /* lea */
		break;
	default:
		return false;
	}
	if (in->meta.branch_type != ZYDIS_BRANCH_TYPE_NONE)
		return false;
	for (unsigned i = 0; i < in->operand_count; i++)
		if (o[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE && !is_own(&o[i]))
			return false;
	return true;
}

/* Writes what undoes it, if it changes SP. Returns false if it does not. */
static bool undo(struct emit *e, const ZydisDecodedInstruction *in, const ZydisDecodedOperand *o)
{
	if (in->mnemonic == ZYDIS_MNEMONIC_PUSH && is_register(&o[0]) &&
	    o[0].reg.value >= ZYDIS_REGISTER_RAX && o[0].reg.value <= ZYDIS_REGISTER_R15 &&
	    o[0].reg.value != ZYDIS_REGISTER_RSP) {
		unsigned number = (unsigned)ZydisRegisterGetId(o[0].reg.value);
		const uint8_t pop[] = {0x41, (uint8_t)(0x58 + number % 8)};
		emit_bytes(e, pop + (number < 8), number < 8 ? 1 : 2);
		return true;
	}
	if (in->mnemonic == ZYDIS_MNEMONIC_SUB && is_register(&o[0]) &&
	    o[0].reg.value == ZYDIS_REGISTER_RSP && o[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		const int32_t size = (int32_t)o[1].imm.value.s;
		emit_bytes(e, "\x48\x8d\xa4\x24", 4); /* lea size(%rsp), %rsp */
		emit_bytes(e, &size, sizeof size);
		return true;
	}
	return false;
}

/* Bytes of the first instruction, if it can stay in its place; else 0. *undone: what undoes it is written. */
static size_t keep_first(struct emit *e, const struct patch_input *in, size_t skip, bool *undone)
{
	ZydisDecoder decoder;
	ZydisDecodedInstruction first;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	*undone = false;
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (skip || !in->through ||
	    !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, in->code, in->size, &first, operands)))
		return 0;
	*undone = undo(e, &first, operands);
	return *undone || stays(&first, operands) ? first.length : 0;
}

/* A jump back to the first instruction would be taken for a call, as one into the window. */
static bool is_entered_again(const struct patch_input *in, const struct emit *e, uint64_t end)
{
	for (size_t i = 0; i < in->target_count; i++)
		if (in->targets[i] >= in->address && in->targets[i] < end)
			return true;
	for (size_t i = 0; i < e->goes_count; i++)
		if (e->goes[i] >= in->address && e->goes[i] < end)
			return true;
	return false;
}

/* ---- the plan ---- */

static size_t landing_size(const struct patch_input *in)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	return in->size > sizeof endbr64 && !memcmp(in->code, endbr64, sizeof endbr64)
		       ? sizeof endbr64
		       : 0;
}

/* The window begins so many bytes behind the first instruction. With `kept`, that is the first instruction's size. `undone`: the
   body begins with it. */
static enum patch_refusal plan_behind(struct emit *e, const struct patch_input *in, size_t skip,
				      size_t kept, bool undone)
{
	struct patch_plan *out = e->plan;
	struct decoded d;
	size_t size = 0;
	bool goes_on = true;
	out->at = in->address + skip + kept;
	out->length = JUMP;
	if (out->at / PAGE != (out->at + JUMP - 1) / PAGE)
		return PATCH_TWO_PAGES;
	if (in->counter)
		emit_count(e, in->counter);
	if (in->through)
		emit_through(e, in->through);
	if (undone && (!decode(in, skip, &d) || !move(e, &d)))
		return PATCH_UNKNOWN;
	skip += kept;
	while (size < JUMP) {
		if (!goes_on || skip + size >= in->size)
			return PATCH_TOO_SMALL;
		if (!decode(in, skip + size, &d))
			return PATCH_UNKNOWN;
		emit_step(e, size);
		size += d.in.length;
		if (!move(e, &d) || (is_call(&d) && size < JUMP))
			return PATCH_UNKNOWN;
		goes_on = falls(&d);
	}
	/* A call goes on where it returns to. */
	if (goes_on && !is_call(&d))
		emit_jump(e, out->at + size);
	int64_t distance = (int64_t)(in->island - (out->at + JUMP));
	const int32_t word = (int32_t)distance;
	e->failed |= !emit_fits(distance, 32);
	out->window = (uint8_t)size;
	memcpy(out->original, in->code + skip, size);
	memcpy(out->jump, out->original, size);
	out->jump[0] = 0xe9;
	memcpy(out->jump + 1, &word, sizeof word);
	if (kept && is_entered_again(in, e, out->at + size))
		return PATCH_JUMPED_INTO;
	return emit_end(e);
}

/* jmp *0(%rip), and the address behind it */
static size_t far_jump(uint64_t to, uint8_t out[PATCH_FAR_MAX])
{
	static const uint8_t jump[] = {0xff, 0x25, 0, 0, 0, 0};
	memcpy(out, jump, sizeof jump);
	memcpy(out + sizeof jump, &to, sizeof to);
	return sizeof jump + sizeof to;
}

static enum patch_refusal plan(const struct patch_input *in, struct patch_plan *out)
{
	size_t skip = landing_size(in);
	struct emit e = {.plan = out, .island = in->island};
	bool undone;
	size_t kept = keep_first(&e, in, skip, &undone);
	if (kept && !plan_behind(&e, in, skip, kept, undone))
		return PATCH_NONE;
	*out = (struct patch_plan){0};
	e = (struct emit){.plan = out, .island = in->island};
	return plan_behind(&e, in, skip, 0, false);
}

const struct patch_cpu patch_x86_64 = {
	.elf_machine = EM_X86_64,
	.reach = 1ull << 31,
	.plan = plan,
	.far_jump = far_jump,
};
