/* SPDX-License-Identifier: Apache-2.0 */
#include "isa/insn.h"

const struct isa *isa_for_machine(uint16_t elf_machine)
{
	static const struct isa *const all[] = {&isa_x86_64, &isa_aarch64};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		if (all[i]->elf_machine == elf_machine)
			return all[i];
	return NULL;
}
