/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every thread has a record in the arena. The creating thread takes the record. The new thread makes it its
 * own, and then calls the program's function: by a tail call, so that none of our frames is on its stack.
 * Nothing is done at a thread's end: the collector notices that it is gone. So the thread's last destructors
 * are sampled, too.
 */
#include "agent/agent.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "safe/syscall.h"

#define PAGE 4096u
#define SELF_REACH (64u << 10)    /* how far above its first frame a thread's libc data may be */
#define STACK_REACH (64ull << 20) /* the smallest stack_reach, whatever is known */
#define STACK_SIZE (8ull << 20)   /* what a thread has if there is no limit */
#define STACK_REACH_MAX (1ull << 30)

AGENT_OWN struct agent_thread *agent_self;
AGENT_OWN uint64_t agent_stack;

struct agent_thread *thread_take(void)
{
	struct agent_thread *t = (struct agent_thread *)arena_thread_take(agent.arena);
	if (!t) {
		atomic_fetch_add(&agent.arena->unsampled, 1);
		return NULL;
	}
	t->shared.process = getpid();
	t->shared.parent = getppid();
	/* the rest of the chunk is as its last owner left it */
	memset((char *)t + sizeof t->shared, 0, sizeof *t - sizeof t->shared);
	return t;
}

static void thread_drop(struct agent_thread *t)
{
	arena_thread_free(agent.arena, &t->shared);
}

/* POSIX timers, if perf events are not allowed. They are only as exact as the kernel's own tick, so the
   weights of samples come from the thread's CPU clock. */

/* CPU clocks of other threads of this process (the kernel's MAKE_THREAD_CPUCLOCK). */
static int clock_of(const struct agent_thread *t)
{
	return t == agent_self ? CLOCK_THREAD_CPUTIME_ID : (int)(~(unsigned)t->shared.tid << 3 | 6);
}

static void timer_start(struct agent_thread *t)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = WIRE_SIGNAL};
	uint64_t period = agent.events[0].period;
	struct itimerspec when = {
		.it_interval = {(time_t)(period / 1000000000u), (long)(period % 1000000000u)},
	};
	when.it_value = when.it_interval;
	event.sigev_value.sival_ptr = &agent;
	event._sigev_un._tid = t->shared.tid;
	if (SAFE_SYSCALL(SYS_timer_create, clock_of(t), &event, &t->timer, 0) == 0) {
		SAFE_SYSCALL(SYS_timer_settime, t->timer, 0, &when, 0);
		t->shared.timer = 1;
	} else {
		atomic_fetch_add(&agent.arena->unsampled, 1);
	}
}

/* The kernel keeps the timers of ended threads until we delete them. The collector may have seen a
   thread's end before us, and have freed the record. Nobody takes that record before its timer is
   deleted here. */
void timers_reap(void)
{
	const struct arena_header *arena = agent.arena;
	int32_t process = getpid();
	for (uint32_t number = arena->threads; number;) {
		struct agent_thread *t = arena_at(arena, number);
		number = t->shared.chunk.next;
		uint32_t state = t->shared.state;
		if ((state != ARENA_LIVE && state != ARENA_FREE) || t->shared.process != process ||
		    !t->shared.timer || SAFE_SYSCALL(SYS_tgkill, process, t->shared.tid, 0, 0) == 0)
			continue;
		/* Read it first: as soon as shared.timer is 0, another thread may take the record. */
		int timer = t->timer;
		if (atomic_exchange(&t->shared.timer, 0))
			SAFE_SYSCALL(SYS_timer_delete, timer, 0, 0, 0);
		if (state == ARENA_LIVE)
			atomic_store(&t->shared.state, ARENA_DONE);
	}
}

void timers_end(void)
{
	int32_t process = getpid();
	for (uint32_t number = agent.arena->threads; number;) {
		struct agent_thread *t = arena_at(agent.arena, number);
		number = t->shared.chunk.next;
		int timer = t->timer;
		if (t->shared.process == process && atomic_exchange(&t->shared.timer, 0))
			SAFE_SYSCALL(SYS_timer_delete, timer, 0, 0, 0);
	}
}

/* The upper end of memory that is surely the thread's stack. libc keeps its data about a thread at the
   upper end of the thread's stack. The first thread's stack is older than that data. */
static uint64_t top_of_stack(uint64_t frame)
{
	uint64_t self = (uint64_t)__builtin_thread_pointer() & ~7ull;
	return self - frame < SELF_REACH ? self : (frame | (PAGE - 1)) + 1;
}

/* Bounds the size of the stack that is believed. */
static void know_reach(struct agent_thread *t)
{
	t->stack_size = t->stack_reach ? t->stack_reach : STACK_SIZE;
	if (t->stack_reach < STACK_REACH)
		t->stack_reach = STACK_REACH;
	if (t->stack_reach > STACK_REACH_MAX)
		t->stack_reach = STACK_REACH_MAX;
}

