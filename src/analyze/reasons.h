/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Why threads wait: for a lock, a pipe, a disk, … The functions of the kernel in a path say it. Functions of the C
 * library and of language runtimes tell what a futex stands for, and say it alone where the kernel's functions are
 * not known. All of it is one table (reasons.c), so it applies to every profile, whoever recorded it.
 */
#include <stdbool.h>
#include <stdint.h>

struct err;
struct profile;
struct profile_metric;
struct profile_value;
struct scopes;

enum reason {
	REASON_ON_CPU, /* it does not wait */
	REASON_CPU,    /* it could run, but has no CPU */
	REASON_QUOTA,  /* its control group has used up its share of the CPUs */
	REASON_LOCK,
	REASON_CONDITION,
	REASON_SEMAPHORE,
	REASON_BARRIER,
	REASON_THREAD, /* until another thread ends */
	REASON_FUTEX,  /* one of these */
	REASON_SLEEP,
	REASON_POLL,
	REASON_PIPE,
	REASON_SOCKET,
	REASON_TERMINAL,
	REASON_EVENT, /* eventfd, inotify, … */
	REASON_MESSAGE,
	REASON_SIGNAL,
	REASON_STOPPED, /* by a signal or a debugger */
	REASON_CHILD,
	REASON_DISK,
	REASON_FILE_SYSTEM, /* that another program or host serves */
	REASON_PAGE_FAULT,
	REASON_MEMORY, /* until other memory is freed */
	REASON_FILE_LOCK,
	REASON_KERNEL_LOCK,
	REASON_IO_URING,
	REASON_GPU,
	REASON_VIRTUAL_CPU, /* that waits itself */
	REASON_OTHER,
	REASON_COUNT,
};
/* As it is said after "waited for": "lock", "a CPU". */
const char *reason_name(enum reason reason);

/* Whether samples of this metric tell of waiting. */
bool reason_is_told(const struct profile_metric *metric);
/* Of such a profile: for each node, why a thread waits whose path ends there. functions[i] is the scope of the
   function of node i. *out is malloc'ed; NULL if no metric tells of waiting. */
struct err *reasons_make(const struct profile *profile, const struct scopes *scopes,
			 const uint32_t *functions, uint8_t **out);
/* Why the thread waits in these samples, by what reasons_make made. */
enum reason reason_of(const struct profile *profile, const uint8_t *reasons,
		      const struct profile_value *value);

/* Whether a thread waits in samples of this metric whose path ends at this node. */
bool reason_is_of_waiting(const struct profile *profile, uint32_t metric, uint32_t node);

/* By name alone, for tests: what a function of the kernel, or of a program, says. REASON_OTHER: nothing. */
enum reason reason_in_kernel(const char *function);
enum reason reason_in_program(const char *function);
