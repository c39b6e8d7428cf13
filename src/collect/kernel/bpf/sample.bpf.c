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

#include "collect/kernel/bpf/brake.h"
#include "collect/kernel/bpf/code.h"
#include "collect/kernel/bpf/count.h"
#include "collect/kernel/bpf/far.h"
#include "collect/kernel/bpf/io.h"
#include "collect/kernel/bpf/memo.h"
#include "collect/kernel/bpf/off.h"
#include "collect/kernel/bpf/record.h"
#include "collect/kernel/bpf/script.h"
#include "collect/kernel/bpf/step.h"

char LICENSE[] SEC("license") = "GPL";

/* ---- the walk ---- */

struct walker { /* what a step needs besides */
	struct workspace *ws;
	struct walk *walk;
	struct memo *memo;
	struct kernel_process *process;
	uint32_t places; /* the first one of this CPU */
};

/* Whether the frame that the walk stands on is in the memo, and all frames beyond it are unchanged. */
INLINE bool meets(struct walker *x)
{
	struct walk *w = x->walk;
	if (w->sp < w->next || !find_frame(w, x->memo))
		return false;
	/* max_depth cuts the path at another frame than it cut the previous walk. */
	if (w->fresh + w->known > settings.max_depth) {
		w->known = 0;
		w->next = UINT64_MAX;
		return false;
	}
	uint32_t changed = (uint32_t)compare(w, x->memo);
	if (changed)
		w->known = changed;
	return !changed;
}

/* After step_pointer has come to code that has a recipe: as step_pointer_compiled() in unwind/step.h. */
INLINE int step_compiled(struct walker *x)
{
	struct walk *w = x->walk;
	struct place *p = find_place(x->places, w, x->process, w->pc - 1);
	if (!p || p->by_pointer)
		return WALK_ON;
	struct recipe *r = &p->recipe;
	if (r->cfa == RECIPE_ROOT)
		return WALK_ON;
	if (r->cfa == RECIPE_SIGNAL || w->fp_lost || w->fp < w->sp)
		return WALK_BAD_FRAME;
	uint64_t sp = w->fp;
	if (r->cfa_reg == CPU.sp) {
		if (r->cfa != RECIPE_REG || r->fp != RECIPE_AT_CFA || r->ra != RECIPE_AT_CFA ||
		    r->ra_offset != r->fp_offset + 8)
			return WALK_BAD_FRAME;
		sp -= (int64_t)r->fp_offset + r->cfa_offset;
		if (sp < w->sp)
			return WALK_BAD_FRAME;
	}
	w->sp = sp;
	return WALK_ON;
}

INLINE int step(struct walker *x, struct place *p)
{
	struct walk *w = x->walk;
	struct recipe *r = &p->recipe;
	if (p->by_pointer || (w->by_pointer && w->exact)) {
		int end = p->by_pointer && !step_unmade(w) ? WALK_ON : step_pointer(w);
		if (end == WALK_ON && CPU.link != 0xff && !x->process->jit_top)
			return step_compiled(x);
		return end;
	}
	if (r->reserved == KERNEL_SIMPLE)
		return step_simple(w, r);
	if (r->cfa == RECIPE_REG || r->cfa == RECIPE_DEREF || r->cfa == RECIPE_SPECIAL)
		return step_frame(w, r);
	if (r->cfa == RECIPE_ROOT)
		return WALK_COMPLETE;
	if (r->cfa == RECIPE_SIGNAL)
		return w->exact && r->cfa_add == RECIPE_RETURNED ? WALK_NO_RECIPE : step_signal(w);
	if (r->cfa >= RECIPE_AWAY)
		return step_away(w, r);
	return r->cfa == RECIPE_COMPLEX ? WALK_COMPLEX : WALK_NO_RECIPE;
}

/* In sigreturn, the PC is behind the system call, where other code begins, and the registers may be half
   those of the code that the signal interrupted. But all of these are in the signal frame, and the
   system call itself leads there. So the walk begins at the call. */
