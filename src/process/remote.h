/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Threads of another process, held still: ptrace, registers, memory.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "unwind/cpu.h"

struct err;

struct remote_thread {
	pid_t tid;
	char name[32];
	bool gone;  /* ended before it could be stopped */
	bool stuck; /* did not stop in time: it sleeps in the kernel, uninterruptible */
	bool held;  /* by us, now */
	int signal; /* that was about to be delivered when it stopped, or 0 */
	uint64_t registers[CPU_REGISTERS]; /* by DWARF number */
	uint64_t pc;
};

struct remote {
	pid_t pid;
	pid_t memory; /* a thread that has the memory: the first one may have ended before others */
	struct remote_thread *threads; /* ascending by tid */
	size_t thread_count;
	uint64_t stopped_ns; /* when the first thread was stopped (CLOCK_MONOTONIC) */
	/* cache of what was read while stopped */
	struct remote_page **pages; /* hash by number, page_slots of them */
	size_t page_count, page_slots;
	bool peeking; /* process_vm_readv is refused */
};

/* Stops the threads of `pid` (only `tid` where that is not 0) and reads their registers. The
   process goes on when remote_resume is called, or when we die. Threads that appear while
   stopping are stopped too. Errors name the reason: no such process, no permission (with the setting that forbids
   it: ptrace_scope, another user, a tracer that is there already), a kernel thread, a zombie. */
struct err *remote_stop(pid_t pid, pid_t tid, struct remote *out);
/* Lets the process go on and frees everything. */
void remote_resume(struct remote *remote);

/* The two halves of it for those who want to know the threads a little longer: lets the process
   go on, keeps the list. remote_resume is still to be called. */
void remote_release(struct remote *remote);

/* Fills in the threads' names; better done when the process goes on again. */
void remote_read_names(struct remote *remote);

/* A walk_reader's function; context is the struct remote *. Reads whole pages once by
   process_vm_readv (PTRACE_PEEKDATA where that is refused). */
bool remote_word(void *remote, uint64_t address, uint64_t *out);
