/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Stops the threads of another process with ptrace, and reads their registers and memory. stacks.c
   uses it. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "unwind/cpu.h"

struct err;

struct remote_thread {
	pid_t tid;
	char name[32];
	bool gone; /* ended before it could be stopped */
	/* Did not stop in time: it sleeps in the kernel and cannot be interrupted. */
	bool stuck;
	bool held;                         /* we hold it stopped now */
	bool read;                         /* its registers have been read */
	int signal;                        /* about to be delivered when the thread stopped, or 0 */
	uint64_t registers[CPU_REGISTERS]; /* by DWARF number */
	uint64_t pc;
};

struct remote {
	pid_t pid;
	/* A thread that has the memory: the first thread may have ended before the others. */
	pid_t memory;
	struct remote_thread *threads; /* ascending by tid */
	size_t thread_count;
	bool partial;        /* there may be threads that are not in the list */
	uint64_t stopped_ns; /* when the first thread was stopped (CLOCK_MONOTONIC) */
	/* cache of memory that was read while the process is stopped */
	struct remote_page **pages; /* hash table by page number, with page_slots slots */
	size_t page_count, page_slots;
	bool peeking; /* process_vm_readv is not allowed, so PTRACE_PEEKDATA is used */
};

/* Stops the threads of `pid` (only `tid`, if that is not 0) and reads their registers. Threads that are
   created meanwhile are stopped, too. The process goes on when remote_close is called, or when we die. An
   error tells the reason: no such process, no permission (and which setting forbids it: ptrace_scope,
   another user, another tracer), a kernel thread, a zombie. */
struct err *remote_stop(pid_t pid, pid_t tid, struct remote *out);
/* The same for all threads, but one that sleeps in the kernel and cannot be interrupted is not waited for; nor is any, when
   the first of them has been stopped for `limit_ns`. It is `stuck`, and the kernel lets it go on when we end. */
struct err *remote_stop_soon(pid_t pid, uint64_t limit_ns, struct remote *out);
/* Waits for one that is `stuck`, but not if it sleeps in the kernel and cannot be interrupted. Returns whether it has stopped now:
   then remote_resume is to be called again. */
bool remote_catch(struct remote_thread *thread);
/* Whether all threads stand still. */
bool remote_is_whole(const struct remote *remote);
/* Lets the process go on and frees everything. */
void remote_close(struct remote *remote);

/* Only lets the process go on, and keeps the list of threads. remote_close must still be called. */
void remote_resume(struct remote *remote);

/* Reads the names of the threads. Call it when the process goes on again, to keep the stop short. */
void remote_read_names(struct remote *remote);

/* The function of a walk_reader; `remote` is a struct remote *. Whole pages are read once by
   process_vm_readv, or words by PTRACE_PEEKDATA if that is not allowed. */
bool remote_word(void *remote, uint64_t address, uint64_t *out);
/* The same for any number of bytes. */
bool remote_read(void *remote, uint64_t address, void *out, size_t size);
