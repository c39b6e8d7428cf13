/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The innermost function that says something counts. In the kernel it is that of the thing that is waited for:
 *
 *     vfs_read -> anon_pipe_read                               pipe
 *     do_page_fault -> handle_mm_fault -> filemap_fault        page fault
 *     do_futex -> futex_wait -> futex_do_wait                  futex: what it is, the program's functions say
 *
 * Some reasons have others as their means. A page fault reads from a disk, and so does a file system, or the kernel
 * when it frees memory. These reasons stay.
 */
#include "analyze/reasons.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/scopes.h"
#include "base/err.h"
#include "profile/profile.h"

static const char *const names[REASON_COUNT] = {
	[REASON_ON_CPU] = "on a CPU",
	[REASON_CPU] = "a CPU",
	[REASON_QUOTA] = "CPU quota",
	[REASON_LOCK] = "lock",
	[REASON_CONDITION] = "condition",
	[REASON_SEMAPHORE] = "semaphore",
	[REASON_BARRIER] = "barrier",
	[REASON_THREAD] = "end of a thread",
	[REASON_FUTEX] = "futex",
	[REASON_SLEEP] = "sleep",
	[REASON_POLL] = "poll",
	[REASON_PIPE] = "pipe",
	[REASON_SOCKET] = "socket",
	[REASON_TERMINAL] = "terminal",
	[REASON_EVENT] = "event",
	[REASON_MESSAGE] = "message",
	[REASON_SIGNAL] = "signal",
	[REASON_STOPPED] = "stopped",
	[REASON_CHILD] = "child process",
	[REASON_DISK] = "disk",
	[REASON_FILE_SYSTEM] = "file system",
	[REASON_PAGE_FAULT] = "page fault",
	[REASON_MEMORY] = "memory",
	[REASON_FILE_LOCK] = "file lock",
	[REASON_KERNEL_LOCK] = "kernel lock",
	[REASON_IO_URING] = "io_uring",
	[REASON_GPU] = "GPU",
	[REASON_VIRTUAL_CPU] = "virtual CPU",
	[REASON_OTHER] = "other",
};

const char *reason_name(enum reason reason)
{
	return reason < REASON_COUNT ? names[reason] : names[REASON_OTHER];
}

/* ---- the tables ---- */

/* Names without underscores in front, and without what follows a dot (what compilers append). A star stands for any
   rest. The first that fits counts. */
struct rule {
	const char *name;
	uint8_t reason;
};

