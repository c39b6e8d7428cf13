// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * The sampler in the kernel: a BPF program. A perf event on each CPU runs `sample`. If the thread that it
 * interrupts is to be sampled, its user stack is walked with our own tables (unwind/table.h), and what is
 * new since the previous walk goes into the ring. Nothing happens in the target itself. The small programs
 * at the end of the file tell of forks, execs and exits, and watch new mappings.
 *
 * The rules are those of unwind/step.h, written so that the kernel's verifier can follow them; tests
 * compare the two. Loops over frames are done by bpf_loop. Searches are functions of their own, which the
 * verifier checks once.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "collect/kernel/bpf/take.h"

char LICENSE[] SEC("license") = "GPL";

SEC("perf_event") int sample(struct bpf_perf_event_data *context)
{
	uint64_t id = bpf_get_current_pid_tgid();
	uint32_t tgid = (uint32_t)(id >> 32), tid = (uint32_t)id;
	uint32_t here = bpf_get_smp_processor_id();
	struct kernel_process *process = bpf_map_lookup_elem(&processes, &tgid);
	if (process ? process->asleep : !settings.whole || !tid)
		return 0;
	const struct moment m = {context, CPU_IN_KERNEL(&context->regs),
				 (uint32_t)bpf_get_attach_cookie(context), bpf_ktime_get_ns(),
				 NULL};
	if (settings.every > 1 && !is_turn(here, m.event)) {
		count(context, process, here, tgid, m.event, m.start);
		return 0;
	}
	return take(&m, process, here);
}

/* ---- time off the CPU ---- */

/* Returns when the thread left the CPU; NULL: it is not sampled. `flags`: of threads that are not. */
INLINE struct off *find_off(struct task_struct *task, uint32_t flags)
{
	uint32_t tgid = task->tgid;
	if (!task->pid || task->flags & flags)
		return NULL;
	struct off *off = bpf_task_storage_get(&offs, task, 0, 0);
	if (off) /* it was asked for before */
		return off;
	if (task->flags & ENDING || (!settings.whole && !bpf_map_lookup_elem(&processes, &tgid)))
		return NULL;
	return make_off(task);
}

INLINE struct off *off_of(struct task_struct *task)
{
	return find_off(task, ENDING | OF_KERNEL);
}

INLINE void leave(struct task_struct *task, struct off *off, bool preempted, uint64_t now)
{
	end_absence(task, off, now);
	if (!off->since && now > off->chosen)
		off->cpu_ns += now - off->chosen;
	off->since = now;
	off->run_delay = run_delay(task);
	off->ran = task->se.sum_exec_runtime;
	off->preempted = preempted;
	off->waker = KERNEL_WAKER_NONE;
}

INLINE void fill_off(struct kernel_off *out, struct task_struct *task, const struct off *off,
		     uint64_t now)
{
	uint64_t queued = run_delay(task) - off->run_delay;
	uint64_t end = off->chosen > off->since ? off->chosen : now;
	fill_head(&out->head, KERNEL_OFF, KERNEL_EVENT_OFF, now);
	out->ns = end - off->since;
	out->queued_ns = queued < out->ns ? queued : out->ns;
	/* The two come from different clocks: at first, the second may be larger. */
	uint64_t delayed = off->run_delay - off->delay_start;
	out->blocked_before = off->off_ns > delayed ? off->off_ns - delayed : 0;
	out->waker = off->waker;
	out->waker_process = off->waker_process;
	out->waker_thread = off->waker_thread;
	out->rarity = (uint32_t)off->rarity;
}

