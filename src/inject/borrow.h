/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Borrows a thread of a running process: stops it, lets it call a function, and puts it back to exactly what it did. The
 * other threads run meanwhile. If we die at any moment, the thread returns from the call into rt_sigreturn(2), which
 * leads it back.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "inject/cpu.h"

struct err;

enum borrow_stop {
	BORROW_HELD, /* it is stopped, and can be looked at */
	BORROW_BUSY, /* not now: a signal was about to come, or it could not be stopped in time */
	BORROW_GONE, /* it has ended */
	BORROW_STOPPED, /* the process is stopped by a signal (SIGSTOP) */
	BORROW_FORBIDDEN,
};

struct borrow {
	pid_t pid, tid;
	int memory; /* /proc/PID/mem */
	/* As the thread is to go on. */
	struct cpu_state state;
	struct cpu_call call;
	uint64_t mask;
	const char *why; /* BORROW_BUSY: why not, or NULL */
	uint64_t frame, frame_size;
	bool changed; /* the thread's registers are not its own */
};

/* Stops the thread. Unless it is held, nothing is left to do. */
enum borrow_stop borrow_stop(pid_t pid, pid_t tid, struct borrow *out);

/* Lets the thread call functions, with all its signals blocked. borrow_map: maps memory by the function mmap, from the
   first call on with `restorer`. Errors leave the thread as it is until borrow_end. */
struct err *borrow_map(struct borrow *b, uint64_t mmap, uint64_t restorer, size_t size,
		       int protection, uint64_t *out);
bool borrow_write(struct borrow *b, uint64_t address, const void *bytes, size_t size);
/* Calls a function that returns to `done`: a copy of inject_done. *result: what it returns. */
struct err *borrow_call(struct borrow *b, uint64_t function, const uint64_t arguments[6],
			uint64_t done, uint64_t *result);
/* Puts the thread back, and lets it go. */
void borrow_end(struct borrow *b);

/* What the kernel tells about a thread that waits in a system call. */
void borrow_look(pid_t pid, pid_t tid, struct cpu_seen *out);
/* Whether a signal waits that the thread does not block and has a handler for. mask NULL: its own. */
bool borrow_has_signal(pid_t pid, pid_t tid, const uint64_t *mask);
