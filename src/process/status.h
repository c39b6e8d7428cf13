/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the kernel says about a process, and from it the sentence that tells
 * the user why the process cannot be looked at.
 */
#include <stdbool.h>
#include <sys/types.h>

struct buf;
struct err;

struct process_status {
	pid_t group;  /* the process that the thread belongs to */
	pid_t tracer; /* 0: none */
	pid_t parent; /* 0: none that we may see */
	uid_t user;
	char state;  /* 'R', 'S', 'D', 'T', 't', 'Z', 'X' … */
	bool kernel; /* a thread of the kernel: it has no user memory */
	unsigned threads;
};

/* False where there is no such process or thread (any more). */
bool process_status(pid_t pid, struct process_status *out);

/* Why the process cannot be looked at: it does not exist, is a thread of another, a zombie,
   belongs to the kernel. NULL where none of these. */
struct err *process_refusal(pid_t pid);

/* Why ptrace answers EPERM for the thread `tid` of `pid`, and what would allow it. */
struct err *process_forbidden(pid_t pid, pid_t tid);

/* A thread that still has the process's memory: `pid` itself, or another where the first
   thread has ended before the rest. */
pid_t process_task(pid_t pid);

/* The threads of `pid` now; malloc'ed, the caller's. An error where there are none. */
struct err *process_tasks(pid_t pid, pid_t **tids, size_t *count);

/* Appends the contents of /proc/PID/NAME. */
struct err *process_file(pid_t pid, const char *name, struct buf *out);