/* A thread was chosen to run. Returns whether its absence has a sample; else that is over now. */
INLINE bool choose(struct off *off, uint64_t now)
{
	uint64_t since = off->since, ns = now > since ? now - since : 0;
	if (!since)
		return false;
	off->chosen = now;
	if (is_off_sampled(ns, settings.off_ns << (off->rarity & 31)))
		return true;
	off->off_ns += ns;
	off->since = 0;
	return false;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(left, bool preempted, struct task_struct *task, struct task_struct *next)
{
	struct off *off = find_off(task, OF_KERNEL); /* its time counts until it has ended */
	uint64_t now = bpf_ktime_get_ns();
	if (off)
		leave(task, off, preempted, now);
	off = bpf_task_storage_get(&offs, next, 0, 0);
	set_pending(off && choose(off, now));
	return 0;
}

/* A thread is woken, by what runs here. An interrupt has only borrowed the thread that it has met. */
SEC("tp_btf/sched_waking") int BPF_PROG(woken, struct task_struct *task)
{
	struct off *off = bpf_task_storage_get(&offs, task, 0, 0);
	if (!off || !off->since)
		return 0;
	struct task_struct *waker = (void *)bpf_get_current_task_btf();
	off->waker_process = waker->tgid;
	off->waker_thread = waker->pid;
	int64_t count = waker->pid ? cpu_preempt_count(waker, settings.preempt_count)
				   : IN_INTERRUPT;
	off->waker = count < 0                  ? KERNEL_WAKER_NONE
		     : count & IN_INTERRUPT     ? KERNEL_WAKER_INTERRUPT
		     : waker->flags & OF_KERNEL ? KERNEL_WAKER_KERNEL
						: KERNEL_WAKER_THREAD;
	return 0;
}

/* The thread that was chosen runs. Its user stack is as it was when it left the CPU, and can be read now. */
INLINE int come_back(void *context)
{
	if (!is_pending())
		return 0;
	set_pending(false);
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct off *off = bpf_task_storage_get(&offs, task, 0, 0);
	if (!off || !off->since || task->flags & ENDING)
		return 0;
	uint64_t now = bpf_ktime_get_ns();
	struct kernel_off out;
	fill_off(&out, task, off, now);
	off->off_ns += out.ns;
	off->chosen = off->since + out.ns;
	off->since = 0;
	uint32_t tgid = task->tgid;
	struct kernel_process *process = bpf_map_lookup_elem(&processes, &tgid);
	if (process ? process->asleep : !settings.whole)
		return 0;
	if (bpf_ringbuf_output(&ring, &out, sizeof out, wake(0))) {
		__sync_fetch_and_add(&counts.lost_records, 1);
		return 0;
	}
	const struct moment m = {context, true, KERNEL_EVENT_OFF, now, NULL};
	take(&m, process, settings.cpus + bpf_get_smp_processor_id());
	set_rarity(task, off, bpf_ktime_get_ns() - now);
	return 0;
}

/* The loader takes the first of these that the kernel has (kernel/off.c). */
SEC("tp_btf/sched_exit_tp") int BPF_PROG(back_by_tracepoint, bool switched)
{
	return switched ? come_back(ctx) : 0;
}

SEC("fentry/__perf_event_task_sched_in") int BPF_PROG(back_by_function)
{
	return come_back(ctx);
}

SEC("kprobe") int back_by_probe(void *context)
{
	return come_back(context);
}

/* Sampling begins: threads that have no CPU are off it from now on. */
SEC("iter/task") int note_waiting(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	struct off *off = task ? off_of(task) : NULL;
	if (off && !off->since && (task->__state || !task->on_cpu))
		leave(task, off, !task->__state, bpf_ktime_get_ns());
	return 0;
}

/* Sampling ends: writes the sums of all threads. */
SEC("iter/task") int tell_sums(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	struct off *off = task ? off_of(task) : NULL;
	if (!off)
		return 0;
	struct kernel_told out = {.process = task->tgid, .thread = task->pid};
	out.time = bpf_ktime_get_ns();
	fill_sums(&out.sums, task, off, out.time);
	bpf_seq_write(context->meta->seq, &out, sizeof out);
	return 0;
}

/* Sampling ends: writes what is known of threads that still wait. The collector reads their stacks. */
SEC("iter/task") int tell_waiting(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	struct off *off = task && task->__state ? off_of(task) : NULL;
	uint32_t zero = 0;
	struct kernel_waits *out = bpf_map_lookup_elem(&told, &zero);
	if (!off || !off->since || !out)
		return 0;
	fill_off(&out->off, task, off, bpf_ktime_get_ns());
	out->off.rarity = 0; /* whether it has samples is decided by the collector */
	out->off.head.process = task->tgid;
	out->off.head.thread = task->pid;
	out->since = off->since;
	if (cpu_registers((void *)bpf_task_pt_regs(task), out->registers))
		return 0;
	long got = 0;
	if (settings.kernel_frames)
		got = bpf_get_task_stack(task, out->kernel_frames, sizeof out->kernel_frames, 0);
	out->kernel_frame_count = got > 0 ? (uint64_t)got / sizeof *out->kernel_frames : 0;
	bpf_seq_write(context->meta->seq, out, sizeof *out);
	return 0;
}

/* ---- reads and writes ---- */

/* What is counted of one call, with nothing of the call itself yet. */
INLINE void begin_io(struct kernel_io *io, const struct kernel_process *process, uint32_t event,
		     uint64_t now)
{
	uint64_t id = bpf_get_current_pid_tgid();
	__builtin_memset(io, 0, sizeof *io);
	io->key.process = (uint32_t)(id >> 32);
	io->key.thread = (uint32_t)id;
	io->key.changes = process ? process->changes : 0;
	io->sum.calls = 1;
	fill_head(&io->head, KERNEL_IO, event, now);
}

SEC("tp_btf/sys_enter") int BPF_PROG(io_begins, struct pt_regs___kernel *regs, long number)
{
	uint64_t at = (uint64_t)number;
	if (at >= KERNEL_IO_CALLS)
		return 0;
	uint8_t call = settings.io_calls[at];
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	uint32_t tgid = task->tgid;
	if (!call || CPU_IS_COMPAT(task))
		return 0;
	uint64_t begun = bpf_ktime_get_ns();
	struct kernel_process *process = bpf_map_lookup_elem(&processes, &tgid);
	if (process ? process->asleep : !settings.whole)
		return 0;
	if (KERNEL_IO_ACT(call) == KERNEL_IO_UNSEEN) {
		__sync_fetch_and_add(&counts.io_unseen, 1);
		return 0;
	}
	struct io *io = bpf_task_storage_get(&ios, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!io)
		return 0;
	uint32_t argument = KERNEL_IO_ARGUMENT(call);
	uint64_t descriptor = argument == 0   ? CPU_ARGUMENT(regs, 0)
			      : argument == 1 ? CPU_ARGUMENT(regs, 1)
					      : CPU_ARGUMENT(regs, 2);
	io->act = KERNEL_IO_ACT(call);
	io->messages = CPU_ARGUMENT(regs, 1);
	io->object = find_object(task, (uint32_t)descriptor,
				 settings.cpus + bpf_get_smp_processor_id());
	io->since = bpf_ktime_get_ns();
	io->own_ns = io->since - begun;
	return 0;
}

SEC("tp_btf/sys_exit") int BPF_PROG(io_ends, struct pt_regs___kernel *regs, long returned)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct io *io = bpf_task_storage_get(&ios, task, 0, 0);
	if (!io || !io->act)
		return 0;
	uint64_t now = bpf_ktime_get_ns();
	uint32_t tgid = task->tgid, space = settings.cpus + bpf_get_smp_processor_id();
	struct kernel_process *process = bpf_map_lookup_elem(&processes, &tgid);
	struct workspace *ws = bpf_map_lookup_elem(&workspaces, &space);
	if (!ws)
		return 0;
	begin_io(&ws->io, process, KERNEL_EVENT_IO, now);
	ws->io.key.object = io->object;
	ws->io.key.act = io->act;
	ws->io.sum.bytes = bytes_of(io, returned);
	ws->io.sum.ns = now - io->since;
	ws->io.sum.own_ns = io->own_ns;
	io->act = 0;
	const struct moment m = {ctx, false, KERNEL_EVENT_IO, now, &ws->io};
	return take(&m, process, space);
}

