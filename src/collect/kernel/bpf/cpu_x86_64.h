/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once
/* What the sampler must know about x86-64: where registers are, and what system calls look like. types.h
   includes it. CO-RE ignores what follows ___ in the name of a type. */
#define CO_RE __attribute__((preserve_access_index))

struct thread_struct {
	unsigned long fsbase;
} CO_RE;

struct thread_info {
	unsigned long flags;
	unsigned int status;
} CO_RE;

struct pt_regs___kernel {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip,
		cs, flags, sp, ss;
} CO_RE;

/* By DWARF number; the PC is last. */
static inline __attribute__((always_inline)) long cpu_registers(struct pt_regs___kernel *regs,
								uint64_t *out)
{
	out[0] = regs->ax;
	out[1] = regs->dx;
	out[2] = regs->cx;
	out[3] = regs->bx;
	out[4] = regs->si;
	out[5] = regs->di;
	out[6] = regs->bp;
	out[7] = regs->sp;
	out[8] = regs->r8;
	out[9] = regs->r9;
	out[10] = regs->r10;
	out[11] = regs->r11;
	out[12] = regs->r12;
	out[13] = regs->r13;
	out[14] = regs->r14;
	out[15] = regs->r15;
	out[KERNEL_REGISTERS] = regs->ip;
	return 0;
}

/* For the registers that an event interrupted. They have their public names there. */
#define CPU_IN_KERNEL(regs) (!((regs)->cs & 3))
#define CPU_EVENT_PC(regs) ((regs)->rip)

/* For the user registers that every walk begins with. */
#define CPU_PC(regs) ((regs)->ip)
#define CPU_SP(regs) ((regs)->sp)
#define CPU_FP(regs) ((regs)->bp)
#define CPU_LINK(regs) 0 /* there is none */
#define CPU_GO 14        /* register of Go's g, by DWARF number */
/* Address of word number i of the static thread-local variables, from the last one on. */
#define CPU_GO_WORD(tp, i) ((tp)-8 - 8ull * (i))
#define CPU_EXTRA(regs) ((regs)->bx)

/* Whether clone or clone3 has just returned 0, as it does in a child. The number of the call is lost,
   but RCX still has the address behind it, and the instruction before the call has the number. */
static inline __attribute__((always_inline)) bool cpu_at_birth(struct pt_regs___kernel *regs)
{
	uint8_t code[7] = {0}; /* mov $NUMBER, %eax; syscall */
	if (regs->ax || regs->ip - regs->cx >= 16 ||
	    bpf_probe_read_user(code, sizeof code, (void *)(regs->cx - sizeof code)))
		return false;
	uint32_t number = code[1] | (uint32_t)code[2] << 8;
	return code[0] == 0xb8 && (number == 56 || number == 435) && !code[3] && !code[4] &&
	       code[5] == 0x0f && code[6] == 0x05;
}

/* Whether the thread is in sigreturn: the kernel is about to go back to what a signal interrupted, but
   the PC is still behind the system call. */
static inline __attribute__((always_inline)) bool cpu_in_sigreturn(struct pt_regs___kernel *regs)
{
	uint16_t code = 0;
	return regs->orig_ax == 15 &&
	       !bpf_probe_read_user(&code, sizeof code, (void *)(regs->ip - sizeof code)) &&
	       code == 0x050f;
}
#define CPU_CALL_SIZE 2 /* size of syscall */

/* The thread pointer. If a C library made the thread, it points to the end of the thread's stack. */
#define cpu_thread_pointer(task) ((task)->thread.fsbase)

/* What the CPU does that runs this task, as bits; negative: not known. It is a variable of the CPU. Programs may name
   such variables only where the kernel lists the names of all its data, which kernels for small virtual machines do
   not. So it is found by its distance from the run queue of the CPU, to which the task leads (off.c). */
struct cfs_rq___kernel {
	void *rq;
} CO_RE;

struct sched_entity___kernel {
	struct cfs_rq___kernel *cfs_rq;
} CO_RE;

struct task_struct___kernel {
	struct sched_entity___kernel se;
} CO_RE;

static inline __attribute__((always_inline)) int64_t cpu_preempt_count(const void *task,
								       int64_t distance)
{
	const struct task_struct___kernel *t = task;
	uint32_t count = 0;
	if (!distance || !bpf_core_field_exists(t->se.cfs_rq))
		return -1;
	const char *queue = t->se.cfs_rq->rq;
	return bpf_probe_read_kernel(&count, sizeof count, queue + distance) ? -1 : count;
}

/* Argument number i, below 3, of the system call that begins; and whether it came as from a program of 32 bits, whose
   calls have other numbers. */
#define CPU_ARGUMENT(regs, i) ((i) == 0 ? (regs)->di : (i) == 1 ? (regs)->si : (regs)->dx)
#define CPU_IS_COMPAT(task) ((task)->thread_info.status & 2) /* TS_COMPAT */

/* Argument number i, below KERNEL_PARAMETERS, of the function that begins; and the result of one that returns. */
#define CPU_PARAMETER(regs, i)   \
	((i) == 0   ? (regs)->di \
	 : (i) == 1 ? (regs)->si \
	 : (i) == 2 ? (regs)->dx \
	 : (i) == 3 ? (regs)->cx \
	 : (i) == 4 ? (regs)->r8 \
		    : (regs)->r9)
#define CPU_RESULT(regs) ((regs)->ax)
