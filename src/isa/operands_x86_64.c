/* SPDX-License-Identifier: Apache-2.0 */
/* x86-64 by Zydis, which knows what each operand is for, also those that are not written down. */
#include "isa/operands_cpu.h"

#include <Zydis/Zydis.h>

#include "isa/insn_x86_64.h"
#include "isa/operands.h"

static uint64_t register_bit(ZydisRegister reg)
{
	ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
	if (full >= ZYDIS_REGISTER_RAX && full <= ZYDIS_REGISTER_R15)
		return (uint64_t)1 << dwarf_reg[full - ZYDIS_REGISTER_RAX];
	if (full >= ZYDIS_REGISTER_ZMM0 && full <= ZYDIS_REGISTER_ZMM31)
		return (uint64_t)1 << (OPERANDS_VECTOR + (full - ZYDIS_REGISTER_ZMM0));
	return 0;
}

static uint8_t number_of(uint64_t bit)
{
	return bit ? (uint8_t)__builtin_ctzll(bit) : INSN_NO_REG;
}

static void read_memory(const ZydisDecodedOperand *op, struct operands *out)
{
	bool agen = op->mem.type != ZYDIS_MEMOP_TYPE_MEM;
	uint64_t base = register_bit(op->mem.base), index = register_bit(op->mem.index);
	if (agen) { /* lea computes, and nops do not even that */
		out->reads |= base | index;
		return;
	}
	out->load |= (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
	out->store |= (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
	out->size = (uint8_t)(op->size / 8 < 255 ? op->size / 8 : 255);
	out->address |= base | index;
	out->base = number_of(base);
	out->offset = op->mem.disp.value;
	out->plain_offset = base && !index && op->mem.segment != ZYDIS_REGISTER_FS &&
			    op->mem.segment != ZYDIS_REGISTER_GS;
	out->fixed = !base && !index;
}

static uint8_t class_of(const ZydisDecodedInstruction *in)
{
	if (in->attributes & ZYDIS_ATTRIB_HAS_LOCK)
		return OPERANDS_ATOMIC;
	switch (in->mnemonic) {
	case ZYDIS_MNEMONIC_DIV:
	case ZYDIS_MNEMONIC_IDIV:
	case ZYDIS_MNEMONIC_DIVSS:
	case ZYDIS_MNEMONIC_DIVSD:
	case ZYDIS_MNEMONIC_DIVPS:
	case ZYDIS_MNEMONIC_DIVPD:
	case ZYDIS_MNEMONIC_VDIVSS:
	case ZYDIS_MNEMONIC_VDIVSD:
	case ZYDIS_MNEMONIC_VDIVPS:
	case ZYDIS_MNEMONIC_VDIVPD:
	case ZYDIS_MNEMONIC_SQRTSS:
	case ZYDIS_MNEMONIC_SQRTSD:
	case ZYDIS_MNEMONIC_SQRTPS:
	case ZYDIS_MNEMONIC_SQRTPD:
	case ZYDIS_MNEMONIC_VSQRTSS:
	case ZYDIS_MNEMONIC_VSQRTSD:
	case ZYDIS_MNEMONIC_VSQRTPS:
	case ZYDIS_MNEMONIC_VSQRTPD:
	case ZYDIS_MNEMONIC_FDIV:
	case ZYDIS_MNEMONIC_FSQRT:
		return OPERANDS_DIVIDE;
	case ZYDIS_MNEMONIC_MFENCE:
	case ZYDIS_MNEMONIC_LFENCE:
	case ZYDIS_MNEMONIC_SFENCE:
	case ZYDIS_MNEMONIC_CPUID:
		return OPERANDS_FENCE;
	default:
		return OPERANDS_PLAIN;
	}
}

/* xchg with memory is locked without saying so. */
static bool is_hidden_lock(const ZydisDecodedInstruction *in, const struct operands *o)
{
	return in->mnemonic == ZYDIS_MNEMONIC_XCHG && o->load && o->store;
}

static void read_sum(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops,
		     struct operands *out)
{
	if (ops[0].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return;
	uint64_t to = register_bit(ops[0].reg.value);
	if (!to || to >> OPERANDS_VECTOR)
		return;
	out->sum = out->addend = number_of(to);
	bool constant = in->operand_count_visible > 1 &&
			ops[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
	switch (in->mnemonic) {
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		out->adds = constant;
		out->added = constant ? ops[1].imm.value.s : 0;
		if (in->mnemonic == ZYDIS_MNEMONIC_SUB)
			out->added = -out->added;
		if (!constant && in->mnemonic == ZYDIS_MNEMONIC_ADD &&
		    ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
			out->stepper = number_of(register_bit(ops[1].reg.value));
			out->adds = out->stepper < 32;
		}
		break;
	case ZYDIS_MNEMONIC_INC:
	case ZYDIS_MNEMONIC_DEC:
		out->adds = true;
		out->added = in->mnemonic == ZYDIS_MNEMONIC_INC ? 1 : -1;
		break;
	case ZYDIS_MNEMONIC_LEA:
		out->addend = number_of(register_bit(ops[1].mem.base));
		out->adds = out->addend < 32 && ops[1].mem.index == ZYDIS_REGISTER_NONE;
		out->added = ops[1].mem.disp.value;
		break;
	default:
		break;
	}
}

/* A register that is made 0 by xor with itself waits for nothing. */
static bool is_zeroing(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops)
{
	switch (in->mnemonic) {
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_PXOR:
	case ZYDIS_MNEMONIC_XORPS:
	case ZYDIS_MNEMONIC_XORPD:
		return ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		       ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		       ops[0].reg.value == ops[1].reg.value;
	case ZYDIS_MNEMONIC_VPXOR:
	case ZYDIS_MNEMONIC_VXORPS:
	case ZYDIS_MNEMONIC_VXORPD:
		return ops[2].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		       ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		       ops[1].reg.value == ops[2].reg.value;
	default:
		return false;
	}
}

/* The stack pointer of pushes, pops, calls and returns is renamed by the front end: nobody waits. */
static bool is_stack_engine(const ZydisDecodedOperand *op)
{
	return op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
	       op->type == ZYDIS_OPERAND_TYPE_REGISTER && op->reg.value == ZYDIS_REGISTER_RSP;
}

void operands_x86_64(const uint8_t *code, size_t size, struct operands *out)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction in;
	ZydisDecoder decoder;
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, size, &in, ops)))
		return;
	for (unsigned i = 0; i < in.operand_count; i++) {
		const ZydisDecodedOperand *op = &ops[i];
		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY)
			read_memory(op, out);
		if (op->type != ZYDIS_OPERAND_TYPE_REGISTER || is_stack_engine(op))
			continue;
		bool is_flags = op->reg.value == ZYDIS_REGISTER_RFLAGS ||
				op->reg.value == ZYDIS_REGISTER_EFLAGS;
		if (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ) {
			out->reads |= register_bit(op->reg.value);
			out->reads_flags |= is_flags;
		}
		if (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) {
			out->writes |= register_bit(op->reg.value);
			out->writes_flags |= is_flags;
		}
	}
	if (in.mnemonic == ZYDIS_MNEMONIC_NOP || is_zeroing(&in, ops))
		out->reads = 0;
	out->class = class_of(&in);
	if (is_hidden_lock(&in, out))
		out->class = OPERANDS_ATOMIC;
	read_sum(&in, ops, out);
}
