/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls that a process may use which reads foreign bytes: it can read files, manage its own memory
 * and threads, and use the socket that it was given. Even if a malicious file takes the process over, it can
 * start nothing, connect to nobody, and touch no other process.
 *
 * Every other call fails with ENOSYS, as on an old kernel. Libraries have fallbacks for most of them.
 */
#include <elf.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "apart/apart.h"

extern const Elf64_Ehdr __ehdr_start; /* our own ELF header; the linker defines it */

static const int allowed[] = {
	/* files; Landlock forbids to open them for writing, if the kernel has it */
	SYS_read, SYS_pread64, SYS_readv, SYS_write, SYS_writev, SYS_pwrite64, SYS_lseek,
	SYS_openat, SYS_close, SYS_fstat, SYS_newfstatat, SYS_statx, SYS_fcntl, SYS_readlinkat,
	SYS_faccessat, SYS_faccessat2, SYS_getdents64, SYS_ftruncate, SYS_memfd_create,
#ifdef SYS_readlink
	SYS_readlink,
#endif
#ifdef SYS_access
	SYS_access,
#endif
	/* memory */
	SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_sysinfo,
	SYS_prlimit64,
	/* threads, their signals, and the end */
	SYS_futex, SYS_set_robust_list, SYS_rseq, SYS_sched_yield, SYS_sched_getaffinity,
	SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack, SYS_getpid,
	SYS_gettid, SYS_exit, SYS_exit_group, SYS_restart_syscall,
	/* the socket */
	SYS_recvmsg, SYS_sendmsg,
	/* identity and time */
	SYS_clock_gettime, SYS_gettimeofday, SYS_getrandom, SYS_uname};

#define CALLS (sizeof allowed / sizeof *allowed)

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define LOAD_LOW_HALF(argument)            \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, \
		 offsetof(struct seccomp_data, args) + (argument) * sizeof(__u64))
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, action)
#define UNLESS_EQUAL_SKIP(value, count) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, count)
#define UNLESS_SET_SKIP(bits, count) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, count)
#define ABSENT (SECCOMP_RET_ERRNO | ENOSYS)

void apart_restrict_calls(void)
{
	const __u32 architecture = __ehdr_start.e_machine | __AUDIT_ARCH_64BIT | __AUDIT_ARCH_LE;
	const struct sock_filter head[] = {
		LOAD(arch),
		UNLESS_EQUAL_SKIP(architecture, 1),
		BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		LOAD(nr),
		/* clone: only threads of this process, no new process */
		UNLESS_EQUAL_SKIP(SYS_clone, 4),
		LOAD_LOW_HALF(0),
		UNLESS_SET_SKIP(CLONE_THREAD, 1),
		RETURN(SECCOMP_RET_ALLOW),
		RETURN(ABSENT),
		/* tgkill: only signals to itself, as abort() sends */
		UNLESS_EQUAL_SKIP(SYS_tgkill, 4),
		LOAD_LOW_HALF(0),
		UNLESS_EQUAL_SKIP((__u32)getpid(), 1),
		RETURN(SECCOMP_RET_ALLOW),
		RETURN(ABSENT),
	};
	struct sock_filter filter[sizeof head / sizeof *head + 2 * CALLS + 1];
	memcpy(filter, head, sizeof head);
	size_t count = sizeof head / sizeof *head;
	for (size_t i = 0; i < CALLS; i++) {
		filter[count++] = (struct sock_filter)UNLESS_EQUAL_SKIP((__u32)allowed[i], 1);
		filter[count++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
	}
	filter[count++] = (struct sock_filter)RETURN(ABSENT);
	const struct sock_fprog program = {(unsigned short)count, filter};
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}
