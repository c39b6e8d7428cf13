/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A new thread begins with the bank of the one that creates it. So it must not run anything that counts before it has its
 * own: it is created with all signals held back, and sets its bank before the program's function. That is called by a tail
 * call, so that none of our frames is on its stack. At a thread's end nothing is done: see banks.c.
 *
 * The same holds for a process that is forked.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <threads.h>
#include <unistd.h>

#include "counter/counter.h"
#include "safe/syscall.h"

#define MASK_BYTES 8
/* A signal of libc's own, which no program holds back by libc's functions. libc leaves it held back in a new thread if it is in
   the thread that creates it. */
#define LIBC_SIGNAL (UINT64_C(1) << (33 - 1))

#define ATTRIBUTES_C11 ((const pthread_attr_t *)-1) /* of thrd_create, in libc */

uint64_t threads_stack_limit;
_Atomic uint32_t threads_beginning;

static struct {
	__typeof__(pthread_create) *pthread_create;
	__typeof__(thrd_create) *thrd_create;
	__typeof__(_Fork) *fork;
} real;

static uint64_t hold_signals(void)
{
	uint64_t all = ~UINT64_C(0), before = 0;
	SAFE_SYSCALL(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, MASK_BYTES);
	return before;
}

static void set_signals(uint64_t mask)
{
	SAFE_SYSCALL(SYS_rt_sigprocmask, SIG_SETMASK, &mask, 0, MASK_BYTES);
}

/* ---- threads ---- */

/* If the mask is not ours, it is that of the thread's attributes. */
static void begin(struct counter_room *room)
{
	uint64_t now = 0, mask = room->mask;
	banks_begin(room);
	atomic_fetch_sub(&threads_beginning, 1);
	SAFE_SYSCALL(SYS_rt_sigprocmask, SIG_SETMASK, 0, &now, MASK_BYTES);
	if (now & LIBC_SIGNAL)
		set_signals(mask);
}

static void *thread_main(void *argument)
{
	struct counter_room *room = argument;
	void *(*start)(void *) = room->start;
	void *given = room->argument;
	begin(room);
	return start(given);
}

static int thread_main_c11(void *argument)
{
	struct counter_room *room = argument;
	int (*start)(void *) = room->start_c11;
	void *given = room->argument;
	begin(room);
	return start(given);
}

/* libc gives a small stack to a thread if there is no limit. */
static uint64_t usual_stack(void)
{
	return threads_stack_limit < RLIM_INFINITY ? threads_stack_limit : 0;
}

/* Whether threads get banks: then the one that is to be made counts as beginning. */
static bool begins(void)
{
	atomic_fetch_add(&threads_beginning, 1);
	if (counter_on)
		return true;
	atomic_fetch_sub(&threads_beginning, 1);
	return false;
}

static void was_not_made(struct counter_room *room)
{
	banks_give_back(room);
	atomic_fetch_sub(&threads_beginning, 1);
}

static int create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
		  void *argument)
{
	size_t size = usual_stack();
	if (!begins())
		return real.pthread_create(thread, attributes, start, argument);
	if (attributes && attributes != ATTRIBUTES_C11)
		pthread_attr_getstacksize(attributes, &size);
	uint64_t mask = hold_signals();
	struct counter_room *room = banks_take(size);
	int error = EAGAIN;
	if (room) {
		room->start = start;
		room->argument = argument;
		room->mask = mask;
		error = real.pthread_create(thread, attributes, thread_main, room);
		if (error)
			was_not_made(room);
	} else {
		atomic_fetch_sub(&threads_beginning, 1);
	}
	set_signals(mask);
	return error;
}

COUNTER_EXPORT __typeof__(create) pthread_create __attribute__((alias("create")));

COUNTER_EXPORT int thrd_create(thrd_t *thread, thrd_start_t start, void *argument)
{
	if (!begins())
		return real.thrd_create(thread, start, argument);
	uint64_t mask = hold_signals();
	struct counter_room *room = banks_take(usual_stack());
	int result = thrd_nomem;
	if (room) {
		room->start_c11 = start;
		room->argument = argument;
		room->mask = mask;
		result = real.thrd_create(thread, thread_main_c11, room);
		if (result != thrd_success)
			was_not_made(room);
	} else {
		atomic_fetch_sub(&threads_beginning, 1);
	}
	set_signals(mask);
	return result;
}

/* ---- processes ---- */

/* fork calls what pthread_atfork is given, and then, in libc, _Fork: that may be hooked, too. And a process that runs may get its
   banks in the middle of this: then nothing was held. */
static void before_fork(void)
{
	struct counter_room *room = banks_here();
	if (room && !room->forking++)
		room->held = hold_signals();
}

static void end_fork(struct counter_room *room)
{
	if (!room->forking || --room->forking)
		return;
	room->moved = 0;
	set_signals(room->held);
}

static void after_fork_in_parent(void)
{
	struct counter_room *room = banks_here();
	if (room)
		end_fork(room);
}

static void after_fork(void)
{
	struct counter_room *room = banks_here();
	if (!room)
		return;
	if (!room->moved) {
		atomic_store(&threads_beginning, 0);
		room->moved = room->forking > 0;
		banks_after_fork(room);
		room = banks_here();
	}
	if (room)
		end_fork(room);
}

/* fork calls what pthread_atfork is given; this does not. */
static pid_t fork_alone(void)
{
	if (!counter_on)
		return real.fork();
	before_fork();
	pid_t pid = real.fork();
	if (pid)
		after_fork_in_parent();
	else
		after_fork();
	return pid;
}

COUNTER_EXPORT __typeof__(fork_alone) _Fork __attribute__((alias("fork_alone")));

/* ---- hooks ---- */

static struct banks_function function_of(void *libc, const char *name, void *ours)
{
	struct banks_function out = {.ours = (uint64_t)ours};
	const ElfW(Sym) *symbol = NULL;
	Dl_info info;
	void *at = libc ? dlsym(libc, name) : NULL;
	if (!at || !dladdr1(at, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol ||
	    info.dli_saddr != at)
		return out;
	out.at = (uint64_t)at;
	out.size = symbol->st_size;
	return out;
}

void threads_functions(struct banks_function out[BANKS_HOOKED])
{
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	out[BANKS_HOOK_THREAD] = function_of(libc, "pthread_create", create);
	out[BANKS_HOOK_FORK] = function_of(libc, "_Fork", fork_alone);
	if (libc)
		dlclose(libc);
}

void threads_hook(const uint64_t bodies[BANKS_HOOKED])
{
	real.pthread_create = (__typeof__(real.pthread_create))bodies[BANKS_HOOK_THREAD];
	if (bodies[BANKS_HOOK_FORK])
		real.fork = (__typeof__(real.fork))bodies[BANKS_HOOK_FORK];
}

/* ---- the beginning ---- */

void threads_find(void)
{
	real.pthread_create = (__typeof__(real.pthread_create))dlsym(RTLD_NEXT, "pthread_create");
	real.thrd_create = (__typeof__(real.thrd_create))dlsym(RTLD_NEXT, "thrd_create");
	real.fork = (__typeof__(real.fork))dlsym(RTLD_NEXT, "_Fork");
}

void threads_start(void)
{
	static bool started;
	if (!started)
		pthread_atfork(before_fork, after_fork_in_parent, after_fork);
	started = true;
}