static const struct rule in_kernel[] = {
	{"futex*", REASON_FUTEX},
	{"do_futex", REASON_FUTEX},
	/* locks of the kernel itself */
	{"mutex_lock*", REASON_KERNEL_LOCK},
	{"ww_mutex_lock*", REASON_KERNEL_LOCK},
	{"rt_mutex_*", REASON_KERNEL_LOCK},
	{"rt_spin_lock*", REASON_KERNEL_LOCK},
	{"rwbase_*", REASON_KERNEL_LOCK},
	{"rwsem_*", REASON_KERNEL_LOCK},
	{"down", REASON_KERNEL_LOCK},
	{"down_*", REASON_KERNEL_LOCK},
	{"percpu_down_*", REASON_KERNEL_LOCK},
	{"percpu_rwsem_*", REASON_KERNEL_LOCK},
	/* time */
	{"hrtimer_nanosleep*", REASON_SLEEP},
	{"do_nanosleep", REASON_SLEEP},
	{"common_nsleep*", REASON_SLEEP},
	{"timerfd_read*", REASON_SLEEP},
	{"msleep*", REASON_SLEEP},
	{"usleep_range*", REASON_SLEEP},
	{"alarm_timer_nsleep", REASON_SLEEP},
	/* several at once */
	{"poll_schedule_timeout", REASON_POLL},
	{"do_poll", REASON_POLL},
	{"do_sys_poll", REASON_POLL},
	{"do_select", REASON_POLL},
	{"core_sys_select", REASON_POLL},
	{"ep_poll", REASON_POLL},
	{"do_epoll_wait", REASON_POLL},
	{"io_cqring_*", REASON_IO_URING},
	{"io_uring_*", REASON_IO_URING},
	{"read_events", REASON_DISK}, /* io_getevents */
	/* pipes */
	{"pipe_*", REASON_PIPE},
	{"anon_pipe_*", REASON_PIPE},
	{"fifo_pipe_*", REASON_PIPE},
	{"fifo_open", REASON_PIPE},
	{"wait_for_partner", REASON_PIPE},
	{"splice_from_pipe*", REASON_PIPE},
	{"ipipe_prep", REASON_PIPE},
	{"opipe_prep", REASON_PIPE},
	/* sockets */
	{"unix_*", REASON_SOCKET},
	{"sk_*", REASON_SOCKET},
	{"skb_*", REASON_SOCKET},
	{"sock_*", REASON_SOCKET},
	{"sys_recv*", REASON_SOCKET},
	{"sys_send*", REASON_SOCKET},
	{"sys_accept*", REASON_SOCKET},
	{"sys_connect*", REASON_SOCKET},
	{"inet*", REASON_SOCKET},
	{"tcp_*", REASON_SOCKET},
	{"udp*", REASON_SOCKET},
	{"mptcp_*", REASON_SOCKET},
	{"sctp_*", REASON_SOCKET},
	{"smc_*", REASON_SOCKET},
	{"vsock_*", REASON_SOCKET},
	{"netlink_*", REASON_SOCKET},
	{"packet_recvmsg", REASON_SOCKET},
	/* terminals */
	{"n_tty_*", REASON_TERMINAL},
	{"tty_*", REASON_TERMINAL},
	{"pty_*", REASON_TERMINAL},
	{"uart_*", REASON_TERMINAL},
	{"job_control", REASON_TERMINAL},
	/* other descriptors */
	{"eventfd_*", REASON_EVENT},
	{"inotify_*", REASON_EVENT},
	{"fanotify_*", REASON_EVENT},
	{"evdev_*", REASON_EVENT},
	{"userfaultfd_*", REASON_EVENT},
	{"perf_read", REASON_EVENT},
	{"do_syslog", REASON_EVENT},
	{"syslog_print", REASON_EVENT},
	{"devkmsg_read", REASON_EVENT},
	{"kmsg_read", REASON_EVENT},
	{"ring_buffer_wait*", REASON_EVENT},
	{"tracing_wait_pipe", REASON_EVENT},
	{"seccomp_notify_*", REASON_EVENT},
	{"do_msgrcv", REASON_MESSAGE},
	{"do_msgsnd", REASON_MESSAGE},
	{"do_mq_*", REASON_MESSAGE},
	{"wq_sleep", REASON_MESSAGE},
	{"do_semtimedop", REASON_SEMAPHORE},
	{"binder_*", REASON_MESSAGE},
	/* signals and processes */
	{"do_sigtimedwait", REASON_SIGNAL},
	{"sigsuspend", REASON_SIGNAL},
	{"sys_pause", REASON_SIGNAL},
	{"signalfd_*", REASON_SIGNAL},
	{"do_signal_stop", REASON_STOPPED},
	{"do_jobctl_trap", REASON_STOPPED},
	{"ptrace_stop", REASON_STOPPED},
	{"ptrace_do_notify", REASON_STOPPED},
	{"seccomp_do_user_notification", REASON_STOPPED},
	{"refrigerator", REASON_STOPPED},
	{"do_freezer_trap", REASON_STOPPED},
	{"cgroup_leave_frozen", REASON_STOPPED},
	{"do_wait", REASON_CHILD},
	{"kernel_wait*", REASON_CHILD},
	{"kernel_clone", REASON_CHILD}, /* vfork */
	{"wait_for_vfork_done", REASON_CHILD},
	{"coredump_wait", REASON_THREAD},
	{"de_thread", REASON_THREAD},
	{"zap_pid_ns_processes", REASON_CHILD},
	/* the CPU */
	{"preempt_schedule*", REASON_CPU},
	{"arm64_preempt_schedule_irq", REASON_CPU},
	{"raw_irqentry_exit_cond_resched", REASON_CPU},
	{"irqentry_exit*", REASON_CPU},
	{"cond_resched", REASON_CPU},
	{"do_sched_yield", REASON_CPU},
	{"yield*", REASON_CPU},
	{"exit_to_user_mode*", REASON_CPU},
	{"do_notify_resume", REASON_CPU},
	{"el0t_64_irq*", REASON_CPU},
	{"el1h_64_irq*", REASON_CPU},
	{"el0_interrupt", REASON_CPU},
	{"el1_interrupt", REASON_CPU},
	{"el0_irq*", REASON_CPU},
	{"el1_irq*", REASON_CPU},
	{"asm_sysvec_*", REASON_CPU},
	{"sysvec_*", REASON_CPU},
	{"throttle_cfs_rq_work", REASON_QUOTA},
	/* memory */
	{"handle_mm_fault", REASON_PAGE_FAULT},
	{"do_page_fault", REASON_PAGE_FAULT},
	{"do_user_addr_fault", REASON_PAGE_FAULT},
	{"exc_page_fault", REASON_PAGE_FAULT},
	{"do_swap_page", REASON_PAGE_FAULT},
	{"handle_userfault", REASON_PAGE_FAULT},
	{"migration_entry_wait*", REASON_PAGE_FAULT},
	{"faultin_page*", REASON_PAGE_FAULT},
	{"try_to_free_*", REASON_MEMORY},
	{"shrink_*", REASON_MEMORY},
	{"reclaim_throttle", REASON_MEMORY},
	{"throttle_direct_reclaim", REASON_MEMORY},
	{"alloc_pages_slowpath*", REASON_MEMORY},
	{"alloc_pages_direct_*", REASON_MEMORY},
	{"mem_cgroup_*", REASON_MEMORY},
	{"compact_zone*", REASON_MEMORY},
	{"too_many_isolated", REASON_MEMORY},
	/* locks of files; the file systems below have some of these, too */
	{"locks_lock_inode_wait", REASON_FILE_LOCK},
	{"flock_lock_inode_wait", REASON_FILE_LOCK},
	{"posix_lock_inode_wait", REASON_FILE_LOCK},
	{"fcntl_setlk*", REASON_FILE_LOCK},
	{"do_lock_file_wait", REASON_FILE_LOCK},
	{"break_lease", REASON_FILE_LOCK},
	/* files that others serve */
	{"fuse_*", REASON_FILE_SYSTEM},
	{"request_wait_answer", REASON_FILE_SYSTEM},
	{"nfs*", REASON_FILE_SYSTEM},
	{"rpc_*", REASON_FILE_SYSTEM},
	{"cifs_*", REASON_FILE_SYSTEM},
	{"smb2_*", REASON_FILE_SYSTEM},
	{"compound_send_recv", REASON_FILE_SYSTEM},
	{"p9_*", REASON_FILE_SYSTEM},
	{"v9fs_*", REASON_FILE_SYSTEM},
	{"netfs_*", REASON_FILE_SYSTEM},
	{"ceph_*", REASON_FILE_SYSTEM},
	{"afs_*", REASON_FILE_SYSTEM},
	{"autofs_*", REASON_FILE_SYSTEM},
	/* disks */
	{"io_schedule*", REASON_DISK},
	{"bit_wait_io*", REASON_DISK},
	{"wait_for_completion_io*", REASON_DISK},
	{"folio_wait_*", REASON_DISK},
	{"folio_lock*", REASON_DISK},
	{"wait_on_page_*", REASON_DISK},
	{"lock_page*", REASON_DISK},
	{"wait_on_buffer", REASON_DISK},
	{"lock_buffer", REASON_DISK},
	{"filemap_*", REASON_DISK},
	{"file_write_and_wait_range", REASON_DISK},
	{"generic_file_read_iter", REASON_DISK},
	{"page_cache_*", REASON_DISK},
	{"read_pages", REASON_DISK},
	{"balance_dirty_pages*", REASON_DISK},
	{"vfs_fsync*", REASON_DISK},
	{"do_fsync", REASON_DISK},
	{"sync_*", REASON_DISK},
	{"wb_wait_for_completion", REASON_DISK},
	{"writeback_*", REASON_DISK},
	{"iomap_*", REASON_DISK},
	{"submit_bio*", REASON_DISK},
	{"bio_*", REASON_DISK},
	{"blk_*", REASON_DISK},
	{"blkdev_*", REASON_DISK},
	{"rq_qos_wait", REASON_DISK},
	{"wbt_wait", REASON_DISK},
	{"jbd2_*", REASON_DISK},
	{"ext2_*", REASON_DISK},
	{"ext4_*", REASON_DISK},
	{"xfs_*", REASON_DISK},
	{"xlog_*", REASON_DISK},
	{"btrfs_*", REASON_DISK},
	{"f2fs_*", REASON_DISK},
	{"zfs_*", REASON_DISK},
	{"zil_*", REASON_DISK},
	{"bcachefs_*", REASON_DISK},
	{"erofs_*", REASON_DISK},
	{"squashfs_*", REASON_DISK},
	{"nvme_*", REASON_DISK},
	{"scsi_*", REASON_DISK},
	{"dm_*", REASON_DISK},
	{"md_*", REASON_DISK},
	{"loop_*", REASON_DISK},
	/* devices */
	{"dma_fence_*", REASON_GPU},
	{"dma_resv_*", REASON_GPU},
	{"drm_*", REASON_GPU},
	{"amdgpu_*", REASON_GPU},
	{"i915_*", REASON_GPU},
	{"nvidia_*", REASON_GPU},
	{"kvm_vcpu_block", REASON_VIRTUAL_CPU},
	{"kvm_vcpu_halt", REASON_VIRTUAL_CPU},
	{0},
};