INLINE uint64_t first_pc(const struct walk *w, struct pt_regs___kernel *regs)
{
	uint64_t pc = CPU_PC(regs) & CPU.address_bits;
	return w->returning ? pc - CPU_CALL_SIZE : pc;
}

/* Begins a walk where the thread was when it was interrupted, or when it entered the kernel. */
INLINE void begin(struct walk *w)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs(task);
	w->returning = cpu_in_sigreturn(regs);
	w->pc = w->first_pc = first_pc(w, regs);
	w->sp = CPU_SP(regs);
	w->fp = CPU_FP(regs);
	w->link = CPU_LINK(regs);
	w->extra = CPU_EXTRA(regs);
	w->slot = w->fp_at = w->extra_at = 0;
	w->have = 0;
	w->window = FIRST_WINDOW / 2;
	w->exact = 1;
	w->near = w->still = w->fp_lost = w->extra_lost = w->in_signal = w->met = w->by_pointer =
		w->far = 0;
	w->all_registers = w->elsewhere = 0;
	w->g = w->left = 0;
	w->end = WALK_ON;
	w->known = w->fresh = w->hosts = 0;
}

/* Whether a walk that failed may be tried again, by frame pointers: assembly of a run-time compiler that
   no analysis understood keeps those. If that fails, too, the walk is repeated as at first, and its
   result stays. */
INLINE bool may_retry(const struct walker *x)
{
	const struct walk *w = x->walk;
	return w->end > WALK_COMPLETE && w->end != WALK_TOO_DEEP && !w->elsewhere &&
	       x->process->jit_high && w->retries < 2;
}

/* Marks the frame before this one if it runs interpreted functions: their record is in its part of the
   stack. */
INLINE void find_host(struct walker *x)
{
	struct walk *w = x->walk;
	uint64_t n = w->fresh, mark = w->hosts;
	if (!n || mark >= x->ws->calls.marks)
		return;
	n--;
	MASK(n, KERNEL_FRAMES - 1);
	MASK(mark, KERNEL_MARKS - 1);
	uint64_t key = x->ws->keys[n];
	if (x->ws->calls.at[mark] < w->sp) {
		if (key >> KERNEL_KEY_BITS & 0x7fff)
			x->ws->keys[n] = key | KERNEL_KEY_HOST;
		w->hosts++;
	}
}

/* Makes a step. Returns whether the walk has come to its end. */
INLINE bool step_one(struct walker *x)
{
	struct walk *w = x->walk;
	find_host(x);
	if (meets(x)) {
		w->met = 1;
		w->end = (uint16_t)x->memo->end;
		return true;
	}
	uint64_t n = w->fresh, address = w->pc - !w->exact;
	if (n >= settings.max_depth) {
		w->end = WALK_TOO_DEEP;
		return true;
	}
	struct place *p = find_place(x->places, w, x->process, address);
	uint64_t key = p ? p->key : address & ADDRESS;
	MASK(n, KERNEL_FRAMES - 1);
	x->ws->fresh[n].pc = marked_pc(w);
	x->ws->fresh[n].sp = offset_of(w, w->sp);
	x->ws->fresh[n].slot = slot_of(w);
	x->ws->keys[n] = w->exact ? key : (key + 1) | KERNEL_KEY_CALL;
	w->fresh++;
	w->end = (uint16_t)(p ? step(x, p) : WALK_NO_MODULE);
	if (may_retry(x)) { /* here, because the verifier checks each call of bpf_loop again */
		begin(w);
		w->known = w->known_first;
		w->next = w->known ? 0 : UINT64_MAX;
		w->by_pointer = !w->retries++;
		return false;
	}
	return w->end != WALK_ON;
}

static long step_some(uint32_t i, struct walker *x)
{
	for (int k = 0; k < STEPS_AT_ONCE; k++)
		if (step_one(x))
			return 1;
	return 0;
}

/* ---- what is sent ---- */

