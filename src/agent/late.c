/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent in a process that ran before it came (inject/). Its function runs in a thread of its own, as long as the
 * recording goes on:
 *
 *    a table of descriptors of its own    so nothing that it opens is seen by the program
 *    HELLO, mappings, the handler         as in start.c
 *    every now and then                   /proc/self/task: a record for each thread that has none
 *    the collector stops, or is gone      timers and the handler go, the memory is unmapped, the thread ends
 *
 * No function of the program is replaced. So the program may block our signal, and is then not sampled here; a new thread
 * is found a moment after it began; and signals of timers may only be used if they interrupt nothing. All that
 * a thread must do itself, it does when the first signal comes to it in its own code: it takes the record that waits for it
 * (late_enter). Its stack for the handler is not in the arena, but in memory that stays: nobody can tell when the last
 * thread has left the last instruction that uses it. Everything else is used between late_enter and late_leave only.
 *
 * The library stays in the process when the recording ends, with these stacks. The next recording uses both again.
 */
#include "agent/agent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "agent/cpu.h"
#include "safe/late.h"
#include "safe/syscall.h"

#define PAUSE_NS 10000000ull   /* between two looks at the threads */
#define PAUSES_PER_LOOK 50     /* of the time that a look takes */
#define KNOCK_NS 1000000000ull /* between two looks at the collector */
#define GRACE_NS 500000000ull  /* between the collector's death and the end of its events, amply */
#define END_NS 30000000000ull  /* for the collector to close its events */
#define BACK_NS 2000000000ull  /* for the borrowed thread */
#define STACKS_MAX 8192u       /* threads at the same time that are sampled */
#define SIGNALS 65

/* ---- who is inside ---- */

static _Atomic uint32_t inside, recording; /* recording: the number of this one */
static __thread uint32_t own_recording     /* that agent_self belongs to */
	__attribute__((tls_model("initial-exec")));

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
	own_recording = atomic_load(&recording);
	if (context)
		t->skipped[0]++;
	return context ? NULL : t;
}

struct agent_thread *late_enter(const void *context)
{
	atomic_fetch_add(&inside, 1);
	if (!atomic_load(&agent.on))
		return NULL;
	if (agent_self && own_recording == atomic_load_explicit(&recording, memory_order_relaxed))
		return agent_self;
	agent_self = NULL;
	return claim(context);
}

void late_leave(void)
{
	atomic_fetch_sub(&inside, 1);
}

/* ---- threads ---- */

struct task_entry { /* struct linux_dirent64 */
	uint64_t inode, offset;
	uint16_t size;
	uint8_t type;
	char name[];
};

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

static void meet(int32_t tid, bool *met)
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

static bool is_dead(int fd, const char *name)
{
	char path[32], text[256];
	size_t length = strlen(name);
	memcpy(path, name, length);
	memcpy(path + length, "/stat", 6);
	long file = SAFE_SYSCALL(SYS_openat, fd, path, O_RDONLY | O_CLOEXEC, 0);
	long size = file < 0 ? 0 : SAFE_SYSCALL(SYS_read, file, text, sizeof text - 1, 0);
	if (file >= 0)
		SAFE_SYSCALL(SYS_close, file, 0, 0, 0);
	text[size > 0 ? size : 0] = 0;
	const char *end = strrchr(text, ')');
	return size <= 0 || (end && (end[2] == 'Z' || end[2] == 'X'));
}

/* Looks at all threads. Returns how many there are beside this one, that has the number `own`. The first thread stays in
   the list when it has ended. */
