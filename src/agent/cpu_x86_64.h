/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* agent/cpu.h for x86-64. Only that file includes this. */

#define CPU_HERE unwind_cpu_x86_64
#define CPU_AUDIT AUDIT_ARCH_X86_64

static inline const uint64_t *cpu_registers(const ucontext_t *context, uint64_t *room)
{
	static const uint8_t order[16] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
					  REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
					  REG_R12, REG_R13, REG_R14, REG_R15};
	for (int i = 0; i < 16; i++)
		room[i] = (uint64_t)context->uc_mcontext.gregs[order[i]];
	return room;
}

/* Stores the registers that a call preserves. Returns the PC. */
static inline __attribute__((always_inline)) uint64_t cpu_capture(uint64_t *registers)
{
	uint64_t pc;
	__asm__ volatile("lea 0(%%rip), %0\n\t"
			 "mov %%rbx, 24(%1)\n\t"
			 "mov %%rbp, 48(%1)\n\t"
			 "mov %%rsp, 56(%1)\n\t"
			 "mov %%r12, 96(%1)\n\t"
			 "mov %%r13, 104(%1)\n\t"
			 "mov %%r14, 112(%1)\n\t"
			 "mov %%r15, 120(%1)\n\t"
			 : "=&r"(pc)
			 : "r"(registers)
			 : "memory");
	return pc;
}

static inline uint64_t cpu_thread_pointer(void)
{
	uint64_t pointer;
	__asm__("mov %%fs:0, %0" : "=r"(pointer));
	return pointer;
}

/* Whether the instruction before a return address is a call: direct, or in one of the lengths of an
   indirect one. */
static inline bool cpu_is_after_call(uint64_t address)
{
	const uint8_t *after = (const uint8_t *)address;
	if (after[-5] == 0xe8)
		return true;
	for (int size = 2; size <= 7; size++)
		if (after[-size] == 0xff && (after[1 - size] >> 3 & 7) == 2)
			return true;
	return false;
}

/* Whether the procedure at `pc` is the one that will return. An entry of the linker's table (.plt.sec) is not: it
   leads to any procedure, also to those that look at their return address. */
static inline bool cpu_will_read(const uint64_t *registers, uint64_t pc, uint64_t address)
{
	const uint8_t *code = (const uint8_t *)pc;
	(void)registers;
	(void)address;
	bool jumps = code[0] == 0xff && code[1] == 0x25;
	bool bound = code[0] == 0xf2 && code[1] == 0xff && code[2] == 0x25;
	bool entry = code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && code[3] == 0xfa;
	return !jumps && !bound && !entry;
}

static inline bool cpu_signs(void)
{
	return false;
}

/* Whether the CPU compares return addresses with a stack of its own. */
static inline bool cpu_has_shadow_stack(void)
{
	uint64_t features = 0;
	return SAFE_SYSCALL(SYS_arch_prctl, 0x5005 /* ARCH_SHSTK_STATUS */, &features, 0, 0) == 0 &&
	       features & 1;
}

#define CPU_GENERAL 16u
#define CPU_FOLLOW trail_follow_x86_64

static inline uint64_t cpu_flags(const ucontext_t *context)
{
	return (uint64_t)context->uc_mcontext.gregs[REG_EFL];
}

static inline uint64_t cpu_pc(const ucontext_t *context)
{
	return (uint64_t)context->uc_mcontext.gregs[REG_RIP];
}
