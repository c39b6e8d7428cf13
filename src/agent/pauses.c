/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time off the CPU, and reads and writes.
 *
 * Whether a call has waited, only the thread's CPU clock tells, and asking for that is a system call. So it is asked for
 * at the end of calls that took long enough. All time off the CPU until then is known:
 *
 *    off the CPU = since the thread's beginning - CPU time
 *
 * What is new since the last look belongs to this call, but at most as much as the call took. The rest is time in which
 * the thread had no CPU, or waited in ways that are not seen. The collector adds that, as a row of its own. A call that
 * moves many bytes takes long without waiting. There, the clock is asked for at the beginning, too.
 *
 * Samples: in each period of time off the CPU, one moment is chosen at random. The wait that has this moment is walked
 * and gets one sample. So the number of samples is right but for one in each thread, and programs that wait in step with
 * the period are sampled fairly.
 *
 * Reads and writes are all walked and counted. What their descriptors stand for: descriptors.c.
 */
#include "agent/pauses.h"

#include <pthread.h>
#include <sys/stat.h>
#include <time.h>

#include "agent/descriptors.h"
#include "agent/frames.h"
#include "safe/syscall.h"

#define SHORT_NS 1000u    /* nobody goes to sleep and is back sooner */
#define LARGE (64u << 10) /* bytes that take a while to copy */

/* ---- beginning and end of threads ---- */

static pthread_key_t at_end;
static bool has_key;

static uint64_t next_random(struct agent_thread *t)
{
	t->random ^= t->random << 13;
	t->random ^= t->random >> 7;
	t->random ^= t->random << 17;
	return t->random;
}

static uint64_t random_below(struct agent_thread *t, uint64_t limit)
{
	return (uint64_t)((unsigned __int128)next_random(t) * limit >> 64);
}

/* libc calls it once more as long as it sets the value again, after the destructors of the program. */
static void note_end(void *thread)
{
	if (agent_self != thread)
		return;
	pause_end_thread(thread);
	pthread_setspecific(at_end, thread);
}

void pause_end_thread(struct agent_thread *t)
{
	atomic_store_explicit(&t->shared.cpu_ns, agent_ns(CLOCK_THREAD_CPUTIME_ID),
			      memory_order_relaxed);
	atomic_store_explicit(&t->shared.end_ns, agent_ns(CLOCK_MONOTONIC), memory_order_relaxed);
}

void pause_start(void)
{
	agent.watches_pauses = agent.pauses.off || agent.pauses.io;
	has_key = agent.pauses.off && !pthread_key_create(&at_end, note_end);
}

void pause_begin_thread(struct agent_thread *t)
{
	t->random = (t->shared.start_ns * UINT64_C(0x9e3779b97f4a7c15)) ^ (uint64_t)t->shared.tid;
	t->random = t->random ? t->random : 1;
	for (uint32_t i = 0; i < agent.pauses.off; i++)
		t->off[i].chance = random_below(t, agent.pauses.metrics[i].period);
	if (has_key)
		pthread_setspecific(at_end, t);
}

/* ---- samples of time off the CPU ---- */

