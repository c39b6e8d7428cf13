/* SPDX-License-Identifier: Apache-2.0 */
/* x86-64 through Zydis: whatever insn_x86_64.c does not know, and text for people. */
#include "isa/insn_x86_64.h"

#include <Zydis/Zydis.h>

/* DWARF number of a general register or a part of one, else INSN_NO_REG. */
static uint8_t zydis_register(ZydisRegister reg)
{
	ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	if (full < ZYDIS_REGISTER_RAX || full > ZYDIS_REGISTER_R15)
		return INSN_NO_REG;
	return dwarf_reg[full - ZYDIS_REGISTER_RAX];
}

static void zydis_memory(const ZydisDecodedOperand *op, struct insn *out)
{
	uint8_t base = zydis_register(op->mem.base);
	if (op->mem.base == ZYDIS_REGISTER_RIP)
		out->refers = out->address + out->length + (uint64_t)op->mem.disp.value;
	if (!(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) || op->size != 64 ||
	    op->mem.type != ZYDIS_MEMOP_TYPE_MEM || op->mem.index != ZYDIS_REGISTER_NONE ||
	    op->mem.segment == ZYDIS_REGISTER_FS || op->mem.segment == ZYDIS_REGISTER_GS ||
	    base == INSN_NO_REG || op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN ||
	    out->effect_count)
		return;
	add_effect(out, EFFECT_STORE, base, INSN_NO_REG, op->mem.disp.value);
}

/* Registers that string instructions count up or down. Zydis forgets some of them. */
static uint32_t string_pointers(const ZydisDecodedInstruction *in)
{
	if (in->meta.category != ZYDIS_CATEGORY_STRINGOP &&
	    in->meta.category != ZYDIS_CATEGORY_IOSTRINGOP)
		return 0;
	switch (in->opcode & ~1) {
	case 0xa4: /* movs */
	case 0xa6: /* cmps */
		return 1u << RSI | 1u << RDI;
	case 0x6e: /* outs */
	case 0xac: /* lods */
		return 1u << RSI;
	case 0x6c: /* ins */
	case 0xaa: /* stos */
	case 0xae: /* scas */
		return 1u << RDI;
	default:
		return 0;
	}
}

static uint8_t zydis_kind(const ZydisDecodedInstruction *in)
{
	bool direct = in->raw.imm[0].is_relative;
	switch (in->mnemonic) {
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_INT1:
		return INSN_TRAP;
	case ZYDIS_MNEMONIC_INT:
		return in->raw.imm[0].value.u == 0x80 ? INSN_SYSCALL : INSN_TRAP;
	case ZYDIS_MNEMONIC_SYSCALL:
	case ZYDIS_MNEMONIC_SYSENTER:
		return INSN_SYSCALL;
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_UIRET:
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_SYSEXIT:
	case ZYDIS_MNEMONIC_RET:
		return INSN_RETURN;
	case ZYDIS_MNEMONIC_NOP:
		return INSN_NOP;
	case ZYDIS_MNEMONIC_CALL:
		return direct ? INSN_CALL : INSN_CALL_INDIRECT;
	case ZYDIS_MNEMONIC_JMP:
		return direct ? INSN_JUMP : INSN_JUMP_INDIRECT;
	default:
		return direct ? INSN_BRANCH : INSN_OTHER; /* jcc, loop, jrcxz, xbegin */
	}
}

static void zydis_flow(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *operands,
		       struct insn *out)
{
	out->kind = zydis_kind(in);
	if (in->raw.imm[0].is_relative)
		out->target = out->address + in->length + in->raw.imm[0].value.u;
	switch (out->kind) {
	case INSN_CALL_INDIRECT:
	case INSN_JUMP_INDIRECT:
		if (operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER)
			out->reg = zydis_register(operands[0].reg.value);
		else
			out->target = out->refers;
		out->refers = 0;
		out->writes &= ~(1u << RSP);
		break;
	case INSN_CALL:
	case INSN_RETURN:
		out->writes &= ~(1u << RSP);
		break;
	case INSN_NOP:
		out->refers = 0;
		break;
	case INSN_SYSCALL:
		out->writes |= 1u << RAX;
		break;
	default:
		break;
	}
}

void x86_zydis_decode(const uint8_t *code, size_t size, struct insn *out)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction in;
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, size, &in, operands))) {
		out->kind = INSN_BAD;
		out->length = size ? 1 : 0;
		return;
	}
	out->length = in.length;
	for (unsigned i = 0; i < in.operand_count; i++) {
		const ZydisDecodedOperand *op = &operands[i];
		uint8_t reg;
		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY)
			zydis_memory(op, out);
		if (op->type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    !(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		reg = zydis_register(op->reg.value);
		if (reg != INSN_NO_REG)
			out->writes |= 1u << reg;
	}
	out->writes |= string_pointers(&in);
	zydis_flow(&in, operands, out);
}
