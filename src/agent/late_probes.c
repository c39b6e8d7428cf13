/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of chosen functions in a process that ran before the agent came: probes.c says how they are counted.
 *
 *    this thread                          the collector
 *    islands are made (probe_prepare) ->  all threads stand still, the jumps are put in
 *    more are asked for               <-  probe add; one is taken out again: probe remove
 *                                         all are taken out
 *    nothing is counted any more      <-  stop
 *    quiet                            ->  waits until no thread is inside of our code, or of an island
 *    the memory is unmapped           <-  stop = ARENA_GO
 *
 * A thread of the program makes its record itself, at its first call. It is inside of our code if its PC is there; if it is at
 * work for a call (arena_thread.probe_busy); or while it makes its record (arena_header.joining). Elsewhere our code calls
 * nobody. Functions that were called by a stub return to it later, perhaps much later, and find that nothing is counted.
 *
 * If the collector is killed, the program counts on. The next one takes all out first, and does then what this
 * one should have done.
 */
#include "agent/late.h"

#include <pthread.h>
#include <string.h>

#include "agent/cpu.h"
#include "agent/probes.h"
#include "safe/syscall.h"

#define PAGE 4096u
#define PAUSE_NS 10000000ull
#define BRIEF_NS 1000000ull
#define ALONE_NS 200000000ull /* when the collector is gone */
#define STACK_MAX (UINT64_C(1) << 30)
#define SELF_SIZE 4096u /* libc's data of a thread is within so many bytes */

/* ---- the stack of a thread ---- */

/* Where libc has the stack of a thread in its data: its lower end and its size, at so many bytes from the thread pointer.
   They are found in our own thread, whose stack is known. 0: not found. */
static int64_t stack_place;

static uint64_t self_pointer(void)
{
	return (uint64_t)__builtin_thread_pointer();
}

static void find_stack_place(void)
{
	pthread_attr_t attributes;
	void *low;
	size_t size;
	if (stack_place || pthread_getattr_np(pthread_self(), &attributes))
		return;
	bool known = !pthread_attr_getstack(&attributes, &low, &size);
	pthread_attr_destroy(&attributes);
	uint64_t self = self_pointer(), start = (uint64_t)low, end = start + size;
	/* The thread pointer is at the beginning of this data, or at its end. */
	bool before = CPU_HERE.link != CPU_NO_REGISTER;
	uint64_t at = before ? self - SELF_SIZE : self, most = before ? self : self + SELF_SIZE;
	for (; known && at >= start && at + 16 <= most && at + 16 <= end; at += 8) {
		const uint64_t *words = (const uint64_t *)at;
		if (words[0] && words[0] <= start && words[0] + words[1] == end) {
			stack_place = (int64_t)(at - self);
			return;
		}
	}
}

static bool is_libc_stack(uint64_t sp, uint64_t *low)
{
	uint64_t self = self_pointer();
	if (!stack_place)
		return false;
	const uint64_t *words = (const uint64_t *)(self + (uint64_t)stack_place);
	*low = words[0];
	return words[0] && sp >= words[0] && sp < self && self - words[0] < words[1];
}

extern void *__libc_stack_end;

/* A stack that is not known is taken for one of the program's own. */
static void know_stack(struct agent_thread *t, uint64_t sp)
{
	uint64_t first = (uint64_t)__libc_stack_end, low;
	uint64_t limit = agent.stack_limit < STACK_MAX ? agent.stack_limit : STACK_MAX;
	if (is_libc_stack(sp, &low)) {
		t->shared.stack_top = self_pointer() & ~7ull;
		t->stack_size = t->stack_reach = t->shared.stack_top - low;
	} else if (sp < first && first - sp < limit) {
		t->shared.stack_top = first;
		t->stack_size = t->stack_reach = limit;
	} else {
		t->shared.stack_top = (sp | (PAGE - 1)) + 1;
		t->stack_size = 0;
		t->stack_reach = PAGE;
	}
	t->stack_low = (t->shared.stack_top - 1) & ~(uint64_t)(PAGE - 1);
}