static const struct rule in_program[] = {
	/* locks and the like: glibc and musl, then others */
	{"pthread_mutex_lock*", REASON_LOCK},
	{"pthread_mutex_timedlock*", REASON_LOCK},
	{"pthread_mutex_clocklock*", REASON_LOCK},
	{"pthread_mutex_cond_lock", REASON_LOCK},
	{"pthread_rwlock_*", REASON_LOCK},
	{"lll_lock_wait*", REASON_LOCK},
	{"pthread_once*", REASON_LOCK},
	{"cxa_guard_acquire", REASON_LOCK},
	{"pthread_cond_*", REASON_CONDITION},
	{"pthread_barrier_wait", REASON_BARRIER},
	{"sem_wait*", REASON_SEMAPHORE},
	{"sem_timedwait*", REASON_SEMAPHORE},
	{"sem_clockwait*", REASON_SEMAPHORE},
	{"new_sem_wait*", REASON_SEMAPHORE},
	{"pthread_join*", REASON_THREAD},
	{"pthread_timedjoin*", REASON_THREAD},
	{"pthread_clockjoin*", REASON_THREAD},
	{"take_gil", REASON_LOCK}, /* Python */
	{"PyThread_acquire_lock*", REASON_LOCK},
	{"PyMutex_Lock*", REASON_LOCK},
	{"gomp_mutex_lock*", REASON_LOCK}, /* OpenMP */
	{"gomp_barrier_wait*", REASON_BARRIER},
	{"gomp_team_barrier_wait*", REASON_BARRIER},
	{"kmp_barrier*", REASON_BARRIER},
	{"kmp_fork_barrier*", REASON_BARRIER},
	{"kmp_join_barrier*", REASON_BARRIER},
	{"runtime.lock*", REASON_LOCK}, /* Go */
	{"runtime.notesleep*", REASON_CONDITION},
	{"runtime.notetsleep*", REASON_CONDITION},
	{"runtime.usleep", REASON_SLEEP},
	{"std::sys::sync::mutex*", REASON_LOCK}, /* Rust */
	{"std::sys::sync::rwlock*", REASON_LOCK},
	{"std::sys::sync::once*", REASON_LOCK},
	{"std::sys::sync::condvar*", REASON_CONDITION},
	{"std::sys::sync::thread_parking*", REASON_CONDITION},
	{"parking_lot::raw_mutex*", REASON_LOCK},
	{"parking_lot::raw_rwlock*", REASON_LOCK},
	{"parking_lot::condvar*", REASON_CONDITION},
	/* calls whose functions of the kernel may not be known */
	{"nanosleep", REASON_SLEEP},
	{"clock_nanosleep*", REASON_SLEEP},
	{"sleep", REASON_SLEEP},
	{"usleep", REASON_SLEEP},
	{"poll", REASON_POLL},
	{"ppoll*", REASON_POLL},
	{"select", REASON_POLL},
	{"select64", REASON_POLL},
	{"pselect*", REASON_POLL},
	{"epoll_wait", REASON_POLL},
	{"epoll_pwait*", REASON_POLL},
	{"wait", REASON_CHILD},
	{"wait3", REASON_CHILD},
	{"wait4*", REASON_CHILD},
	{"waitpid", REASON_CHILD},
	{"waitid", REASON_CHILD},
	{"sigwait", REASON_SIGNAL},
	{"sigwaitinfo", REASON_SIGNAL},
	{"sigtimedwait*", REASON_SIGNAL},
	{"sigsuspend", REASON_SIGNAL},
	{"pause", REASON_SIGNAL},
	{"libc_pause", REASON_SIGNAL},
	{"recv", REASON_SOCKET},
	{"recvfrom", REASON_SOCKET},
	{"recvmsg*", REASON_SOCKET},
	{"recvmmsg*", REASON_SOCKET},
	{"libc_recv*", REASON_SOCKET},
	{"send", REASON_SOCKET},
	{"sendto", REASON_SOCKET},
	{"sendmsg*", REASON_SOCKET},
	{"sendmmsg*", REASON_SOCKET},
	{"libc_send*", REASON_SOCKET},
	{"accept", REASON_SOCKET},
	{"accept4", REASON_SOCKET},
	{"libc_accept*", REASON_SOCKET},
	{"connect", REASON_SOCKET},
	{"libc_connect", REASON_SOCKET},
	{"msgrcv", REASON_MESSAGE},
	{"msgsnd", REASON_MESSAGE},
	{"libc_msg*", REASON_MESSAGE},
	{"mq_receive", REASON_MESSAGE},
	{"mq_timedreceive*", REASON_MESSAGE},
	{"mq_send", REASON_MESSAGE},
	{"mq_timedsend*", REASON_MESSAGE},
	{"semop", REASON_SEMAPHORE},
	{"semtimedop*", REASON_SEMAPHORE},
	{"eventfd_read", REASON_EVENT},
	{"flock", REASON_FILE_LOCK},
	{"lockf*", REASON_FILE_LOCK},
	{"fsync", REASON_DISK},
	{"fdatasync", REASON_DISK},
	{"syncfs", REASON_DISK},
	{"sync_file_range", REASON_DISK},
	{"msync", REASON_DISK},
	{"tcdrain", REASON_TERMINAL},
	{"libc_tcdrain", REASON_TERMINAL},
	{0},
};

