/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* counter/cpu.h for aarch64, where no register is free for banks. Only that file includes this. */

#define CPU_TROUBLE "paths are not counted on this CPU"

static inline uint64_t cpu_bank(void)
{
	return 0;
}

static inline void cpu_set_bank(uint64_t bank)
{
	(void)bank;
}
