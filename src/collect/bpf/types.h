/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once
/*
 * The little that the sampler knows of the kernel's own types: fields by name,
 * which the loader finds in the running kernel (CO-RE). And what it shares with
 * the unwinder, whose headers are for the C library.
 */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live;
	int group_exit_code;
};

struct sched_entity {
	__u64 sum_exec_runtime;
};

struct mm_struct {
	unsigned long start_stack;
};

struct thread_struct {
#if defined(__TARGET_ARCH_x86)
	unsigned long fsbase;
#else
	struct {
		unsigned long tp_value;
	} uw;
#endif
};

struct task_struct {
	struct thread_struct thread;
	struct mm_struct *mm;
	int pid, tgid;
	int exit_code;
	unsigned int flags;
	unsigned int in_execve : 1;
	struct signal_struct *signal;
	struct sched_entity se;
	char comm[16];
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs___kernel { /* CO-RE leaves out what follows ___ */
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip,
		cs, flags, sp, ss;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs___kernel { /* CO-RE leaves out what follows ___ */
	__u64 regs[31];
	__u64 sp, pc, pstate;
};
#endif

#pragma clang attribute pop

struct recipe { /* unwind/recipe.h */
	uint8_t cfa, cfa_reg, ra, fp, extra, source;
	int16_t cfa_vg;
	int32_t cfa_offset, cfa_add, ra_offset, fp_offset, extra_offset, reserved;
};

/* The user registers of the current thread by DWARF number, then its PC. */
static inline __attribute__((always_inline)) long read_registers(uint64_t *out)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs(task);
#if defined(__TARGET_ARCH_arm64)
	return bpf_probe_read_kernel(out, 33 * 8, regs);
#else
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
	out[32] = regs->ip;
	return 0;
#endif
}

/* The thread's own pointer, which lies at the end of its stack where a C library made the thread. */
static inline __attribute__((always_inline)) uint64_t read_thread_pointer(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return task->thread.fsbase;
#else
	return task->thread.uw.tp_value;
#endif
}