/* Functions of the kernel that only switch to another thread. */
static const struct rule switching[] = {
	{"schedule*", REASON_CPU},
	{"traceiter_sched_*", REASON_CPU},
	{"perf_event_task_sched_*", REASON_CPU},
	{0},
};

static bool fits(const char *rule, const char *name, size_t length)
{
	size_t stem = strcspn(rule, "*");
	return length >= stem && !memcmp(rule, name, stem) && (rule[stem] || length == stem);
}

static enum reason look_up(const struct rule *rules, const char *name, size_t length)
{
	while (rules->name && !fits(rules->name, name, length))
		rules++;
	return rules->name ? (enum reason)rules->reason : REASON_OTHER;
}

static const char *bare(const char *function, size_t *length)
{
	function += strspn(function, "_");
	*length = strcspn(function, ".@(");
	return function;
}

enum reason reason_in_kernel(const char *function)
{
	size_t length;
	const char *name = bare(function, &length);
	for (const char *cpu = "arm64_\0x64_\0ia32_\0"; *cpu; cpu += strlen(cpu) + 1)
		if (!strncmp(name, cpu, strlen(cpu)) && !strncmp(name + strlen(cpu), "sys_", 4)) {
			length -= strlen(cpu);
			name += strlen(cpu);
		}
	return look_up(in_kernel, name, length);
}

