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

uint64_t threads_stack_limit;

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

COUNTER_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
				  void *(*start)(void *), void *argument)
{
	size_t size = usual_stack();
	if (!counter_on)
		return real.pthread_create(thread, attributes, start, argument);
	if (attributes)
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
			banks_give_back(room);
	}
	set_signals(mask);
	return error;
}

COUNTER_EXPORT int thrd_create(thrd_t *thread, thrd_start_t start, void *argument)
{
	if (!counter_on)
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
			banks_give_back(room);
	}
	set_signals(mask);
	return result;
}

/* ---- processes ---- */

static void before_fork(void)
{
	struct counter_room *room = banks_here();
	if (room)
		room->held = hold_signals();
}

static void after_fork_in_parent(void)
{
	const struct counter_room *room = banks_here();
	if (room)
		set_signals(room->held);
}

static void after_fork(void)
{
	struct counter_room *room = banks_here();
	if (!room)
		return;
	uint64_t mask = room->held;
	banks_after_fork(room);
	set_signals(mask);
}

/* fork calls what pthread_atfork is given; this does not. */
COUNTER_EXPORT pid_t _Fork(void)
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

/* ---- the beginning ---- */

void threads_find(void)
{
	real.pthread_create = (__typeof__(real.pthread_create))dlsym(RTLD_NEXT, "pthread_create");
	real.thrd_create = (__typeof__(real.thrd_create))dlsym(RTLD_NEXT, "thrd_create");
	real.fork = (__typeof__(real.fork))dlsym(RTLD_NEXT, "_Fork");
}

void threads_start(void)
{
	pthread_atfork(before_fork, after_fork_in_parent, after_fork);
}
