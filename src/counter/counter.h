/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The counter: a library that is preloaded into programs whose functions count their paths (collect/paths/). All files of
 * counter/ include this header; nobody else does.
 *
 *    start.c    the constructor: asks the collector, loads the copies of functions
 *    banks.c    a bank of counters for each thread, and its path stack
 *    threads.c  new threads, and forked processes
 *    late.c     the same in a process that runs already
 *    talk.c     packets to the collector and from it, and the objects that it wants to be loaded
 *
 * The code of the copies knows this about its thread:
 *
 *    %gs:0        the bank, counters of 64 bits
 *    %gs:-8       the path stack: where the next entry goes, {sum, SP} of 16 bytes. The lowest entry has SP ~0
 *    %gs:-16      the middle of the path stack; %gs:-24: where its second entry goes (copies/write.h says what for)
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
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "safe/banks.h"

#define COUNTER_EXPORT __attribute__((visibility("default")))

/* At the beginning of the page before a thread's bank. */
struct counter_room {
	uint64_t bank; /* its address; if it is not, this is no room */
	int32_t thread, given;
	int64_t slot; /* -1: a bank that nobody will read */
	char *stack;  /* the path stack */
	uint64_t stack_size;
	uint64_t mask;    /* the thread's signals, from when it is made */
	uint64_t held;    /* the same while it forks */
	uint32_t forking; /* how many calls of ours wait for that; */
	uint32_t moved;   /* in the child: the bank is its own already */
	void *(*start)(void *);
	int (*start_c11)(void *);
	void *argument;
};
_Static_assert(sizeof(struct counter_room) <= BANKS_ROOM &&
		       offsetof(struct counter_room, bank) == BANKS_ROOM_BANK &&
		       offsetof(struct counter_room, thread) == BANKS_ROOM_THREAD &&
		       offsetof(struct counter_room, given) == BANKS_ROOM_GIVEN,
	       "as in safe/banks.h");

extern _Atomic bool counter_on; /* threads have banks */

/* ---- talk.c ---- */

/* Connects to the collector's socket; -1: it cannot. */
int talk_connect(const char *path);
void talk_close(int file); /* -1 is fine */
/* Sends a request of this kind, and receives the answer. *file: what comes along; -1: nothing. */
bool talk_ask(int fd, struct banks_request *request, enum banks_kind kind,
	      struct banks_reply *reply, int *file);
bool talk_receive(int fd, struct banks_reply *reply, int *file);
/* Says HELLO. Returns whether there is something to be counted. *memory: -1 if it did not come along. */
bool talk_hello(int fd, struct banks_request *request, struct banks_reply *plan, int *memory);
/* Loads what the collector wants. Returns whether all was told. */
bool talk_load_all(int fd, struct banks_request *request);
/* Says why nothing can be counted. */
void talk_refuse(int fd, struct banks_request *request, const char *why);
/* No answer to READY came. If the collector is at work in our memory, it ends that, or is ended. Returns whether it is. */
bool talk_leave(int fd);

/* ---- banks.c ---- */

/* Maps the memory of all banks. False: there is no room for it. */
bool banks_open(int memory, const struct banks_reply *plan);
/* Nothing was changed in the program: its only thread has no bank any more. `room`: what it had; NULL: none. */
void banks_close(struct counter_room *room);
struct banks_header *banks_header(void);
/* Whether its memory is kept far from libraries: copies are loaded near those later. */
extern bool banks_apart;
/* How many counters banks have; 0: there are none. */
uint64_t banks_words(void);
/* Where the memory is. */
void banks_memory(uint64_t *start, uint64_t *size);
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

/* How many threads are between our code that begins them and their own. */
extern _Atomic uint32_t threads_beginning;

/* Finds libc's own functions. */
void threads_find(void);
/* From now on, the functions of forks are called. */
void threads_start(void);
/* libc's functions, as ours are entered instead; and where they go on from then on. The latter has those that are hooked. */
void threads_functions(struct banks_function out[BANKS_HOOKED]);
void threads_hook(const uint64_t bodies[BANKS_HOOKED]);
/* The size of a stack without a limit of its own: what the program's limit says. */
extern uint64_t threads_stack_limit;