enum reason reason_in_program(const char *function)
{
	size_t length;
	const char *name = bare(function, &length);
	if (!strncmp(name, "runtime.", 8)) /* Go's packages end with a dot */
		length = strlen(name);
	return look_up(in_program, name, length);
}

static bool is_switching(const char *function)
{
	size_t length;
	const char *name = bare(function, &length);
	return look_up(switching, name, length) != REASON_OTHER;
}

/* ---- paths ---- */

/* What the frames of a path say so far, from its root on. */
struct said {
	uint8_t kernel;  /* enum reason; REASON_OTHER: nothing */
	uint8_t program; /* by the innermost functions, outside of the kernel */
	bool own;        /* program: by a runtime, which has its own means to wait */
	uint32_t module; /* that said it */
};

/* What is known of a function. */
struct saying {
	bool known;
	uint8_t reason;
	bool switching, own;
};

static bool is_futex(uint8_t reason)
{
	return reason >= REASON_LOCK && reason <= REASON_FUTEX;
}

/* Whether something is only a means of what the kernel does above. */
static bool is_means(uint8_t above, uint8_t reason)
{
	bool storage = reason == REASON_DISK || reason == REASON_FILE_SYSTEM;
	return above == REASON_PAGE_FAULT ? storage || reason == REASON_FUTEX
	       : above == REASON_FILE_SYSTEM || above == REASON_MEMORY
		       ? storage || reason == REASON_SOCKET
		       : false;
}

