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

/* What a descriptor leads to. */
struct super_block {
	unsigned int s_dev;
};

struct inode {
	unsigned short i_mode;
	unsigned long i_ino;
	__u32 i_generation;
	struct super_block *i_sb;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file_operations;

struct file {
	struct inode *f_inode;
	const struct file_operations *f_op;
	struct path f_path;
	void *private_data;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct in6_addr {
	__u8 bytes[16];
};

struct sock_common {
	__u32 skc_daddr;
	__u16 skc_dport, skc_num;
	unsigned short skc_family;
	struct in6_addr skc_v6_daddr;
};

struct sock {
	struct sock_common __sk_common;
	__u16 sk_type;
};

struct socket {
	struct sock *sk;
};

struct sockaddr_un {
	char sun_path[108];
};

struct unix_address {
	struct sockaddr_un name[0];
};

struct unix_sock {
	struct unix_address *addr;
	struct sock *peer;
};

struct task_struct {
	struct thread_info thread_info;
	struct thread_struct thread;
	unsigned int __state;
	int on_cpu;
	struct mm_struct *mm;
	struct files_struct *files;
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
