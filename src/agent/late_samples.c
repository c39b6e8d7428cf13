/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples in a process that ran before the agent came.
 *
 * No function of the program is replaced. So the program may block our signal, and is then not sampled here; a new thread
 * is found a moment after it began; and signals of timers may only be used if they interrupt nothing. All that
 * a thread must do itself, it does when the first signal comes to it in its own code: it takes the record that waits for it
 * (late_enter). Its stack for the handler is not in the arena, but in memory that stays: nobody can tell when the last
 * thread has left the last instruction that uses it. Everything else is used between late_enter and late_leave only.
 *
 * The library stays in the process when the recording ends, with these stacks. The next recording uses both again.
 */
#include "agent/late.h"

#include <sys/mman.h>
#include <ucontext.h>

#include "agent/cpu.h"
#include "safe/syscall.h"

#define PAUSE_NS 10000000ull  /* between two looks at the threads */
#define PAUSES_PER_LOOK 50    /* of the time that a look takes */
#define GRACE_NS 500000000ull /* between the collector's death and the end of its events, amply */
#define END_NS 30000000000ull /* for the collector to close its events */
#define STACKS_MAX 8192u      /* threads at the same time that are sampled */
#define SIGNALS 65

/* ---- who is inside ---- */

static _Atomic uint32_t inside;

struct stack {
	int32_t tid;
	uint64_t top;
};
static struct stack stacks[STACKS_MAX];
static _Atomic uint32_t stack_count;

static uint64_t stack_of(int32_t tid)
{
	uint32_t count = atomic_load_explicit(&stack_count, memory_order_acquire);
	for (uint32_t i = 0; i < count; i++)
		if (stacks[i].tid == tid)
			return stacks[i].top;
	return 0;
}

static struct agent_thread *find_record(int32_t tid)
{
	int32_t process = getpid();
	for (uint32_t number = agent.arena->threads; number;) {
		struct agent_thread *t = arena_at(agent.arena, number);
		if (t->shared.tid == tid && t->shared.process == process &&
		    t->shared.state == ARENA_LIVE && atomic_load(&t->unclaimed))
			return t;
		number = t->shared.chunk.next;
	}
	return NULL;
}

/* The first signal comes on the program's stack. So only the record is taken, and the sample is counted with the next. */
static struct agent_thread *claim(const ucontext_t *context)
{
	int32_t tid = (int32_t)SAFE_SYSCALL(SYS_gettid, 0, 0, 0, 0);
	struct agent_thread *t = find_record(tid);
	uint64_t room[CPU_REGISTERS];
	uint64_t sp = context ? cpu_registers(context, room)[CPU_HERE.sp]
			      : (uint64_t)__builtin_frame_address(0);
	if (!t)
		return NULL;
	thread_claim(t, sp, stack_of(tid));
	late_own = atomic_load(&late_recording);
	if (context)
		t->skipped[0]++;
	return context ? NULL : t;
}

struct agent_thread *late_enter(const void *context)
{
	atomic_fetch_add(&inside, 1);
	if (!atomic_load(&agent.on))
		return NULL;
	if (agent_self && late_own == atomic_load_explicit(&late_recording, memory_order_relaxed))
		return agent_self;
	agent_self = NULL;
	return claim(context);
}

void late_leave(void)
{
	atomic_fetch_sub(&inside, 1);
}

/* ---- threads ---- */

static bool is_alive(int32_t process, int32_t tid)
{
	return SAFE_SYSCALL(SYS_tgkill, process, tid, 0, 0) == 0;
}