static void enter_kernel(struct said *s, const struct saying *f)
{
	if (f->reason != REASON_OTHER) {
		if (!is_means(s->kernel, f->reason))
			s->kernel = f->reason;
	} else if (s->kernel == REASON_CPU && !f->switching) {
		s->kernel = REASON_OTHER; /* it does something on its way back to the program */
	}
}

/* Functions that wait call nothing but functions of their own module, or those of a library that waits for them. */
static void enter_program(struct said *s, const struct saying *f, uint32_t module)
{
	s->kernel = REASON_OTHER;
	if (s->own)
		return;
	if (f->reason != REASON_OTHER)
		*s = (struct said){REASON_OTHER, f->reason, f->own, module};
	else if (module != s->module)
		s->program = REASON_OTHER;
}

static uint8_t conclude(const struct said *s)
{
	if (s->kernel == REASON_OTHER)
		return s->program;
	return s->kernel == REASON_FUTEX && is_futex(s->program) ? s->program : s->kernel;
}

/* Runtimes whose locks are made of conditions and semaphores of the C library. */
static bool is_own(const char *name)
{
	name += strspn(name, "_");
	return !strcmp(name, "take_gil") || !strncmp(name, "PyThread_", 9) ||
	       !strncmp(name, "kmp_", 4);
}

/* What an agent tells: its paths end in what a thread waits for, by the names above. */
static uint8_t object_reason(const char *object)
{
	uint8_t i = 0;
	while (i < REASON_OTHER && strcmp(names[i], object))
		i++;
	return i;
}

static const struct saying *ask(struct saying *known, const struct scope *scope, bool kernel)
{
	if (!known->known) {
		known->known = true;
		known->reason = scope->script ? (uint8_t)REASON_OTHER
				: kernel      ? (uint8_t)reason_in_kernel(scope->name)
					      : (uint8_t)reason_in_program(scope->name);
		known->switching = kernel && is_switching(scope->name);
		known->own = !kernel && known->reason != REASON_OTHER && is_own(scope->name);
	}
	return known;
}

/* Of time that is sampled whether a thread runs or not, this is how culprit tells that it could run: its path ends in
   the function that has put it to sleep. */
#define READY 0x80u

static bool ends_ready(const struct profile *p, const struct scopes *scopes,
		       const uint32_t *functions, size_t node)
{
	const struct profile_node *n = &p->nodes[node];
	return n->kind == PROFILE_CALL && p->modules[n->module].kind == PROFILE_KERNEL &&
	       !strcmp(scopes_get(scopes, functions[node])->name, "schedule");
}