struct moment {               /* what a sample is of */
	void *context;        /* of the program that takes it */
	bool inside;          /* the thread is in the kernel */
	uint32_t event;       /* its number, or KERNEL_EVENT_OFF */
	uint64_t start;       /* when it began */
	struct kernel_io *io; /* what was read or written; NULL: it is another event */
};

/* Adds the kernel's own frames behind those of the program. Returns how many there are. */
INLINE uint64_t add_kernel_frames(const struct moment *m, struct workspace *ws)
{
	uint64_t at = ws->walk.fresh;
	if (!m->inside || at > KERNEL_FRAMES)
		return 0;
	long size = bpf_get_stack(m->context, &ws->keys[at], KERNEL_OWN_FRAMES * sizeof *ws->keys,
				  0);
	return size > 0 ? (uint64_t)size / sizeof *ws->keys : 0;
}

/* Returns whether there was room. */
INLINE bool send_path(const struct moment *m, struct walker *x, uint32_t slot)
{
	struct kernel_path *path = &x->ws->path;
	struct walk *w = x->walk;
	struct memo *memo = x->memo;
	uint64_t fresh = w->fresh, own = settings.kernel_frames ? add_kernel_frames(m, x->ws) : 0,
		 size;
	uint32_t kept = w->met ? w->known : 0;
	fill_head(&path->head, KERNEL_PATH, m->event, m->start);
	path->memo = (uint16_t)slot;
	path->end = (uint8_t)w->end;
	path->kernel_frames = (uint8_t)own;
	path->kept = kept;
	path->fresh = w->fresh;
	if (slot != KERNEL_NO_MEMO) {
		memo->thread = path->head.thread;
		memo->serial = x->process->serial;
		memo->end = w->end;
		remember(x->ws, memo, kept);
		if (settings.io)
			hash_path(x->ws, bpf_map_lookup_elem(&hashes, &slot), kept, true);
	}
	path->ns = (uint32_t)(bpf_ktime_get_ns() - m->start);
	if (fresh > KERNEL_FRAMES)
		fresh = KERNEL_FRAMES;
	if (own > KERNEL_OWN_FRAMES)
		own = KERNEL_OWN_FRAMES;
	size = sizeof *path + (fresh + own) * 8;
	if (!bpf_ringbuf_output(&ring, path, size, wake(0)))
		return true;
	if (slot != KERNEL_NO_MEMO)
		memo->count = 0;
	if (!m->io)
		__sync_fetch_and_add(&counts.lost_records, 1);
	return false;
}

/* Copies up to the next page of the stack. A page that the program never touched is not there. It is
   left out, for there may be more beyond. The state of the loop is in the map's memory. On the stack,
   the verifier would follow each round. Two fields of the walk, which is over, have another meaning here:
   `word` is how much is to be copied, and `known` how many pages in a row were not there. */
static long copy_one(uint32_t i, struct workspace **context)
{
	struct workspace *ws = *context;
	uint64_t to = ws->copy.size, from = ws->copy.address + to;
	uint64_t size = 4096 - (from & 4095), page = i;
	if (to > KERNEL_STACK - 4096 || to >= ws->walk.word)
		return 1;
	MASK(to, KERNEL_STACK - 1);
	if (to > KERNEL_STACK - 4096 || size > 4096)
		return 1;
	if (bpf_probe_read_user(ws->stack + to, size, (void *)from)) {
		MASK(page, 127);
		ws->copy.holes[page / 64] |= 1ull << page % 64;
		if (++ws->walk.known > HOLES_MAX)
			return 1;
	} else {
		ws->walk.known = 0;
	}
	ws->copy.size += size;
	return 0;
}

/* Returns how many bytes of a stack may be copied. Copies are large, and small records must not be lost
   because of them. In a recording of the whole machine most stacks are small. */