/* Adds time, and returns how many samples it has. */
static uint32_t ring(struct agent_thread *t, uint32_t i, uint64_t ns)
{
	struct agent_off *o = &t->off[i];
	uint64_t period = agent.pauses.metrics[i].period;
	uint64_t before = o->off, after = before + ns, turn = before / period,
		 last = after / period;
	uint64_t chance = turn * period + o->chance, count = 0;
	o->off = after;
	if (turn == last)
		return before <= chance && chance < after;
	count = (before <= chance) + (last - turn - 1); /* in each period between them, one */
	o->chance = random_below(t, period);
	count += last * period + o->chance < after;
	return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

/* How much of a call was off the CPU. */
static uint64_t off_time(struct agent_thread *t, const struct pause *p, uint64_t now)
{
	uint64_t cpu = agent_ns(CLOCK_THREAD_CPUTIME_ID);
	uint64_t lived = now - t->shared.start_ns, ran = cpu - t->shared.cpu_start_ns;
	uint64_t all = lived > ran ? lived - ran : 0;
	uint64_t off = all > t->off_known ? all - t->off_known : 0, most = p->ns;
	if (p->cpu)
		most = cpu - p->cpu < most ? most - (cpu - p->cpu) : 0;
	if (all > t->off_known)
		t->off_known = all;
	atomic_store_explicit(&t->shared.cpu_ns, cpu, memory_order_relaxed);
	return off < most ? off : most;
}

static bool count_off(struct agent_thread *t, struct pause *p, uint64_t now)
{
	bool any = false;
	if (!agent.pauses.off || !p->open || p->ns < SHORT_NS)
		return false;
	uint64_t off = off_time(t, p, now);
	counter_add(&t->shared.waited_ns, off);
	if (off >= SHORT_NS)
		t->waits[t->wait_next++ % AGENT_WAITS] = (struct agent_wait){p->start, now};
	for (uint32_t i = 0; i < agent.pauses.off; i++)
		any |= (p->rings[i] = ring(t, i, off)) != 0;
	return any;
}

/* ---- one call ---- */

/* For what a thread waits that reads or writes. */
static uint32_t act_of(int fd)
{
	struct stat st;
	if (fd < 0 || SAFE_SYSCALL(SYS_fstat, fd, &st, 0, 0))
		return ARENA_WAITS_OTHER;
	switch (st.st_mode & S_IFMT) {
	case S_IFSOCK:
		return ARENA_WAITS_SOCKET;
	case S_IFIFO:
		return ARENA_WAITS_PIPE;
	case S_IFREG:
	case S_IFDIR:
	case S_IFBLK:
		return ARENA_WAITS_DISK;
	case S_IFCHR:
		return ARENA_WAITS_TERMINAL;
	default: /* eventfd and the like have no kind */
		return ARENA_WAITS_EVENT;
	}
}

/* Whether it runs a handler of the program on a stack that may have no room for us. If it is surely on its own stack,
   that need not be asked. */
static bool is_on_small_stack(const struct agent_thread *t, uint64_t frame)
{
	bool own = frame >= t->stack_low && frame < t->shared.stack_top;
	return !own && signals_must_stay_blocked();
}

bool pause_begin(struct pause *p, uint32_t act, int descriptor, size_t size, void *function)
{
	struct agent_thread *t = agent_self;
	uint64_t frame = (uint64_t)__builtin_frame_address(0);
	if (((act & PAUSE_ACT) >= ARENA_WAITS && !agent.pauses.off) || is_on_small_stack(t, frame))
		return false;
	*p = (struct pause){.start = agent_ns(CLOCK_MONOTONIC),
			    .function = (uint64_t)function,
			    .act = act & PAUSE_ACT,
			    .moves = act & PAUSE_UNCOUNTED ? 0
				     : act & PAUSE_TWICE   ? 2
							   : 1,
			    .descriptor = descriptor};
	/* A handler may wait while the thread waits already: then all of it is the first wait's. That one may have been
	   left behind by a jump: then its frame is gone. */
	uint64_t since = atomic_load_explicit(&t->shared.wait.since, memory_order_relaxed);
	p->open = agent.pauses.off && (!since || frame >= t->wait_frame);
	if (!p->open)
		return false;
	if (size >= LARGE || act == ARENA_SYNC)
		p->cpu = agent_ns(CLOCK_THREAD_CPUTIME_ID);
	atomic_store_explicit(&t->shared.wait.since, 0, memory_order_relaxed);
	t->wait_frame = frame;
	return true;
}

void pause_note(const struct pause *p, uint64_t pc)
{
	struct arena_wait *w = &agent_self->shared.wait;
	w->pc = pc;
	w->function = p->function;
	w->act = p->act;
	w->descriptor = p->descriptor;
	atomic_store_explicit(&w->since, p->start, memory_order_release);
}

bool pause_end(struct pause *p, int64_t bytes)
{
	struct agent_thread *t = agent_self;
	uint64_t now = agent_ns(CLOCK_MONOTONIC);
	if (!t) /* the program has restricted its system calls */
		return false;
	p->ns = now - p->start;
	p->bytes = bytes > 0 ? (uint64_t)bytes : 0;
	if (p->open &&
	    atomic_load_explicit(&t->shared.wait.since, memory_order_relaxed) == p->start)
		atomic_store_explicit(&t->shared.wait.since, 0, memory_order_relaxed);
	else
		p->open = false;
	bool sampled = count_off(t, p, now);
	if (!sampled && (!agent.pauses.io || p->act >= ARENA_WAITS))
		return false;
	return call_enter() != NULL;
}

/* Who has ended a wait, for the leaf of its path (ARENA_WAKER); 0: not known. Whether the waker waited itself is decided by
   chance, as it has waited for a part of the time. */
static uint64_t waker_of(struct agent_thread *t, const struct pause *p)
{
	uint64_t waited;
	bool lock = p->act >= ARENA_WAITS_LOCK && p->act <= ARENA_WAITS_FUTEX &&
		    p->act != ARENA_WAITS_THREAD;
	int32_t waker = lock && t->awaited ? lock_waker(t, p->start, &waited) : 0;
	return waker > 0 ? ARENA_WAKER((uint64_t)waker, random_below(t, p->ns) < waited) : 0;
}

static void count_waits(struct agent_thread *t, const struct pause *p, uint64_t pc)
{
	struct sample_value values[WIRE_OFF_MAX];
	size_t count = 0;
	for (uint32_t i = 0; i < agent.pauses.off; i++)
		if (p->rings[i])
			values[count++] = (struct sample_value){agent.pauses.metrics[i].metric,
								p->rings[i]};
	if (!count)
		return;
	uint32_t act = p->act <= ARENA_WAITS_DESCRIPTOR ? act_of(p->descriptor) : p->act;
	const uint64_t below[2] = {
		sample_function_key(t, p->function),
		cct_key(false, CCT_OBJECT, waker_of(t, p) << CCT_OBJECT_BITS | act)};
	sample_values_below(t, pc, below, values, count);
}

static void count_transfer(struct agent_thread *t, const struct pause *p, uint64_t pc)
{
	uint32_t first = agent.pauses.io - 1;
	uint64_t object = descriptor_object(t, p->descriptor, p->start + p->ns);
	const uint64_t below[2] = {sample_function_key(t, p->function),
				   cct_key(false, CCT_OBJECT, object << CCT_OBJECT_BITS | p->act)};
	const struct sample_value values[] = {
		{first, 1}, {first + 1, p->bytes}, {first + 2, 1}, {first + 3, p->ns}};
	counter_add(&t->shared.moved, p->bytes * p->moves);
	sample_values_below(t, pc, below, values, sizeof values / sizeof *values);
}

void pause_count(const struct pause *p, uint64_t pc)
{
	struct agent_thread *t = agent_self;
	count_waits(t, p, pc);
	if (agent.pauses.io && p->act < ARENA_WAITS)
		count_transfer(t, p, pc);
	if (t->rings)
		agent_ring();
	t->rings = false;
	call_leave();
}
