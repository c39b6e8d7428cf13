/* SPDX-License-Identifier: Apache-2.0 */
#include "copies/use.h"

#include <Zydis/Zydis.h>

enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, R9, R10, R11, R12 };
#define BIT(reg) (1u << (reg))

#define OTHERS (ZYDIS_CPUFLAG_OF | ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_ZF | ZYDIS_CPUFLAG_PF)
/* What the kernel reads and changes. */
#define SYSTEM_READS \
	(BIT(RAX) | BIT(RDI) | BIT(RSI) | BIT(RDX) | BIT(R10) | BIT(R8) | BIT(R9) | BIT(RSP))
#define SYSTEM_WRITES (BIT(RAX) | BIT(RCX) | BIT(R11))

static uint32_t bit_of(ZydisRegister reg)
{
	static const uint8_t dwarf[16] = {RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI,
					  8,   9,   10,  11,  12,  13,  14,  15};
	ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
	if (full < ZYDIS_REGISTER_RAX || full > ZYDIS_REGISTER_R15)
		return 0;
	return BIT(dwarf[full - ZYDIS_REGISTER_RAX]);
}

/* Its flags stay as they are if it shifts by 0, or repeats something no time. */
static bool may_leave_flags(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops)
{
	const ZydisInstructionAttributes repeats = ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE |
						   ZYDIS_ATTRIB_HAS_REPNE;
	unsigned count = in->operand_count_visible;
	switch (in->mnemonic) {
	case ZYDIS_MNEMONIC_SHL:
	case ZYDIS_MNEMONIC_SHR:
	case ZYDIS_MNEMONIC_SAR:
	case ZYDIS_MNEMONIC_ROL:
	case ZYDIS_MNEMONIC_ROR:
	case ZYDIS_MNEMONIC_RCL:
	case ZYDIS_MNEMONIC_RCR:
	case ZYDIS_MNEMONIC_SHLD:
	case ZYDIS_MNEMONIC_SHRD:
		return count < 2 || ops[count - 1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE ||
		       !(ops[count - 1].imm.value.u & 31);
	default:
		return in->attributes & repeats;
	}
}

static void read_flags(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops,
		       struct use *out)
{
	const ZydisAccessedFlags *f = in->cpu_flags;
	bool all = false;
	switch (in->mnemonic) {
	case ZYDIS_MNEMONIC_LAHF:
	case ZYDIS_MNEMONIC_PUSHF:
	case ZYDIS_MNEMONIC_PUSHFD:
	case ZYDIS_MNEMONIC_PUSHFQ:
		all = true;
		break;
	default:
		break;
	}
	if (all || (f && f->tested & ZYDIS_CPUFLAG_CF))
		out->reads_flags |= USE_CARRY;
	if (all || (f && f->tested & (OTHERS | ZYDIS_CPUFLAG_AF)))
		out->reads_flags |= USE_OTHERS;
	if (!f || may_leave_flags(in, ops))
		return;
	ZydisAccessedFlagsMask gone = f->modified | f->set_0 | f->set_1 | f->undefined;
	if (gone & ZYDIS_CPUFLAG_CF)
		out->kills_flags |= USE_CARRY;
	if ((gone & OTHERS) == OTHERS)
		out->kills_flags |= USE_OTHERS;
}

static void read_register(const ZydisDecodedOperand *op, struct use *out)
{
	uint32_t bit = bit_of(op->reg.value);
	if (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
		out->reads |= bit;
	if (!(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		return;
	out->writes |= bit;
	/* The lower half is written with zeros above it. Less leaves the rest as it was. */
	if (op->actions & ZYDIS_OPERAND_ACTION_WRITE && op->size >= 32)
		out->kills |= bit;
}

/* Registers that string instructions count up or down: Zydis forgets some of them. */
static uint32_t string_pointers(const ZydisDecodedInstruction *in)
{
	bool strings = in->meta.category == ZYDIS_CATEGORY_STRINGOP ||
		       in->meta.category == ZYDIS_CATEGORY_IOSTRINGOP;
	return strings ? BIT(RSI) | BIT(RDI) | BIT(RCX) : 0;
}

static bool is_odd(const ZydisDecodedInstruction *in)
{
	switch (in->mnemonic) {
	case ZYDIS_MNEMONIC_XBEGIN:
	case ZYDIS_MNEMONIC_XABORT:
	case ZYDIS_MNEMONIC_WRGSBASE:
	case ZYDIS_MNEMONIC_SWAPGS:
	case ZYDIS_MNEMONIC_SYSENTER:
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
		return true;
	default:
		return in->mnemonic == ZYDIS_MNEMONIC_RET && in->operand_count_visible;
	}
}

/* A register that is made 0 by itself is not read. */
static bool is_zeroing(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops)
{
	return (in->mnemonic == ZYDIS_MNEMONIC_XOR || in->mnemonic == ZYDIS_MNEMONIC_SUB) &&
	       ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER && ops[0].size >= 32 &&
	       ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER && ops[0].reg.value == ops[1].reg.value;
}

/* The frame pointer is also for those who walk the stack. */
static bool sets_frame(const ZydisDecodedOperand *ops)
{
	return ops[0].reg.value == ZYDIS_REGISTER_RBP &&
	       (ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER ? ops[1].reg.value : ops[1].mem.base) ==
		       ZYDIS_REGISTER_RSP;
}

/* Takes a register from the stack, as who gives it back does. */
static bool takes_from_stack(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops)
{
	ZydisRegister base = ops[1].mem.base;
	return in->mnemonic == ZYDIS_MNEMONIC_MOV && in->operand_width == 64 &&
	       ops[1].mem.index == ZYDIS_REGISTER_NONE &&
	       (base == ZYDIS_REGISTER_RSP || base == ZYDIS_REGISTER_RBP);
}

/* mov, lea and the like of general registers. */
static bool only_writes(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops)
{
	switch (in->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_LEA:
	case ZYDIS_MNEMONIC_MOVZX:
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
		return ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER && bit_of(ops[0].reg.value) &&
		       !sets_frame(ops) &&
		       (ops[1].type != ZYDIS_OPERAND_TYPE_MEMORY ||
			ops[1].mem.type == ZYDIS_MEMOP_TYPE_AGEN || takes_from_stack(in, ops));
	default:
		return false;
	}
}

static void x86_64_read(const uint8_t *code, size_t size, struct use *out)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction in;
	ZydisDecoder decoder;
	*out = (struct use){0};
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, size, &in, ops))) {
		out->odd = true;
		return;
	}
	for (unsigned i = 0; i < in.operand_count; i++) {
		const ZydisDecodedOperand *op = &ops[i];
		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER)
			read_register(op, out);
		else if (op->type == ZYDIS_OPERAND_TYPE_MEMORY)
			out->reads |= bit_of(op->mem.base) | bit_of(op->mem.index);
		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.segment == ZYDIS_REGISTER_GS)
			out->odd = true; /* that is where we count */
	}
	if (is_zeroing(&in, ops))
		out->reads = 0;
	uint32_t strings = string_pointers(&in);
	out->reads |= strings;
	out->writes |= strings;
	if (in.mnemonic == ZYDIS_MNEMONIC_SYSCALL) {
		out->reads |= SYSTEM_READS;
		out->writes |= SYSTEM_WRITES;
	}
	read_flags(&in, ops, out);
	out->only_writes = only_writes(&in, ops);
	out->odd |= is_odd(&in);
}

const struct use_cpu use_x86_64 = {
	.all = 0xffff,
	.arguments = BIT(RDI) | BIT(RSI) | BIT(RDX) | BIT(RCX) | BIT(R8) | BIT(R9) | BIT(RAX) |
		     BIT(R10) | BIT(RSP),
	.results = BIT(RAX) | BIT(RDX),
	.thrown = BIT(RAX) | BIT(RDX),
	.kept = BIT(RBX) | BIT(RBP) | BIT(RSP) | 0xfu << R12,
	.to_count_slowly = 1,
	.to_keep = 1,
	.keeps_on_stack = true,
	.changes_flags = true,
	.shares_tables = true,
	.read = x86_64_read,
};
