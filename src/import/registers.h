/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How perf numbers the registers of a CPU: registers_CPU.c, one constant instance each. */
#include <stdbool.h>
#include <stdint.h>

#include "unwind/cpu.h"

#define PERF_REGISTERS_MAX 64

struct perf_cpu {
	uint16_t elf_machine;
	uint8_t pc;                     /* perf's number */
	uint8_t numbers[CPU_REGISTERS]; /* perf's, by DWARF number; PERF_NO_REGISTER: none */
};
#define PERF_NO_REGISTER 0xff

extern const struct perf_cpu perf_cpu_x86_64, perf_cpu_aarch64;

/* By the name that uname gives: "x86_64"; NULL where the machine is not one of ours. */
const struct perf_cpu *perf_cpu_named(const char *name);
const struct perf_cpu *perf_cpu_for(uint16_t elf_machine);

/* Fills `out` (CPU_REGISTERS, by DWARF number; 0 where it was not recorded) and *pc from the words
   of a sample. False where SP or PC are missing. */
bool registers_convert(const struct perf_cpu *cpu, uint64_t mask, const uint8_t *words,
		       uint64_t *out, uint64_t *pc);
/* One register by DWARF number; false where it was not recorded. */
bool registers_one(const struct perf_cpu *cpu, uint64_t mask, const uint8_t *words, unsigned number,
		   uint64_t *out);