/* ---- calls of chosen functions ---- */

/* Takes a workspace that nobody uses. A probe's thread may lose its CPU to another one that meets a probe. UINT32_MAX:
   there is none. */
INLINE uint32_t take_space(void)
{
	uint32_t count = settings.spaces - settings.cpus;
	for (uint32_t i = 0; i < KERNEL_SPARE_SPACES + 1; i++) {
		uint32_t space = settings.cpus + (bpf_get_smp_processor_id() + i) % count;
		struct workspace *ws = bpf_map_lookup_elem(&workspaces, &space);
		if (ws && !__sync_lock_test_and_set(&ws->busy, 1))
			return space;
	}
	return UINT32_MAX;
}

INLINE void begin_call(struct kernel_io *io, const struct kernel_process *process,
		       uint32_t function, uint64_t now)
{
	begin_io(io, process, KERNEL_EVENT_PROBE, now);
	io->key.object = function;
	io->key.act = KERNEL_IO_PROBE;
}

/* The call of a function that begins or ends where the thread is now. */
INLINE struct activity_key key_here(struct task_struct *task, uint32_t function)
{
	struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs(task);
	return (struct activity_key){task->tgid, function, CPU_SP(regs)};
}

/* Whether this call has begun before: a loop of the function goes on at its first instruction. */
APART int has_begun(uint32_t function)
{
	struct activity_key key = key_here((void *)bpf_get_current_task_btf(), function);
	struct activity *before = bpf_map_lookup_elem(&activities, &key);
	return before && !before->gone;
}

