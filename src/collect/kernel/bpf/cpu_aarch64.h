/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once
/* What the sampler must know about aarch64: where registers are, and what system calls look like.
   types.h includes it. CO-RE ignores what follows ___ in the name of a type. */
#define CO_RE __attribute__((preserve_access_index))

struct thread_struct {
	struct {
		unsigned long tp_value;
	} uw;
} CO_RE;

struct thread_info {
	unsigned long flags;
	__u64 preempt_count; /* and in the upper half, whether to switch */
} CO_RE;

struct pt_regs___kernel {
	__u64 regs[31];
	__u64 sp, pc, pstate;
	__s32 syscallno;
} CO_RE;

/* The kernel has them in the order of their DWARF numbers: x0 to x30, SP, then the PC. */
static inline __attribute__((always_inline)) long cpu_registers(struct pt_regs___kernel *regs,
								uint64_t *out)
{
	return bpf_probe_read_kernel(out, (KERNEL_REGISTERS + 1) * sizeof *out, regs);
}

/* For the registers that an event interrupted. */
#define CPU_IN_KERNEL(regs) ((regs)->pstate & 15) /* not at EL0 */
#define CPU_EVENT_PC(regs) ((regs)->pc)

/* For the user registers that every walk begins with. */
#define CPU_PC(regs) ((regs)->pc)
#define CPU_SP(regs) ((regs)->sp)
#define CPU_FP(regs) ((regs)->regs[29])
#define CPU_LINK(regs) ((regs)->regs[30])
#define CPU_GO 28 /* register of Go's g, by DWARF number */
/* Address of word number i of the static thread-local variables, from the first one on. */
#define CPU_GO_WORD(tp, i) ((tp) + 16 + 8ull * (i))
#define CPU_EXTRA(regs) ((regs)->regs[19])

/* Whether clone or clone3 has just returned 0, as it does in a child. */
static inline __attribute__((always_inline)) bool cpu_at_birth(struct pt_regs___kernel *regs)
{
	const uint32_t call = 0xd4000001u; /* svc #0 */
	uint32_t code[2] = {0};
	if (regs->regs[0] || (regs->regs[8] != 220 && regs->regs[8] != 435))
		return false;
	return !bpf_probe_read_user(code, sizeof code, (void *)(regs->pc - sizeof code)) &&
	       (code[0] == call || code[1] == call);
}

/* Whether the thread is in sigreturn: the kernel is about to go back to what a signal interrupted, but
   the PC is still behind the system call. */
static inline __attribute__((always_inline)) bool cpu_in_sigreturn(struct pt_regs___kernel *regs)
{
	/* The kernel sets syscallno late, and x8 soon gets another value: so both are tested. */
	uint32_t code = 0;
	return (regs->syscallno == 139 || regs->regs[8] == 139) &&
	       !bpf_probe_read_user(&code, sizeof code, (void *)(regs->pc - sizeof code)) &&
	       code == 0xd4000001u;
}
#define CPU_CALL_SIZE 4 /* size of svc */

/* The thread pointer. If a C library made the thread, it points to the end of the thread's stack. */
#define cpu_thread_pointer(task) ((task)->thread.uw.tp_value)

/* What the CPU does that runs this task, as bits. */
#define cpu_preempt_count(task, distance) ((int64_t)(uint32_t)(task)->thread_info.preempt_count)

/* Argument number i, below 3, of the system call that begins; and whether a program of 32 bits calls, whose calls
   have other numbers. */
#define CPU_ARGUMENT(regs, i) ((regs)->regs[i])
#define CPU_IS_COMPAT(task) ((task)->thread_info.flags >> 22 & 1) /* TIF_32BIT */

/* Argument number i, below KERNEL_PARAMETERS, of the function that begins; and the result of one that returns. */
#define CPU_PARAMETER(regs, i) ((regs)->regs[i])
#define CPU_RESULT(regs) ((regs)->regs[0])
