/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* counter/cpu.h for x86-64: the base of the GS segment. Only that file includes this. */
#include <asm/prctl.h>

#include "safe/syscall.h"

#define CPU_TROUBLE NULL /* why this CPU cannot do it */

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