/* A call begins, which was counted with this key. */
APART int time_begin(uint32_t function, const struct kernel_transfer_key *sum, uint64_t now)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct activity_key key = key_here(task, function), none = {0};
	struct probing *thread = bpf_task_storage_get(&probings, task, 0,
						      BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread) {
		__sync_fetch_and_add(&counts.calls_untimed, 1);
		return 0;
	}
	/* A function that calls another one has put something on the stack before. */
	settle(thread, key.sp + 1, &none);
	note_begin(thread, &key, sum, now);
	return 0;
}

/* A call ends, or an exception is thrown or caught. */
APART int time_other(uint32_t function, uint32_t kind, uint64_t now)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct activity_key key = key_here(task, function), none = {0};
	struct probing *thread = bpf_task_storage_get(&probings, task, 0, 0);
	if (!thread)
		return 0;
	if (kind == KERNEL_PROBE_ENDS) {
		note_end(thread, &key, task->pid, now);
	} else if (kind == KERNEL_PROBE_THROWS) {
		thread->thrown_sp = key.sp;
	} else if (kind == KERNEL_PROBE_CATCHES) {
		settle(thread, key.sp + 1, &none);
		thread->thrown_sp = 0;
	}
	thread->own_ns += bpf_ktime_get_ns() - now;
	return 0;
}

/* At an instruction by which a function is left, and where exceptions are thrown and caught. */
SEC("uprobe") int probe_left(void *context)
{
	uint64_t now = bpf_ktime_get_ns(), cookie = bpf_get_attach_cookie(context);
	uint32_t tgid = (uint32_t)(bpf_get_current_pid_tgid() >> 32);
	struct kernel_process *process = bpf_map_lookup_elem(&processes, &tgid);
	if (!process || process->asleep)
		return 0;
	return time_other((uint32_t)cookie, (uint32_t)(cookie >> 32), now);
}

/* Threads that have met a probe: when they are on a CPU. */
SEC("tp_btf/sched_switch")
int BPF_PROG(probe_switched, bool preempted, struct task_struct *task, struct task_struct *next)
{
	uint64_t now = bpf_ktime_get_ns();
	struct probing *thread = bpf_task_storage_get(&probings, task, 0, 0);
	if (thread)
		leave_cpu(thread, task, now);
	thread = bpf_task_storage_get(&probings, next, 0, 0);
	if (thread)
		enter_cpu(thread, now);
	return 0;
}

/* Counts a call that begins, without its path and its time. */
APART int count_spaceless(const struct kernel_process *process, uint32_t function, bool timed,
			  uint64_t now)
{
	struct kernel_io io;
	begin_call(&io, process, function, now);
	io.sum.bytes = !timed;
	count_pathless(&io);
	if (timed)
		note_untimed(&io.key);
	return 0;
}

/* The walk needs nearly all of the stack that a program has: what else is to be done is in functions of its own. */
SEC("uprobe") int probed(void *context)
{
	uint64_t now = bpf_ktime_get_ns(), cookie = bpf_get_attach_cookie(context);
	uint32_t function = (uint32_t)cookie, kind = (uint32_t)(cookie >> 32);
	uint32_t tgid = (uint32_t)(bpf_get_current_pid_tgid() >> 32);
	struct kernel_process *process = bpf_map_lookup_elem(&processes, &tgid);
	if (!process || process->asleep)
		return 0;
	if (kind & KERNEL_PROBE_LOOPS && has_begun(function))
		return 0;
	uint32_t limited = limits_of(function);
	if (limited & KERNEL_LIMIT_REMOVED)
		return 0;
	if (limited)
		kind &= ~KERNEL_PROBE_TIMED;
	uint32_t space = take_space();
	struct workspace *ws = bpf_map_lookup_elem(&workspaces, &space);
	if (!ws)
		return count_spaceless(process, function, kind & KERNEL_PROBE_TIMED, now);
	begin_call(&ws->io, process, function, now);
	ws->io.sum.bytes = !(kind & KERNEL_PROBE_TIMED);
	const struct moment m = {context, false, KERNEL_EVENT_PROBE, now, &ws->io};
	take(&m, process, space);
	if (kind & KERNEL_PROBE_TIMED)
		time_begin(function, &ws->io.key, now);
	__sync_lock_test_and_set(&ws->busy, 0);
	return 0;
}

/* A thread ends, or probing does. What it has left is told by its stack. */
INLINE void settle_task(struct task_struct *task)
{
	struct probing *thread = bpf_task_storage_get(&probings, task, 0, 0);
	struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs(task);
	struct activity_key none = {0};
	if (thread)
		settle(thread, CPU_SP(regs), &none);
}

SEC("iter/task") int settle_calls(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	if (task && task->__state && !(task->flags & (ENDING | OF_KERNEL)))
		settle_task(task);
	return 0;
}

/* ---- processes and mappings ---- */

