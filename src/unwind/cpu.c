/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/cpu.h"

#include <stddef.h>

const struct unwind_cpu *unwind_cpu_for(uint16_t elf_machine)
{
	if (elf_machine == unwind_cpu_x86_64.elf_machine)
		return &unwind_cpu_x86_64;
	if (elf_machine == unwind_cpu_aarch64.elf_machine)
		return &unwind_cpu_aarch64;
	return NULL;
}