/* ---- threads ---- */

static struct agent_thread *make_record(uint64_t sp)
{
	struct agent_thread *t = thread_take();
	if (!t)
		return NULL;
	t->shared.tid = (int32_t)SAFE_SYSCALL(SYS_gettid, 0, 0, 0, 0);
	t->shared.start_ns = agent_ns(CLOCK_MONOTONIC);
	t->cpu_last = agent_ns(CLOCK_THREAD_CPUTIME_ID);
	t->shared.cpu_start_ns = t->shared.cpu_ns = t->cpu_last;
	t->shared.list_place = agent.list_place;
	t->patience = 1;
	know_stack(t, sp);
	if (!cct_begin(&t->tree, agent.arena, &t->shared)) {
		atomic_fetch_add(&agent.arena->unsampled, 1);
		arena_thread_free(agent.arena, &t->shared);
		return NULL;
	}
	atomic_store_explicit(&t->shared.state, ARENA_LIVE, memory_order_release);
	return t;
}

/* A handler that comes meanwhile finds no record, and makes none. */
struct agent_thread *late_join_new(uint64_t sp)
{
	/* A child that runs in our memory until its exec has the thread's data, but is another thread (vfork). */
	if (SAFE_SYSCALL(SYS_getpid, 0, 0, 0, 0) != late_process)
		return NULL;
	atomic_fetch_add(&agent.arena->joining, 1);
	agent_self = NULL;
	probe_begin_thread();
	atomic_signal_fence(memory_order_seq_cst);
	late_own = atomic_load(&late_recording);
	struct agent_thread *t = make_record(sp);
	atomic_signal_fence(memory_order_seq_cst);
	agent_self = t;
	if (t)
		agent_ring();
	atomic_fetch_sub(&agent.arena->joining, 1);
	return t;
}

/* For start.c: a thread forks. */
struct agent_thread *late_enter(const void *context)
{
	(void)context;
	return late_join((uint64_t)__builtin_frame_address(0));
}

void late_leave(void)
{
}

void late_meet(int32_t tid, bool *met)
{
	(void)tid;
	(void)met;
}

/* ---- the recording ---- */

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

static void tell_places(int32_t own)
{
	struct arena_header *a = agent.arena;
	a->served_by = own;
	a->address = (uint64_t)a;
	a->code = (uint64_t)__ehdr_start;
	a->code_end = (uint64_t)etext;
	a->stubs_begin = (uint64_t)probe_stubs;
	a->stubs_end = (uint64_t)probe_stubs + PROBE_STUBS * PROBE_STUB_SIZE;
}

/* Returns false if the program's last thread has ended. */
static bool count(int32_t own)
{
	uint64_t knocked = agent_ns(CLOCK_MONOTONIC);
	bool alone = false;
	while (!atomic_load(&agent.arena->stop)) {
		probe_prepare();
		if (!late_look(own))
			return false;
		alone = alone || late_is_gone(&knocked);
		late_rest(alone ? ALONE_NS : PAUSE_NS);
	}
	return true;
}

/* Waits until no thread is inside. Returns false if the program's last thread has ended. */
static bool become_quiet(int32_t own)
{
	atomic_store(&agent.on, false);
	atomic_store(&agent.arena->quiet, 1);
	while (atomic_load(&agent.arena->stop) != ARENA_GO) {
		if (!late_look(own))
			return false;
		late_sleep(BRIEF_NS);
	}
	return true;
}

void late_serve(int32_t own)
{
	find_stack_place();
	tell_places(own);
	probe_prepare();
	atomic_store(&agent.on, true);
	agent_ring();
	if (!count(own) || !become_quiet(own))
		return;
	probe_unmap();
	probe_forget();
	agent_unmap();
}

void late_fail(void)
{
}
