/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The call stacks of a process at one moment, as addresses: stops the process, walks every thread, and lets
 * the process go on. `culprit stack` uses it.
 *
 * Code of no module (made at run time by a JIT compiler) is walked by frame pointers, as long as these lead
 * upwards and to executable memory. If the program jumped to a place without code, the walk goes on at the
 * return address of that jump. Such steps are marked.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "recipes/build.h"
#include "unwind/walk.h"

struct err;
struct space;

/* How the caller of a frame was found. */
enum stack_how {
	STACK_NOTHING, /* the last frame: not at all */
	STACK_CFI,
	STACK_CODE,  /* a recipe from the analysis of the code */
	STACK_SHAPE, /* code that is known by its shape */
	/* The kernel's signal frame: the caller was interrupted, it did not call. */
	STACK_SIGNAL,
	STACK_FP, /* by frame pointer, without a recipe */
	/* No code here: by the return address of the jump to it. */
	STACK_CALL,
};

struct stack_frame {
	/* In the first frame and in interrupted ones: the instruction. Else: the return address. */
	uint64_t address;
	bool exact;  /* it is the instruction */
	uint8_t how; /* enum stack_how */
};

struct stack {
	pid_t tid;
	char name[32];
	/* It sleeps in the kernel and did not stop, so no frames are known. */
	bool stuck;
	struct stack_frame *frames; /* innermost first */
	size_t count;
	enum walk_end end;
};

struct stacks {
	struct stack *threads; /* sorted by tid, without threads that ended meanwhile */
	size_t count;
	uint64_t stopped_ns; /* how long the process was stopped, in total */
	unsigned stops;      /* how often */
};

/* Takes the stacks of all threads, or only of `tid` if that is not 0, with at most `max` frames each. If a
   stack shows unknown code, `space` is refreshed. */
struct err *stacks_take(pid_t pid, pid_t tid, size_t max, enum recipes_mode mode,
			struct space *space, struct stacks *out);
void stacks_free(struct stacks *stacks);

/* One word: "cfi", "code", "shape", "signal", "fp", "call"; "" for nothing. */
const char *stack_how_name(enum stack_how how);
