/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#define CPU_HERE unwind_cpu_aarch64
#define CPU_AUDIT AUDIT_ARCH_AARCH64

/* They lie in the context as they are wanted, SP after the 31 others. */
static inline const uint64_t *cpu_registers(const ucontext_t *context, uint64_t *room)
{
	(void)room;
	return (const uint64_t *)context->uc_mcontext.regs;
}

static inline uint64_t cpu_pc(const ucontext_t *context)
{
	return context->uc_mcontext.pc;
}
