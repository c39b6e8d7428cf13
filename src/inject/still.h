/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Changes the code of a process that runs, while all its threads stand still.
 *
 * A change may replace several instructions by one. A thread that is about to execute the second of these must not go on
 * there: it is moved to where that instruction stands now (steps). That holds for what a signal handler has interrupted,
 * too: its PC is on the stack, in the frame of the signal.
 *
 * A process of our own does it, which ends afterwards. So the kernel lets all threads go on, whatever becomes of us. No
 * bytes are written but those that are known: `expected` must be there.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

#define STILL_BYTES 32u
#define STILL_STEPS 8u

enum still_result {
	STILL_WAITS, /* a thread is where it cannot be moved away from */
	STILL_DONE,
	STILL_CHANGED, /* other bytes are there */
	STILL_FAILED,  /* it cannot be written */
};

struct still_write {
	uint64_t at;
	uint8_t known, length; /* bytes of `expected`, and of `bytes` */
	uint8_t expected[STILL_BYTES], bytes[STILL_BYTES];
	/* Where threads go on that are within the bytes of `expected`, but not at the first one. */
	uint8_t step_count;
	struct {
		uint8_t from; /* bytes behind `at` */
		uint64_t to;
	} steps[STILL_STEPS];
	bool whole; /* no thread may be there if there is no step for it, also if there are none at all */
	uint8_t result; /* enum still_result */
};

struct still_report {
	unsigned stops;      /* how often the process was stopped */
	uint64_t longest_ns; /* for how long at most */
};

/* Does as many of the writes as it can; `result` tells which. `report` is added to. An error: the process cannot be
   stopped, or is gone. */
struct err *still_write(pid_t pid, struct still_write *writes, size_t count,
			struct still_report *report);

/* What else is done while all threads stand still, by the process of our own: what it writes elsewhere than into shared memory
   is lost. */
struct remote;
struct still_also {
	/* Before anything is written, at each stop. Returns NULL; or why nothing is to be: then that is the error. */
	const char *(*before)(void *context, struct remote *stopped);
	/* When all writes that can be done are: then no more stop follows. */
	void (*after)(void *context);
	void *context;
};
/* As still_write; without writes, the process is stopped nevertheless. */
struct err *still_write_and(pid_t pid, struct still_write *writes, size_t count,
			    const struct still_also *also, struct still_report *report);

/* Where no thread may be. */
struct still_place {
	uint64_t start, end;
};
/* A question that is asked while all threads stand still, about the thread with this number and SP. */
typedef bool still_question(void *context, pid_t tid, uint64_t sp);

/* Waits until no thread, but `except`, is in one of these places, nor will return there from a signal handler; and the
   answer is false for each of them. *outside: whether that came about. */
struct err *still_outside(pid_t pid, pid_t except, const struct still_place *places, size_t count,
			  still_question *is_inside, void *context, struct still_report *report,
			  bool *outside);
