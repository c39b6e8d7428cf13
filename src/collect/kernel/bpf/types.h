/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once
/* The few types of the kernel that the sampler knows. The loader finds their fields by name in the
   running kernel (CO-RE). maps.h includes it. */
#if defined(__TARGET_ARCH_x86)
#include "collect/kernel/bpf/cpu_x86_64.h"
#else
#include "collect/kernel/bpf/cpu_aarch64.h"
#endif

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct vm_unmapped_area_info {
	unsigned long length;
};

struct signal_struct {
	atomic_t live;
	int group_exit_code;
};

struct sched_entity {
	__u64 sum_exec_runtime;
};

struct sched_info {
	unsigned long long run_delay;
};

struct mm_struct {
	unsigned long start_stack;
};

struct task_struct {
	struct thread_info thread_info;
	struct thread_struct thread;
	unsigned int __state;
	int on_cpu;
	struct mm_struct *mm;
	int pid, tgid;
	int exit_code;
	unsigned int flags;
	unsigned int in_execve : 1;
	struct signal_struct *signal;
	struct sched_entity se;
	struct sched_info sched_info;
	__u64 start_time, start_boottime;
	char comm[16];
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

/* Reads the user registers of the current thread, by DWARF number, then its PC. */
static inline __attribute__((always_inline)) long read_registers(uint64_t *out)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	return cpu_registers((void *)bpf_task_pt_regs(task), out);
}