void thread_begin(struct agent_thread *t, uint64_t stack_top)
{
	int saved = errno;
	know_reach(t);
	t->shared.tid = (int32_t)SAFE_SYSCALL(SYS_gettid, 0, 0, 0, 0);
	t->shared.start_ns = agent_ns(CLOCK_MONOTONIC);
	t->cpu_last = agent_ns(CLOCK_THREAD_CPUTIME_ID);
	t->shared.cpu_start_ns = t->shared.cpu_ns = t->cpu_last;
	t->shared.stack_top = t->stack_low ? stack_top : top_of_stack(stack_top);
	if (!t->stack_low)
		t->stack_low = (stack_top & ~(uint64_t)(PAGE - 1));
	t->patience = 1;
	if (!cct_begin(&t->tree, agent.arena, &t->shared)) {
		atomic_fetch_add(&agent.arena->unsampled, 1);
		thread_drop(t);
		errno = saved;
		return;
	}
	uint32_t stack = arena_take(agent.arena); /* else the program's stack is used */
	if (stack)
		atomic_store(&t->shared.scratch, stack);
	agent_stack = stack ? (uint64_t)arena_at(agent.arena, stack) + ARENA_CHUNK : 0;
	t->shared.handler_stack = agent_stack;
	agent_self = t;
	if (pause_begin_thread)
		pause_begin_thread(t);
	if (AGENT_SIGNALS)
		signals_unblock();
	atomic_store_explicit(&t->shared.state, ARENA_LIVE, memory_order_release);
	if (agent.sampler == WIRE_TIMERS)
		timer_start(t);
	agent_ring();
	errno = saved;
}

/* ---- threads that ran before ---- */

bool thread_begin_other(struct agent_thread *t, int32_t tid)
{
	t->shared.tid = tid;
	t->shared.start_ns = agent_ns(CLOCK_MONOTONIC);
	t->cpu_last = agent_ns(clock_of(t));
	t->shared.cpu_start_ns = t->shared.cpu_ns = t->cpu_last;
	t->shared.list_place = agent.list_place;
	t->patience = 1;
	atomic_store(&t->unclaimed, true);
	if (!cct_begin(&t->tree, agent.arena, &t->shared)) {
		atomic_fetch_add(&agent.arena->unsampled, 1);
		thread_drop(t);
		return false;
	}
	atomic_store_explicit(&t->shared.state, ARENA_LIVE, memory_order_release);
	if (agent.sampler == WIRE_TIMERS)
		timer_start(t);
	return true;
}

extern void *__libc_stack_end;

void thread_claim(struct agent_thread *t, uint64_t sp, uint64_t stack)
{
	bool first = t->shared.tid == t->shared.process;
	uint64_t self = (uint64_t)__builtin_thread_pointer() & ~7ull;
	uint64_t top = first ? (uint64_t)__libc_stack_end : self;
	t->stack_reach = first ? agent.stack_limit : STACK_REACH;
	know_reach(t);
	if (sp >= top || top - sp > t->stack_reach) /* on a stack of the program's own */
		top = (sp | (PAGE - 1)) + 1;
	t->shared.stack_top = top;
	t->stack_low = (top - 1) & ~(uint64_t)(PAGE - 1);
	t->shared.handler_stack = agent_stack = stack;
	agent_self = t;
	atomic_store(&t->unclaimed, false);
}

/* ---- new threads ---- */

REAL_SLOT(pthread_create);
REAL_SLOT(pthread_attr_getstacksize);
REAL_SLOT(thrd_create);

static void *thread_main(void *record)
{
	struct agent_thread *t = record;
	void *(*start)(void *) = t->start;
	void *argument = t->argument;
	thread_begin(t, (uint64_t)__builtin_frame_address(0));
	return start(argument);
}

static int thread_main_c11(void *record)
{
	struct agent_thread *t = record;
	int (*start)(void *) = t->start_c11;
	void *argument = t->argument;
	thread_begin(t, (uint64_t)__builtin_frame_address(0));
	return start(argument);
}

static struct agent_thread *prepare(void *argument)
{
	struct agent_thread *creator = agent_self, *t;
	alternate_stack_give_up();
	if (!atomic_load(&agent.on) || agent.arena->stop)
		return NULL;
	if (agent.sampler == WIRE_TIMERS)
		timers_reap();
	t = thread_take();
	if (!t)
		return NULL;
	t->argument = argument;
	t->masked = creator && creator->masked;
	t->stack_reach = agent.stack_limit < RLIM_INFINITY ? agent.stack_limit : 0;
	t->shared.list_place = creator ? creator->shared.list_place : agent.list_place;
	return t;
}

AGENT_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
				void *(*start)(void *), void *argument)
{
	struct agent_thread *t = prepare(argument);
	if (!t)
		return REAL(pthread_create)(thread, attributes, start, argument);
	t->start = start;
	size_t size;
	if (attributes && !REAL(pthread_attr_getstacksize)(attributes, &size))
		t->stack_reach = size;
	int error = REAL(pthread_create)(thread, attributes, thread_main, t);
	if (error)
		thread_drop(t);
	return error;
}

AGENT_EXPORT int thrd_create(thrd_t *thread, thrd_start_t start, void *argument)
{
	struct agent_thread *t = prepare(argument);
	if (!t)
		return REAL(thrd_create)(thread, start, argument);
	t->start_c11 = start;
	int result = REAL(thrd_create)(thread, thread_main_c11, t);
	if (result != thrd_success)
		thread_drop(t);
	return result;
}
