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

/* Stores the registers that a call preserves. Returns the PC. */
static inline __attribute__((always_inline)) uint64_t cpu_capture(uint64_t *registers)
{
	uint64_t pc, sp;
	__asm__ volatile("adr %0, .\n\t"
			 "mov %1, sp\n\t"
			 "stp x19, x20, [%2, #152]\n\t"
			 "stp x21, x22, [%2, #168]\n\t"
			 "stp x23, x24, [%2, #184]\n\t"
			 "stp x25, x26, [%2, #200]\n\t"
			 "stp x27, x28, [%2, #216]\n\t"
			 "stp x29, x30, [%2, #232]\n\t"
			 : "=&r"(pc), "=&r"(sp)
			 : "r"(registers)
			 : "memory");
	registers[31] = sp;
	return pc;
}

static inline uint64_t cpu_thread_pointer(void)
{
	uint64_t pointer;
	__asm__("mrs %0, tpidr_el0" : "=r"(pointer));
	return pointer;
}

/* Whether the instruction before a return address is a call. */
static inline bool cpu_is_after_call(uint64_t address)
{
	uint32_t code = *(const uint32_t *)(address - 4);
	return (code & 0xfc000000) == 0x94000000 || (code & 0xfffffc1f) == 0xd63f0000;
}

/* Whether the procedure at `pc` will read its return address from memory again. It has done so already if the
   link register holds it. (Or it has just stored it. Nothing is lost by a no.) */
static inline bool cpu_will_read(const uint64_t *registers, uint64_t pc, uint64_t address)
{
	(void)pc;
	return registers[CPU_HERE.link] != address;
}

static inline bool cpu_signs(void)
{
	return getauxval(AT_HWCAP) & HWCAP_PACA;
}

/* Whether the CPU compares return addresses with a stack of its own. */
static inline bool cpu_has_shadow_stack(void)
{
	uint64_t state = 0;
	return SAFE_SYSCALL(SYS_prctl, 74 /* PR_GET_SHADOW_STACK_STATUS */, &state, 0, 0) == 0 &&
	       state & 1;
}

#define CPU_GENERAL 32u
#define CPU_FOLLOW trail_follow_aarch64

static inline uint64_t cpu_flags(const ucontext_t *context)
{
	return context->uc_mcontext.pstate;
}

static inline uint64_t cpu_pc(const ucontext_t *context)
{
	return context->uc_mcontext.pc;
}