static unsigned look_at_threads(int32_t own)
{
	char bytes[4096] __attribute__((aligned(8)));
	unsigned others = 0;
	bool met = false;
	long got, fd = SAFE_SYSCALL(SYS_openat, AT_FDCWD, "/proc/self/task",
				    O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	int32_t process = getpid();
	if (fd < 0)
		return 1;
	while ((got = SAFE_SYSCALL(SYS_getdents64, fd, bytes, sizeof bytes, 0)) > 0) {
		for (long at = 0; at < got;) {
			const struct task_entry *entry = (const void *)(bytes + at);
			int32_t tid = 0;
			for (const char *c = entry->name; *c >= '0' && *c <= '9'; c++)
				tid = tid * 10 + (*c - '0');
			at += entry->size;
			if (!tid || tid == own || (tid == process && is_dead((int)fd, entry->name)))
				continue;
			others++;
			meet(tid, &met);
		}
	}
	SAFE_SYSCALL(SYS_close, fd, 0, 0, 0);
	if (agent.sampler == WIRE_TIMERS)
		timers_reap();
	if (met)
		agent_ring();
	return others;
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

/* ---- the thread ---- */

static void sleep_ns(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
	SAFE_SYSCALL(SYS_nanosleep, &t, 0, 0, 0);
}

/* Sleeps, but not longer than until the collector says stop. */
static void rest(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
	SAFE_SYSCALL(SYS_futex, &agent.arena->stop, FUTEX_WAIT, 0, &t);
}

/* Takes over what inject/ has mapped, and gives it back when the borrowed thread has left it. */
static void give_back(struct late *late)
{
	struct late own;
	uint64_t start = agent_ns(CLOCK_MONOTONIC);
	while (!__atomic_load_n(&late->back, __ATOMIC_ACQUIRE)) {
		if (agent_ns(CLOCK_MONOTONIC) - start > BACK_NS)
			return; /* the collector was killed: it stays */
		sleep_ns(1000000);
	}
	memcpy(&own, late, offsetof(struct late, more));
	SAFE_SYSCALL(SYS_munmap, own.code, own.code_size, 0, 0);
	SAFE_SYSCALL(SYS_munmap, own.data, own.data_size, 0, 0);
}

/* The program may end its threads with their numbers counted: so this thread blocks all signals but libc's own. */
static void unblock_own(void)
{
	const uint64_t all_but_own = ~(UINT64_C(3) << 31); /* 32 and 33 */
	SAFE_SYSCALL(SYS_rt_sigprocmask, SIG_SETMASK, &all_but_own, 0, 8);
}

static bool is_gone(uint64_t *knocked)
{
	uint64_t now = agent_ns(CLOCK_MONOTONIC);
	if (now - *knocked < KNOCK_NS)
		return false;
	*knocked = now;
	long result = agent_knock();
	return result == -ECONNREFUSED || result == -ENOENT;
}

/* Returns true if the collector has stopped; false if it is gone, or the program's last thread has ended. */
static bool work(int32_t own)
{
	uint64_t knocked = agent_ns(CLOCK_MONOTONIC);
	while (!atomic_load(&agent.arena->stop)) {
		uint64_t start = agent_ns(CLOCK_MONOTONIC);
		if (!look_at_threads(own) || is_gone(&knocked))
			return false;
		uint64_t pause = (agent_ns(CLOCK_MONOTONIC) - start) * PAUSES_PER_LOOK;
		rest(pause > PAUSE_NS ? pause : PAUSE_NS);
	}
	return true;
}

/* The collector closes its events, and then its socket. */
static void wait_for_events(bool stopped)
{
	uint64_t start = agent_ns(CLOCK_MONOTONIC);
	while (stopped && !agent_knock() && agent_ns(CLOCK_MONOTONIC) - start < END_NS)
		sleep_ns(PAUSE_NS);
	if (!stopped)
		sleep_ns(GRACE_NS);
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
		sleep_ns(1000000);
	agent_unmap();
}

static pthread_mutex_t at_work = PTHREAD_MUTEX_INITIALIZER; /* one recording at a time */

AGENT_EXPORT void *culprit_late(struct late *late);

AGENT_EXPORT void *culprit_late(struct late *late)
{
	char path[LATE_TEXT_SIZE];
	int32_t own = (int32_t)SAFE_SYSCALL(SYS_gettid, 0, 0, 0, 0);
	unblock_own();
	pthread_detach(pthread_self());
	memcpy(path, late->text, sizeof path);
	path[sizeof path - 1] = 0;
	SAFE_SYSCALL(SYS_prctl, PR_SET_NAME, "culprit", 0, 0);
	give_back(late);
	if (SAFE_SYSCALL(SYS_close_range, 0, UINT32_MAX, CLOSE_RANGE_UNSHARE, 0) ||
	    SAFE_SYSCALL(SYS_unshare, CLONE_FS, 0, 0, 0))
		return NULL;
	pthread_mutex_lock(&at_work);
	if (agent_begin(path)) {
		atomic_fetch_add(&recording, 1);
		mask_handlers(true);
		atomic_store(&agent.on, true);
		leave(work(own));
	} else { /* a collector that was killed may have opened events */
		sleep_ns(GRACE_NS);
		signals_uninstall(false);
	}
	pthread_mutex_unlock(&at_work);
	return NULL;
}
