/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the kernel tells about a process. From that it makes the message that tells the user why a process
   cannot be looked at. Everything that deals with processes uses it. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct buf;
struct err;

struct process_status {
	pid_t group;  /* the process that the thread belongs to */
	pid_t tracer; /* 0: none */
	pid_t parent; /* 0: none that we can see */
	uid_t user;
	char state;  /* 'R', 'S', 'D', 'T', 't', 'Z', 'X' … */
	bool kernel; /* a kernel thread: it has no user memory */
	unsigned threads;
	bool filtered; /* it may make only some system calls (seccomp) */
};

/* False if there is no such process or thread (any more). */
bool process_status(pid_t pid, struct process_status *out);

/* Waits until nobody traces the process, or it ends, but not longer than this. */
void process_wait_untraced(pid_t pid, uint64_t ns);

/* Why the process cannot be looked at: it does not exist, is a thread of another process, is a zombie, or
   is a kernel thread. NULL if none of these. */
struct err *process_refusal(pid_t pid);

/* Why ptrace gives EPERM for the thread `tid` of `pid`, and what would allow it. */
struct err *process_forbidden(pid_t pid, pid_t tid);

/* A thread that still has the process's memory: `pid` itself, or another one if the first thread has ended
   before the others. */
pid_t process_task(pid_t pid);

/* The threads that `pid` has now. The caller frees *tids. An error if there are none. */
struct err *process_tasks(pid_t pid, pid_t **tids, size_t *count);

/* Appends the contents of /proc/PID/NAME. */
struct err *process_file(pid_t pid, const char *name, struct buf *out);
