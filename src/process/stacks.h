/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The call stacks of a process at one moment, as addresses: stops the process,
 * walks every thread, lets it go on.
 *
 * Where no module holds the code (made at run time: JIT compilers) the walk
 * goes on by frame pointers, as long as they lead upwards and to executable
 * memory; where the program jumped to no code at all, by the return address of
 * that jump. Such steps are marked.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "recipes/build.h"
#include "unwind/walk.h"

struct err;
struct space;

enum stack_how {                /* what led from a frame to its caller */
		 STACK_NOTHING, /* the last frame */
		 STACK_CFI,
		 STACK_CODE,  /* a recipe from the analysis of the code */
		 STACK_SHAPE, /* code that is known by its shape */
		 STACK_SIGNAL, /* the kernel's signal frame: the caller was interrupted, it did not call */
		 STACK_FP,   /* frame pointer, without a recipe */
		 STACK_CALL, /* no code here: the return address of the jump to it */
};

struct stack_frame {
	uint64_t
		address; /* of the first frame and interrupted ones the instruction, else the return address */
	bool exact;  /* the former */
	uint8_t how; /* enum stack_how */
};

struct stack {
	pid_t tid;
	char name[32];
	bool stuck; /* sleeps in the kernel and would not stop: no frames are known */
	struct stack_frame *frames; /* innermost first */
	size_t count;
	enum walk_end end;
};

struct stacks {
	struct stack *threads; /* ascending by tid; those that ended meanwhile are left out */
	size_t count;
	uint64_t stopped_ns; /* how long the process was stopped, in all */
	unsigned stops;      /* how often */
};

/* Of all threads, or of `tid` where it is not 0; at most `max` frames of each. `space` is
   refreshed where a stack shows code that it does not know. */
struct err *stacks_take(pid_t pid, pid_t tid, size_t max, enum recipes_mode mode,
			struct space *space, struct stacks *out);
void stacks_free(struct stacks *stacks);

/* One word: "cfi", "code", "shape", "signal", "fp", "call"; "" for nothing. */
const char *stack_how_name(enum stack_how how);