INLINE uint64_t room_for_stack(void)
{
	uint64_t used = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA);
	if (settings.whole)
		return used < settings.ring / 8 ? 1 << 17 : used < settings.ring / 4 ? 1 << 14 : 0;
	return used < settings.ring / 2       ? KERNEL_STACK
	       : used < settings.ring / 4 * 3 ? 1 << 17
					      : 1 << 14;
}

/* Whether the thread has run at all: see enum kernel_unborn. */
INLINE enum kernel_unborn find_unborn(const struct walk *w, const struct kernel_process *process)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs(task);
	if (w->returning)
		return KERNEL_RETURNING;
	if (task->pid == task->tgid && process && CPU_SP(regs) == process->born_sp)
		return CPU_PC(regs) == process->born_pc ? KERNEL_UNBORN_COPY : KERNEL_BORN;
	return task->se.sum_exec_runtime < UNBORN_NS && cpu_at_birth(regs) ? KERNEL_UNBORN
									   : KERNEL_BORN;
}

/* Whether it has not run yet, so that its path is the kernel's alone. */
INLINE bool is_unborn(const struct walk *w, const struct kernel_process *process)
{
	enum kernel_unborn found = find_unborn(w, process);
	return found == KERNEL_UNBORN ||
	       (found == KERNEL_UNBORN_COPY && w->end == WALK_BAD_MEMORY) ||
	       (found == KERNEL_RETURNING && KERNEL_IS_NOWHERE(w->end));
}

/* Whether the kernel is about to send the thread to a signal handler: SP is at the new signal frame
   already, but the PC is still where the signal came. The first bytes of the frame are zeros, as if
   nobody had called. */
INLINE bool is_leaving(const struct moment *m, const struct walk *w)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs(task);
	uint64_t pc = 0;
	return w->end == WALK_COMPLETE && w->fresh == 1 && !w->met && m->inside &&
	       !bpf_probe_read_user(&pc, sizeof pc, (void *)(CPU_SP(regs) + CPU.signal_pc)) &&
	       pc == w->first_pc;
}

/* Returns the distance from SP to the end of the stack that it is on; if that is not known, as much as can be
   copied. */
INLINE uint64_t stack_size(const struct kernel_far *far, bool go, uint64_t sp)
{
	uint64_t size = go ? go_stack_size(far, sp) : 0;
	if (!size)
		size = thread_stack_size(sp, cpu_thread_pointer(current_task()));
	return size ? size : KERNEL_STACK;
}

/* Returns whether there was room. */
INLINE bool send_copy(const struct moment *m, struct workspace *ws,
		      const struct kernel_process *process)
{
	struct kernel_copy *s = &ws->copy;
	uint64_t sp, size, whole;
	if (read_registers(ws->walk.registers))
		return true;
	/* With what code may keep below SP. */
	sp = (ws->walk.registers[CPU.sp & (KERNEL_REGISTERS - 1)] & ~7ull) - CPU.kept_below;
	fill_head(&s->head, KERNEL_COPY, m->event, m->start);
	__builtin_memcpy(s->registers, ws->walk.registers, sizeof s->registers);
	s->pc = ws->walk.first_pc;
	s->address = sp;
	s->size = 0;
	s->unborn = find_unborn(&ws->walk, process);
	s->unlisted = !list_of(process, s->head.process);
	s->kernel_frame_count = 0;
	if (settings.kernel_frames && m->inside) {
		long own = bpf_get_stack(m->context, s->kernel_frames, sizeof s->kernel_frames, 0);
		s->kernel_frame_count = own > 0 ? (uint64_t)own / sizeof *s->kernel_frames : 0;
	}
	__builtin_memset(s->holes, 0, sizeof s->holes);
	ws->walk.known = 0;
	bool go = find_go(ws);
	whole = stack_size(&ws->far, go, sp);
	ws->walk.word = whole;
	if (ws->walk.word > room_for_stack())
		ws->walk.word = room_for_stack();
	bpf_loop(KERNEL_STACK / 4096 + 1, copy_one, &ws, 0);
	size = s->size;
	if (size > KERNEL_STACK)
		size = KERNEL_STACK;
	s->copied = size;
	s->beyond = whole > size ? whole - size : 0;
	if (go) {
		size = copy_far(ws, sp, size, room_for_stack());
		if (size > KERNEL_STACK)
			size = KERNEL_STACK;
		fill_head(&ws->far.head, KERNEL_FAR, m->event, m->start);
		return !bpf_ringbuf_output(&ring, &ws->far, sizeof ws->far + sizeof *s + size,
					   wake(1));
	}
	return !bpf_ringbuf_output(&ring, s, sizeof *s + size, wake(1));
}

