/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The counter: a library that is preloaded into programs whose functions count their paths (collect/paths/). All files of
 * counter/ include this header; nobody else does.
 *
 *    start.c    the constructor: asks the collector, loads the copies of functions
 *    banks.c    a bank of counters for each thread, and its path stack
 *    contexts.c calling contexts
 *    threads.c  new threads, and forked processes
 *
 * The code of the copies knows this about its thread:
 *
 *    %gs:0        the bank, counters of 64 bits
 *    %gs:-8       the path stack: where the next entry goes, {sum, SP} of 16 bytes. The lowest entry has SP ~0
 *    %gs:-16      the middle of the path stack; %gs:-24: where its second entry goes (copies/write.h says what for)
 *    %gs:-32 …    if calling contexts are told apart: contexts.h
 *    %gs:-3840 …  memory of its own, which is 0 at first
 *
 * Functions that run where a thread has no bank of its own yet must not be copied. libc runs them between the system call
 * that makes a thread, and us: start_thread, __ctype_init, _setjmp, __sigsetjmp, __lll_lock_wait_private and
 * __lll_lock_wake_private. In a forked process, what fork and _Fork call counts in the bank of the parent, until we are called: if
 * it is copied, a count may be lost where both count the same path at the same moment.
 *
 * If a thread is made by clone itself, it has the bank and the path stack of the one that made it, and must not run copies
 * at the same time. A process that is made so has the bank of its parent, until it creates a thread or forks. Children of vfork and
 * posix_spawn run on their parent's: it waits.
 *
 * Nothing here uses libc once the program runs, where that might be counted: only system calls, and the function of libc that
 * the program has called. There is one exception: pthread_attr_getstacksize, if a thread has attributes.
 *
 * If anything fails, the program runs on without being counted.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "safe/banks.h"

#define COUNTER_EXPORT __attribute__((visibility("default")))

/* At the beginning of the page before a thread's bank. */
struct counter_room {
	uint64_t bank;  /* its address; if it is not, this is no room */
	int64_t slot;   /* -1: a bank that nobody will read */
	char *stack;    /* the path stack */
	char *contexts; /* the stack of contexts, as large; NULL: none */
	uint64_t stack_size;
	uint64_t mask; /* the thread's signals, from when it is made */
	uint64_t held; /* the same while it forks */
	void *(*start)(void *);
	int (*start_c11)(void *);
	void *argument;
};
#define COUNTER_ROOM 256u /* bytes; the rest of the page belongs to the copies */

extern bool counter_on; /* threads have banks */

/* ---- banks.c ---- */

/* Maps the memory of all banks. False: there is no room for it. */
bool banks_open(int memory, const struct banks_reply *plan);
/* Nothing was changed in the program: its only thread has no bank any more. `room`: what it had; NULL: none. */
void banks_close(struct counter_room *room);
struct banks_header *banks_header(void);
/* A room for a new thread, whose stack has this size; NULL: no memory. */
struct counter_room *banks_take(uint64_t stack_size);
/* The thread was not made. */
void banks_give_back(struct counter_room *room);
/* From now on, the calling thread counts there. */
void banks_begin(struct counter_room *room);
/* The room of the calling thread; NULL: it has none of ours. */
struct counter_room *banks_here(void);
/* In a forked process: the thread gets a bank of its own, and keeps its path stack. */
void banks_after_fork(struct counter_room *room);

/* ---- threads.c ---- */

/* Finds libc's own functions. */
void threads_find(void);
/* From now on, the functions of forks are called. */
void threads_start(void);
/* The size of a stack without a limit of its own: what the program's limit says. */
extern uint64_t threads_stack_limit;
