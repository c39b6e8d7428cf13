/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once
/*
 * What a program of the sampler does at a sample: take() walks the stack of the thread that runs on this CPU, and sends
 * what is new since the previous walk. If it cannot be walked here, a copy of the stack is sent. sample.bpf.c uses it.
 */
#include "collect/kernel/bpf/brake.h"
#include "collect/kernel/bpf/code.h"
#include "collect/kernel/bpf/count.h"
#include "collect/kernel/bpf/far.h"
#include "collect/kernel/bpf/io.h"
#include "collect/kernel/bpf/memo.h"
#include "collect/kernel/bpf/off.h"
#include "collect/kernel/bpf/probe.h"
#include "collect/kernel/bpf/record.h"
#include "collect/kernel/bpf/script.h"
#include "collect/kernel/bpf/step.h"

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
	struct kernel_io *io; /* what was read or written, or called; NULL: it is another event */
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

/* When the collector was last woken for the copy of a probe's thread. */
static volatile uint64_t woken_ns;

/* Whether the collector is woken for this copy. Until the code of a program is known, each call of a probed function
   leaves one, and to wake somebody takes longer than many a call. */
INLINE uint64_t is_urgent(const struct moment *m)
{
	if (!m->io || m->event != KERNEL_EVENT_PROBE) /* the first is known when it is loaded */
		return 1;
	if (m->start - woken_ns < PROBE_WAKE_NS)
		return 0;
	woken_ns = m->start;
	return 1;
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
					   wake(is_urgent(m)));
	}
	return !bpf_ringbuf_output(&ring, s, sizeof *s + size, wake(is_urgent(m)));
}

/* Counts a call of a probed function whose path is not known here. It has a sum of its own, because its end will be
   counted there, too. Returns whether there was room. */
INLINE bool count_alone(struct kernel_io *io)
{
	if (io->key.act != KERNEL_IO_PROBE)
		return false;
	io->key.path = io->head.time << 1; /* those of known paths are odd */
	if (!add_transfer(io))
		return false;
	__builtin_memset(&io->sum, 0, sizeof io->sum);
	return true;
}

/* Counts a call without its path. */
INLINE void count_pathless(struct kernel_io *io)
{
	io->key.path = 0;
	if (add_transfer(io))
		return;
	if (io->key.act == KERNEL_IO_PROBE) {
		io->key = key_of_rest(io->key.object);
		if (add_transfer(io))
			return;
	}
	__sync_fetch_and_add(&counts.lost_records, 1);
}

/* Sends a copy with what was read or written. Where there is no room, the call is counted without its path. */
INLINE void leave_copy(const struct moment *m, struct workspace *ws,
		       const struct kernel_process *process)
{
	if (m->io) {
		bool counted = count_alone(m->io);
		if (!counted)
			m->io->key.path = 0;
		if ((!send_io(m->io) || !send_copy(m, ws, process)) && !counted)
			count_pathless(m->io);
		return;
	}
	if (!send_copy(m, ws, process))
		__sync_fetch_and_add(&counts.lost_copies, 1);
}

/* Counts what was read or written by the path that was walked, and sends the path if the collector does not have
   it. `script`: the interpreter whose calls are sent with it; NULL: there are none, or they were sent. */
INLINE void leave_io(const struct moment *m, struct walker *x, uint32_t slot,
		     struct kernel_script *script)
{
	struct kernel_io *io = m->io;
	struct kernel_transfer *sum = NULL;
	/* Of reads and writes, the calls of an interpreter are no part of the hash. */
	if (script || !x->ws->calls.head.count) {
		struct hashes *memo = bpf_map_lookup_elem(&hashes, &slot);
		uint32_t kept = x->walk->met ? x->walk->known : 0;
		uint64_t hash = mix(hash_path(x->ws, memo, kept, false), x->process->serial);
		io->key.path = (script ? hash_calls(x->ws, hash) : hash) | 1;
		sum = add_transfer(io);
		if (sum && sum->sent)
			return;
	}
	if (script)
		send_calls(x->ws, script, m->event, m->start);
	bool counted = sum;
	if (sum)
		__builtin_memset(&io->sum, 0, sizeof io->sum);
	else
		counted = count_alone(io);
	if (send_io(io) && send_path(m, x, slot)) {
		if (sum)
			sum->sent = 1;
		return;
	}
	if (!counted)
		count_pathless(io);
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
	/* Not with an interpreter: its calls are no part of the memo. */
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
	bool copied = (ws->walk.end == WALK_NO_MODULE &&
		       (!process->resigned || ws->walk.elsewhere)) ||
		      (ws->walk.end == WALK_BAD_MEMORY && ws->walk.fresh);
	bool called = script && ws->calls.head.count;
	bool later = m->io && m->event == KERNEL_EVENT_PROBE && !copied;
	if (called && !later)
		send_calls(ws, script, m->event, m->start);
	if (copied)
		leave_copy(m, ws, process);
	else if (m->io)
		leave_io(m, &x, mine ? number : KERNEL_NO_MEMO, called && later ? script : NULL);
	else
		send_path(m, &x, mine ? number : KERNEL_NO_MEMO);
	if (mine && clocked)
		brake_set(memo, (uint64_t)ws->walk.known + ws->walk.fresh, m->start);
	if (mine)
		memo->busy = 0;
	return 0;
}