static bool has_any(const struct profile *p)
{
	for (size_t i = 0; i < p->metric_count; i++)
		if (reason_is_told(&p->metrics[i]))
			return true;
	return false;
}

struct err *reasons_make(const struct profile *p, const struct scopes *scopes,
			 const uint32_t *functions, uint8_t **out)
{
	*out = NULL;
	if (!has_any(p))
		return NULL;
	struct said *said = calloc(p->node_count + 1, sizeof *said);
	struct saying *known = calloc(scopes_count(scopes) + 1, sizeof *known);
	uint8_t *reasons = malloc(p->node_count + 1);
	bool good = said && known && reasons;
	for (size_t i = 0; good && i < p->node_count; i++) {
		const struct profile_node *n = &p->nodes[i];
		said[i] = i ? said[n->parent]
			    : (struct said){.kernel = REASON_OTHER, .program = REASON_OTHER};
		if (n->kind == PROFILE_CALL || n->kind == PROFILE_EXACT) {
			bool kernel = p->modules[n->module].kind == PROFILE_KERNEL;
			if (p->modules[n->module].kind == PROFILE_OBJECT) {
				reasons[i] = object_reason(p->modules[n->module].path);
				if (reasons[i] == REASON_FUTEX && is_futex(said[i].program))
					reasons[i] = said[i].program;
				continue;
			}
			const struct saying *f = ask(&known[functions[i]],
						     scopes_get(scopes, functions[i]), kernel);
			if (kernel)
				enter_kernel(&said[i], f);
			else
				enter_program(&said[i], f, n->module);
		}
		reasons[i] = conclude(&said[i]) | (ends_ready(p, scopes, functions, i) ? READY : 0);
	}
	free(said);
	free(known);
	if (good)
		*out = reasons;
	else
		free(reasons);
	return good ? NULL : err_new("out of memory");
}

/* ---- samples ---- */

/* How the samples of a metric tell of waiting. */
enum telling { TELLS_NOTHING, TELLS_WAITS, TELLS_QUEUED, TELLS_ALL_TIME };

static enum telling telling(const struct profile_metric *m)
{
	static const struct {
		const char *name;
		enum telling telling;
	} known[] = {
		{"blocked", TELLS_WAITS},
		{"blocked.queued", TELLS_QUEUED},
		{"wall", TELLS_ALL_TIME},
		{"offcpu-time", TELLS_WAITS}, /* perf's */
		{"sched:sched_switch", TELLS_WAITS},
	};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(m->name, known[i].name))
			return known[i].telling;
	return TELLS_NOTHING;
}

bool reason_is_told(const struct profile_metric *metric)
{
	return telling(metric) != TELLS_NOTHING;
}

/* Whether a thread waits whose path ends here: the kernel has called what switches to another thread. A thread that
   runs in the kernel has an instruction there. Or an agent says so. */
static bool ends_waiting(const struct profile *p, uint32_t node)
{
	const struct profile_node *n = &p->nodes[node];
	return (n->kind == PROFILE_CALL && p->modules[n->module].kind == PROFILE_KERNEL) ||
	       p->modules[n->module].kind == PROFILE_OBJECT;
}

bool reason_is_of_waiting(const struct profile *p, uint32_t metric, uint32_t node)
{
	enum telling t = telling(&p->metrics[metric]);
	return t != TELLS_NOTHING && (t != TELLS_ALL_TIME || ends_waiting(p, node));
}

enum reason reason_of(const struct profile *p, const uint8_t *reasons,
		      const struct profile_value *v)
{
	enum telling t = reasons ? telling(&p->metrics[v->metric]) : TELLS_NOTHING;
	if (t == TELLS_QUEUED)
		return REASON_CPU;
	if (t == TELLS_WAITS)
		return (enum reason)(reasons[v->node] & ~READY);
	if (t == TELLS_NOTHING || !ends_waiting(p, v->node))
		return REASON_ON_CPU;
	return reasons[v->node] & READY ? REASON_CPU : (enum reason)reasons[v->node];
}
