/* SPDX-License-Identifier: Apache-2.0 */
#include "isa/operands.h"

#include <elf.h>

#include "isa/insn.h"
#include "isa/operands_cpu.h"

void operands_read(const struct isa *isa, const uint8_t *code, size_t size, const char *text,
		   struct operands *out)
{
	*out = (struct operands){.base = INSN_NO_REG, .stepper = INSN_NO_REG};
	if (isa->elf_machine == EM_AARCH64)
		operands_aarch64(text, out);
	else
		operands_x86_64(code, size, out);
	out->stack = out->base == isa->sp && out->address == (uint64_t)1 << isa->sp;
}
