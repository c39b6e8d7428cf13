/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Lets a running process load a library.
 *
 * One of its threads is borrowed (borrow.h) where that is known to be safe (spot.h), for a call of pthread_create, and then
 * goes on with what it did. The new thread calls dlopen, and then a function of the library. The process is never stopped
 * as a whole. All its signals are blocked in the new thread.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

struct inject {
	const char *library, *function;
	const char *text; /* for the function: struct late (safe/late.h) begins with it */
	const char *
		otherwise; /* for people: what can be done if it cannot be; NULL: --collector=kernel */
};

struct inject_report {
	uint64_t held_ns;    /* how long the borrowed thread was held */
	unsigned looks;      /* how many threads were stopped to be looked at */
	pid_t tid;           /* which was borrowed */
	uint64_t waiting_ns; /* until one was found */
};

/* An error says in one line why not, and what can be done about it: no permission, another tracer, a seccomp filter,
   a static program, another libc, another CPU, Go, another file system, no thread at a safe place for 2 seconds, … Returns
   when the library is loaded and its function runs. `report` may be NULL. */
/* Only finds out whether that can be, as far as it is known before a thread is borrowed. */
struct err *inject_check(pid_t pid, const struct inject *what);
struct err *inject_library(pid_t pid, const struct inject *what, struct inject_report *report);
/* Whether this memory has nothing but code that was put there to load a library, and was left because its collector was
   killed. */
bool inject_has_left(pid_t pid, uint64_t start, uint64_t end);