/* Sends a copy with what was read or written. Where there is no room, the call is counted without its path. */
INLINE void leave_copy(const struct moment *m, struct workspace *ws,
		       const struct kernel_process *process)
{
	if (m->io) {
		m->io->key.path = 0;
		if ((!send_io(m->io) || !send_copy(m, ws, process)) && !add_transfer(m->io))
			__sync_fetch_and_add(&counts.lost_records, 1);
		return;
	}
	if (!send_copy(m, ws, process))
		__sync_fetch_and_add(&counts.lost_copies, 1);
}

/* Counts what was read or written by the path that was walked, and sends the path if the collector does not have
   it. */
INLINE void leave_io(const struct moment *m, struct walker *x, uint32_t slot)
{
	struct kernel_io *io = m->io;
	struct kernel_transfer *sum = NULL;
	if (!x->ws->calls.head.count) { /* the calls of an interpreter are no part of the hash */
		struct hashes *memo = bpf_map_lookup_elem(&hashes, &slot);
		uint32_t kept = x->walk->met ? x->walk->known : 0;
		io->key.path = mix(hash_path(x->ws, memo, kept, false), x->process->serial) | 1;
		sum = add_transfer(io);
		if (sum && sum->sent)
			return;
	}
	if (sum)
		__builtin_memset(&io->sum, 0, sizeof io->sum);
	if (send_io(io) && send_path(m, x, slot)) {
		if (sum)
			sum->sent = 1;
		return;
	}
	io->key.path = 0;
	if (!sum && !add_transfer(io))
		__sync_fetch_and_add(&counts.lost_records, 1);
}

/* Makes a path for a program that ends or execs. Its memory may be gone, so only the kernel's work is
   left. */
INLINE void keep_only_kernel(struct walker *x)
{
	struct walk *w = x->walk;
	w->end = WALK_COMPLETE;
	w->known = 0;
	/* One frame stands for the kernel's own, or they follow. */
	w->fresh = !settings.kernel_frames;
	x->ws->fresh[0] = (struct frame){0};
	x->ws->keys[0] = KERNEL_KEY_KERNEL;
}

INLINE void walk(struct walker *x, bool known)
{
	struct walk *w = x->walk;
	bool near = known && w->sp - x->memo->base < 1ull << 32;
	w->base = near ? x->memo->base : (w->sp & ~7ull) - (1ull << 31);
	w->known = w->known_first = near ? x->memo->count : 0;
	w->next = w->known ? 0 : UINT64_MAX;
	w->retries = 0;
	bpf_loop(3 * KERNEL_FRAMES / STEPS_AT_ONCE + 3, step_some, x, 0);
}

/* Sends the kernel's frames alone: kernel threads have no others, and a program that ends or execs has
   none left. */
INLINE void send_kernel_frames(const struct moment *m, struct workspace *ws)
{
	struct kernel_path *path = &ws->path;
	ws->walk.fresh = 0;
	uint64_t own = add_kernel_frames(m, ws);
	if (own > KERNEL_OWN_FRAMES)
		own = KERNEL_OWN_FRAMES;
	fill_head(&path->head, KERNEL_PATH, m->event, m->start);
	path->memo = KERNEL_NO_MEMO;
	path->end = WALK_COMPLETE;
	path->kernel_frames = (uint8_t)own;
	path->kept = path->fresh = 0;
	path->ns = (uint32_t)(bpf_ktime_get_ns() - m->start);
	if (bpf_ringbuf_output(&ring, path, sizeof *path + own * 8, wake(0)))
		__sync_fetch_and_add(&counts.lost_records, 1);
}

