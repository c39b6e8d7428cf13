/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* counter/cpu.h for x86-64: the base of the GS segment. Others include cpu.h. */
#include <asm/prctl.h>
#include <stdbool.h>
#include <stddef.h>

#include "safe/syscall.h"

#define CPU_OWN_WORD false

static inline uint64_t cpu_bank(void)
{
	uint64_t bank = 0;
	SAFE_SYSCALL(SYS_arch_prctl, ARCH_GET_GS, &bank, 0, 0);
	return bank;
}

static inline void cpu_set_bank(uint64_t bank)
{
	SAFE_SYSCALL(SYS_arch_prctl, ARCH_SET_GS, bank, 0, 0);
}

static inline uint64_t cpu_word(void)
{
	return 0;
}

static inline bool cpu_has_atomics(void)
{
	return true;
}

static inline const char *cpu_trouble(void)
{
	return cpu_bank() ? "it uses the GS register itself" : NULL;
}

static inline bool cpu_set_first_bank(uint64_t bank)
{
	(void)bank;
	return true;
}
