/* SPDX-License-Identifier: Apache-2.0 */
#include "import/registers.h"

#include <string.h>

#include "import/perf_sample.h"

const struct perf_cpu *perf_cpu_named(const char *name)
{
	if (!strcmp(name, "x86_64"))
		return &perf_cpu_x86_64;
	return !strcmp(name, "aarch64") || !strcmp(name, "arm64") ? &perf_cpu_aarch64 : NULL;
}

const struct perf_cpu *perf_cpu_for(uint16_t elf_machine)
{
	if (elf_machine == perf_cpu_x86_64.elf_machine)
		return &perf_cpu_x86_64;
	return elf_machine == perf_cpu_aarch64.elf_machine ? &perf_cpu_aarch64 : NULL;
}

/* The words are in the order of the mask's bits. */
static bool find(uint64_t mask, const uint8_t *words, unsigned number, uint64_t *out)
{
	if (number >= PERF_REGISTERS_MAX || !(mask >> number & 1))
		return false;
	uint64_t below = mask & (((uint64_t)1 << number) - 1);
	*out = perf_sample_word(words, (uint64_t)__builtin_popcountll(below));
	return true;
}

bool registers_one(const struct perf_cpu *cpu, uint64_t mask, const uint8_t *words, unsigned number,
		   uint64_t *out)
{
	return number < CPU_REGISTERS && find(mask, words, cpu->numbers[number], out);
}

bool registers_convert(const struct perf_cpu *cpu, uint64_t mask, const uint8_t *words,
		       uint64_t *out, uint64_t *pc)
{
	const struct unwind_cpu *unwind = unwind_cpu_for(cpu->elf_machine);
	bool has_sp = false;
	memset(out, 0, CPU_REGISTERS * sizeof *out);
	for (unsigned i = 0; i < CPU_REGISTERS; i++)
		if (registers_one(cpu, mask, words, i, &out[i]) && i == unwind->sp)
			has_sp = true;
	return has_sp && find(mask, words, cpu->pc, pc);
}
