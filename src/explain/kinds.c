/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/kinds.h"

#include "isa/insn.h"

enum frequency_kind frequency_kind_of(const struct isa *isa, const uint8_t *code, size_t size)
{
	struct insn insn;
	isa->decode(code, size, 0, &insn);
	switch (insn.kind) {
	case INSN_BRANCH:
		return FREQUENCY_BRANCH;
	case INSN_JUMP:
		return FREQUENCY_JUMP;
	case INSN_CALL:
	case INSN_CALL_INDIRECT:
	case INSN_JUMP_INDIRECT:
	case INSN_RETURN:
		return FREQUENCY_CALL;
	case INSN_NOP:
		return FREQUENCY_PLAIN;
	case INSN_OTHER:
		return isa == &isa_x86_64 ? kind_x86_64(code, size) : kind_aarch64(code, size);
	default:
		return FREQUENCY_SLOW;
	}
}
