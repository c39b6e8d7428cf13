/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the stepper must know about a CPU: one constant instance each. */
#include <stdbool.h>
#include <stdint.h>

#define CPU_REGISTERS 32
#define CPU_NO_REGISTER 0xff

struct unwind_cpu {
	uint16_t elf_machine;
	uint8_t sp, fp, link, extra; /* DWARF numbers; link: CPU_NO_REGISTER where a call pushes */
	uint8_t call_pushes;         /* bytes that a call puts on the stack */
	uint8_t red_zone;            /* bytes below SP that neither calls nor signals touch */
	uint8_t kept_below; /* bytes below SP in which code keeps what a walk needs: Go keeps FP there */
	uint64_t address_bits; /* a code pointer without its signature: address & this */

	/* The signal frame that the kernel pushes, as offsets from SP in the trampoline. */
	uint16_t signal_pc, signal_info;
	uint16_t signal_registers[CPU_REGISTERS]; /* 0: not saved there */
};

extern const struct unwind_cpu unwind_cpu_x86_64, unwind_cpu_aarch64;

/* NULL where the machine is not one of ours. */
const struct unwind_cpu *unwind_cpu_for(uint16_t elf_machine);
