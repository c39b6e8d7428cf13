/* SPDX-License-Identifier: Apache-2.0 */
#include <Zydis/Zydis.h>
#include <stdbool.h>

#include "explain/kinds.h"

static enum frequency_kind kind_of_category(const ZydisDecodedInstruction *in)
{
	switch (in->mnemonic) {
	case ZYDIS_MNEMONIC_DIV:
	case ZYDIS_MNEMONIC_IDIV:
	case ZYDIS_MNEMONIC_MUL:
	case ZYDIS_MNEMONIC_IMUL:
	case ZYDIS_MNEMONIC_MFENCE:
	case ZYDIS_MNEMONIC_LFENCE:
	case ZYDIS_MNEMONIC_SFENCE:
	case ZYDIS_MNEMONIC_XCHG:
	case ZYDIS_MNEMONIC_CPUID:
	case ZYDIS_MNEMONIC_RDTSC:
		return FREQUENCY_SLOW;
	default:
		break;
	}
	if (in->attributes & (ZYDIS_ATTRIB_HAS_LOCK | ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE |
			      ZYDIS_ATTRIB_HAS_REPNE))
		return FREQUENCY_SLOW;
	switch (in->meta.isa_set) {
	case ZYDIS_ISA_SET_I86:
	case ZYDIS_ISA_SET_I186:
	case ZYDIS_ISA_SET_I386:
	case ZYDIS_ISA_SET_I486REAL:
	case ZYDIS_ISA_SET_LONGMODE:
	case ZYDIS_ISA_SET_CMOV:
	case ZYDIS_ISA_SET_BMI1:
	case ZYDIS_ISA_SET_BMI2:
	case ZYDIS_ISA_SET_LZCNT:
	case ZYDIS_ISA_SET_POPCNT:
	case ZYDIS_ISA_SET_FAT_NOP:
		return FREQUENCY_PLAIN;
	default:
		return FREQUENCY_VECTOR;
	}
}

enum frequency_kind kind_x86_64(const uint8_t *code, size_t size)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction in;
	ZydisDecoder decoder;
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, size, &in, operands)))
		return FREQUENCY_PLAIN;
	enum frequency_kind kind = kind_of_category(&in);
	if (kind == FREQUENCY_SLOW)
		return kind;
	bool stores = false;
	for (unsigned i = 0; i < in.operand_count; i++) {
		if (operands[i].type != ZYDIS_OPERAND_TYPE_MEMORY ||
		    operands[i].mem.type != ZYDIS_MEMOP_TYPE_MEM)
			continue;
		if (operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_READ)
			return FREQUENCY_LOAD;
		stores |= (operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
	}
	return stores ? FREQUENCY_STORE : kind;
}
