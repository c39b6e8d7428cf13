/* SPDX-License-Identifier: Apache-2.0 */
#include "copies/use.h"

#include <elf.h>

const struct use_cpu *use_cpu_for(uint16_t elf_machine)
{
	if (elf_machine == EM_X86_64)
		return &use_x86_64;
	return elf_machine == EM_AARCH64 ? &use_aarch64 : NULL;
}