/* The interpreter of a process; NULL: it has none. */
INLINE struct kernel_script *script_of(struct kernel_process *process)
{
	uint32_t number = process->script - 1;
	return process->script ? bpf_map_lookup_elem(&scripts, &number) : NULL;
}

/* Walks the thread that runs on this CPU, and sends its path. `space`: the number of the workspace. */
INLINE int take(const struct moment *m, struct kernel_process *process, uint32_t space)
{
	uint64_t id = bpf_get_current_pid_tgid();
	uint32_t tgid = (uint32_t)(id >> 32), tid = (uint32_t)id;
	struct workspace *ws = bpf_map_lookup_elem(&workspaces, &space);
	if (!ws)
		return 0;
	begin(&ws->walk);
	ws->calls.marks = ws->calls.head.count = 0;
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	bool ending = task->flags & ENDING || BPF_CORE_READ_BITFIELD(task, in_execve);
	if (settings.whole && (ending || task->flags & OF_KERNEL)) {
		send_kernel_frames(m, ws);
		return 0;
	}
	if (!process || (!list_of(process, tgid) && !ending)) {
		leave_copy(m, ws, process);
		return 0;
	}
	uint32_t number = (tid * 0x9e3779b1u) >> (32 - settings.memo_bits);
	struct memo *memo = bpf_map_lookup_elem(&memos, &number);
	if (!memo)
		return 0;
	struct walker x = {ws, &ws->walk, memo, process, space * KERNEL_PLACES};
	bool mine = !__sync_lock_test_and_set(&memo->busy, 1);
	struct kernel_script *script = script_of(process);
	if (script)
		read_calls(ws, memo, script);
	bool known = mine && memo->thread == tid && memo->serial == process->serial;
	bool clocked = m->event < KERNEL_METRICS && !m->io;
	if (known && !script && !ending && clocked && brake_holds(memo)) {
		brake_repeat(&ws->walk, memo);
		send_path(m, &x, number);
		memo->busy = 0;
		return 0;
	}
	if (ending)
		keep_only_kernel(&x);
	else
		walk(&x, known);
	if (is_unborn(&ws->walk, process) || is_leaving(m, &ws->walk))
		keep_only_kernel(&x);
	/* Memory that is there may be out of reach in an interrupt: a page that the program has not
	   touched since a fork, or since the kernel looked who uses it, on CPUs that do not mark pages
	   themselves. */
	if (script && ws->calls.head.count)
		send_calls(ws, script, m->event, m->start);
	if ((ws->walk.end == WALK_NO_MODULE && (!process->resigned || ws->walk.elsewhere)) ||
	    (ws->walk.end == WALK_BAD_MEMORY && ws->walk.fresh))
		leave_copy(m, ws, process);
	else if (m->io)
		leave_io(m, &x, mine ? number : KERNEL_NO_MEMO);
	else
		send_path(m, &x, mine ? number : KERNEL_NO_MEMO);
	if (mine && clocked)
		brake_set(memo, (uint64_t)ws->walk.known + ws->walk.fresh, m->start);
	if (mine)
		memo->busy = 0;
	return 0;
}

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

/* Returns when the thread left the CPU; NULL: it is not sampled. */
INLINE struct off *off_of(struct task_struct *task)
{
	uint32_t tgid = task->tgid;
	if (!task->pid || task->flags & (ENDING | OF_KERNEL))
		return NULL;
	struct off *off = bpf_task_storage_get(&offs, task, 0, 0);
	if (off) /* it was asked for before */
		return off;
	if (!settings.whole && !bpf_map_lookup_elem(&processes, &tgid))
		return NULL;
	return make_off(task);
}

