/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* agent/cpu.h for aarch64. Only that file includes this. */

#define CPU_HERE unwind_cpu_aarch64
#define CPU_AUDIT AUDIT_ARCH_AARCH64

/* The context has them in the wanted order already: x0 to x30, then SP. */
static inline const uint64_t *cpu_registers(const ucontext_t *context, uint64_t *room)
{
	(void)room;
	return (const uint64_t *)context->uc_mcontext.regs;
}

static inline uint64_t cpu_thread_pointer(void)
{
	uint64_t pointer;
	__asm__("mrs %0, tpidr_el0" : "=r"(pointer));
	return pointer;
}

static inline uint64_t cpu_pc(const ucontext_t *context)
{
	return context->uc_mcontext.pc;
}