/* Gives the thread a stack for the handler: that of a thread which has ended, or a new one. */
static void give_stack(int32_t tid)
{
	int32_t process = getpid();
	uint32_t count = atomic_load(&stack_count);
	if (stack_of(tid))
		return;
	for (uint32_t i = 0; i < count; i++)
		if (!is_alive(process, stacks[i].tid)) {
			stacks[i].tid = tid;
			return;
		}
	void *memory = count < STACKS_MAX ? mmap(NULL, ARENA_CHUNK, PROT_READ | PROT_WRITE,
						 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
					  : MAP_FAILED;
	if (memory == MAP_FAILED)
		return; /* the program's stack is used */
	stacks[count] = (struct stack){tid, (uint64_t)memory + ARENA_CHUNK};
	atomic_store_explicit(&stack_count, count + 1, memory_order_release);
}

static bool has_record(int32_t process, int32_t tid)
{
	for (uint32_t number = agent.arena->threads; number;) {
		const struct agent_thread *t = arena_at(agent.arena, number);
		if (t->shared.tid == tid && t->shared.process == process &&
		    t->shared.state == ARENA_LIVE)
			return true;
		number = t->shared.chunk.next;
	}
	return false;
}

void late_meet(int32_t tid, bool *met)
{
	struct agent_thread *t;
	if (has_record(getpid(), tid))
		return;
	t = thread_take();
	if (!t)
		return;
	give_stack(tid);
	*met |= thread_begin_other(t, tid);
}

/* ---- handlers on alternate stacks ---- */

/* An alternate stack of the program may have no room for our signal on top of the handler's. So these handlers block it. */
static uint64_t masked_handlers;

struct kernel_action { /* struct sigaction of the kernel */
	void *handler;
	unsigned long flags;
	void *restorer;
	uint64_t mask;
};

static bool action(int signal, const struct kernel_action *set, struct kernel_action *get)
{
	return SAFE_SYSCALL(SYS_rt_sigaction, signal, set, get, 8) == 0;
}

static void mask_handlers(bool masks)
{
	const uint64_t ours = UINT64_C(1) << (WIRE_SIGNAL - 1);
	for (int i = 1; i < SIGNALS; i++) {
		struct kernel_action a;
		uint64_t bit = UINT64_C(1) << (i - 1);
		if (i == WIRE_SIGNAL || !action(i, NULL, &a) || a.handler == (void *)SIG_DFL ||
		    a.handler == (void *)SIG_IGN || !(a.flags & SA_ONSTACK))
			continue;
		if (masks && !(a.mask & ours)) {
			a.mask |= ours;
			if (action(i, &a, NULL))
				masked_handlers |= bit;
		} else if (!masks && masked_handlers & bit && a.mask & ours) {
			a.mask &= ~ours;
			action(i, &a, NULL);
		}
	}
	if (!masks)
		masked_handlers = 0;
}

/* ---- the recording ---- */

/* Returns true if the collector has stopped; false if it is gone, or the program's last thread has ended. */
static bool work(int32_t own)
{
	uint64_t knocked = agent_ns(CLOCK_MONOTONIC);
	while (!atomic_load(&agent.arena->stop)) {
		uint64_t start = agent_ns(CLOCK_MONOTONIC);
		if (!late_look(own) || late_is_gone(&knocked))
			return false;
		uint64_t pause = (agent_ns(CLOCK_MONOTONIC) - start) * PAUSES_PER_LOOK;
		late_rest(pause > PAUSE_NS ? pause : PAUSE_NS);
	}
	return true;
}

/* The collector closes its events, and then its socket. */
static void wait_for_events(bool stopped)
{
	uint64_t start = agent_ns(CLOCK_MONOTONIC);
	while (stopped && !agent_knock() && agent_ns(CLOCK_MONOTONIC) - start < END_NS)
		late_sleep(PAUSE_NS);
	if (!stopped)
		late_sleep(GRACE_NS);
}

static void leave(bool stopped)
{
	atomic_store(&agent.arena->stop, 1);
	if (agent.sampler == WIRE_TIMERS)
		timers_end();
	wait_for_events(stopped);
	atomic_store(&agent.on, false);
	signals_uninstall(true); /* a signal that waits in a thread that blocks it is forgotten */
	signals_uninstall(false);
	mask_handlers(false);
	while (atomic_load(&inside))
		late_sleep(1000000);
	agent_unmap();
}

void late_serve(int32_t own)
{
	mask_handlers(true);
	atomic_store(&agent.on, true);
	leave(work(own));
}

void late_fail(void)
{
	late_sleep(GRACE_NS); /* a collector that was killed may have opened events */
	signals_uninstall(false);
}