INLINE void fill_task(struct kernel_task *t, uint32_t kind, struct task_struct *task)
{
	__builtin_memset(t, 0, sizeof *t);
	fill_head(&t->head, kind, 0, bpf_ktime_get_ns());
	bpf_probe_read_kernel(t->comm, sizeof t->comm, task->comm);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(forked, struct task_struct *parent, struct task_struct *child)
{
	uint32_t from = parent->tgid, to = child->tgid;
	struct kernel_process *process = bpf_map_lookup_elem(&processes, &from), copy = {0};
	struct kernel_task t;
	if (settings.whole ? from == to || child->flags & OF_KERNEL : !process)
		return 0;
	if (from != to) {
		struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs(parent);
		if (process)
			copy = *process;
		struct kernel_mappings *its = mappings_of(to);
		copy.serial = list_of(process, from);
		copy.doubtful = 0;
		copy.over_code = its ? its->over_code : 0;
		copy.born_pc = CPU_PC(regs);
		copy.born_sp = CPU_SP(regs);
		bpf_map_update_elem(&processes, &to, &copy, BPF_ANY);
	}
	fill_task(&t, KERNEL_FORK, child);
	t.changes = copy.changes;
	t.head.process = from;
	t.head.thread = parent->pid;
	t.child_process = to;
	t.child_thread = child->pid;
	t.start_ns = child->start_boottime;
	if (bpf_ringbuf_output(&ring, &t, sizeof t, wake(0)))
		__sync_fetch_and_add(&counts.lost_records, 1);
	return 0;
}

SEC("tp_btf/sched_process_exec") int BPF_PROG(executed, struct task_struct *task)
{
	uint32_t id = task->tgid;
	struct kernel_process *process = bpf_map_lookup_elem(&processes, &id), none = {0};
	struct kernel_task t;
	if (!process && !settings.whole)
		return 0;
	struct kernel_mappings *its = mappings_of(id);
	if (its) /* a list that is being given just now is of the old program */
		__sync_fetch_and_add(&its->over_code, 1);
	none.changes = (process ? process->changes : 0) + 1;
	bpf_map_update_elem(&processes, &id, &none, BPF_ANY);
	fill_task(&t, KERNEL_EXEC, task);
	t.changes = none.changes;
	struct off *off = settings.off_ns ? make_off(task) : NULL;
	if (off) {
		fill_sums(&t.sums, task, off, t.head.time);
		restart_sums(task, off);
	}
	/* In a recording of the whole machine most programs are never sampled: this can wait. */
	if (bpf_ringbuf_output(&ring, &t, sizeof t, wake(!settings.whole)))
		__sync_fetch_and_add(&counts.lost_records, 1);
	return 0;
}

/* The kernel has found free addresses for a new mapping. If the list has code there, a library is gone,
   and another one may come in its place. So samples are left to the collector until it has looked. */
SEC("tp_btf/vm_unmapped_area")
int BPF_PROG(mapped, unsigned long address, struct vm_unmapped_area_info *info)
{
	uint32_t tgid = (uint32_t)(bpf_get_current_pid_tgid() >> 32);
	struct kernel_mappings *its = mappings_of(tgid);
	if (!its)
		return 0;
	__sync_fetch_and_add(&its->begun, 1);
	struct kernel_process *process = bpf_map_lookup_elem(&processes, &tgid);
	if (process && process->serial && is_listed(process, address, address + info->length))
		__sync_fetch_and_add(&its->over_code, 1);
	return 0;
}

SEC("tp_btf/sched_process_exit") int BPF_PROG(exited, struct task_struct *task)
{
	uint32_t id = task->tgid;
	struct kernel_process *process = bpf_map_lookup_elem(&processes, &id);
	struct kernel_task t;
	if (!process && !settings.whole)
		return 0;
	if (settings.probes)
		settle_task(task);
	fill_task(&t, KERNEL_EXIT, task);
	t.head.process = id;
	t.head.thread = task->pid;
	t.last = !task->signal->live.counter;
	t.status = task->signal->group_exit_code ? task->signal->group_exit_code : task->exit_code;
	t.cpu_ns = task->se.sum_exec_runtime;
	struct off *off = settings.off_ns && !(task->flags & OF_KERNEL) ? make_off(task) : NULL;
	if (off)
		fill_sums(&t.sums, task, off, t.head.time);
	if (t.last)
		bpf_map_delete_elem(&processes, &id);
	if (bpf_ringbuf_output(&ring, &t, sizeof t, wake(0)))
		__sync_fetch_and_add(&counts.lost_records, 1);
	return 0;
}