INLINE void leave(struct task_struct *task, struct off *off, bool preempted, uint64_t now)
{
	if (!off->since && now > off->chosen)
		off->sums.cpu_ns += now - off->chosen;
	off->since = now;
	off->run_delay = run_delay(task);
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
	out->blocked_before = off->sums.blocked_ns;
	out->waker = off->waker;
	out->waker_process = off->waker_process;
	out->waker_thread = off->waker_thread;
	out->reserved = 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(left, bool preempted, struct task_struct *task, struct task_struct *next)
{
	struct off *off = off_of(task);
	uint64_t now = bpf_ktime_get_ns();
	if (off)
		leave(task, off, preempted, now);
	off = bpf_task_storage_get(&offs, next, 0, 0);
	if (off)
		off->chosen = now;
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
	bool interrupt = !waker->pid || cpu_preempt_count(waker) & IN_INTERRUPT;
	off->waker = interrupt                  ? KERNEL_WAKER_INTERRUPT
		     : waker->flags & OF_KERNEL ? KERNEL_WAKER_KERNEL
						: KERNEL_WAKER_THREAD;
	return 0;
}

/* The thread that was chosen runs. Its user stack is as it was when it left the CPU, and can be read now. */
INLINE int come_back(void *context)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct off *off = bpf_task_storage_get(&offs, task, 0, 0);
	if (!off || !off->since || task->flags & ENDING)
		return 0;
	uint64_t now = bpf_ktime_get_ns();
	struct kernel_off out;
	fill_off(&out, task, off, now);
	off->sums.blocked_ns += out.ns - out.queued_ns;
	off->sums.queued_ns += out.queued_ns;
	off->chosen = off->since + out.ns;
	off->since = 0;
	if (!is_off_sampled(out.ns))
		return 0;
	uint32_t tgid = task->tgid;
	struct kernel_process *process = bpf_map_lookup_elem(&processes, &tgid);
	if (process ? process->asleep : !settings.whole)
		return 0;
	if (bpf_ringbuf_output(&ring, &out, sizeof out, wake(0))) {
		__sync_fetch_and_add(&counts.lost_records, 1);
		return 0;
	}
	const struct moment m = {context, true, KERNEL_EVENT_OFF, now, NULL};
	return take(&m, process, settings.cpus + bpf_get_smp_processor_id());
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
	fill_sums(&out.sums, off, out.time);
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
	uint32_t tgid = task->tgid;
	struct kernel_process *process = bpf_map_lookup_elem(&processes, &tgid);
	struct kernel_io out = {
		.key = {.object = io->object,
			.process = tgid,
			.thread = task->pid,
			.act = io->act,
			.changes = process ? process->changes : 0},
		.sum = {.calls = 1,
			.bytes = bytes_of(io, returned),
			.ns = now - io->since,
			.own_ns = io->own_ns},
	};
	io->act = 0;
	fill_head(&out.head, KERNEL_IO, KERNEL_EVENT_IO, now);
	const struct moment m = {ctx, false, KERNEL_EVENT_IO, now, &out};
	return take(&m, process, settings.cpus + bpf_get_smp_processor_id());
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
		fill_sums(&t.sums, off, t.head.time);
		restart_sums(off);
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
	fill_task(&t, KERNEL_EXIT, task);
	t.head.process = id;
	t.head.thread = task->pid;
	t.last = !task->signal->live.counter;
	t.status = task->signal->group_exit_code ? task->signal->group_exit_code : task->exit_code;
	t.cpu_ns = task->se.sum_exec_runtime;
	struct off *off = settings.off_ns && !(task->flags & OF_KERNEL) ? make_off(task) : NULL;
	if (off)
		fill_sums(&t.sums, off, t.head.time);
	if (t.last)
		bpf_map_delete_elem(&processes, &id);
	if (bpf_ringbuf_output(&ring, &t, sizeof t, wake(0)))
		__sync_fetch_and_add(&counts.lost_records, 1);
	return 0;
}
