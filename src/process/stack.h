/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Call stacks as addresses: what stacks.c takes, interpreted.c adds to, and `culprit stack` shows. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "unwind/walk.h"

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
	uint64_t sp; /* its part of the stack begins there */
	bool exact;  /* it is the instruction */
	uint8_t how; /* enum stack_how */
};

struct stack_call {       /* of an interpreted function */
	size_t frame;     /* index of the frame of the interpreter that runs it */
	uint64_t address; /* of its instruction, which is data for the CPU */
	char *name, *file;
	uint32_t line; /* 0: not known */
};

struct stack {
	pid_t tid;
	char name[32];
	/* It sleeps in the kernel and did not stop, so no frames are known. */
	bool stuck;
	struct stack_frame *frames; /* innermost first */
	size_t count;
	enum walk_end end;
	struct stack_call *calls; /* innermost first */
	size_t call_count, call_room;
};

struct stacks {
	struct stack *threads; /* sorted by tid, without threads that ended meanwhile */
	size_t count;
	uint64_t stopped_ns; /* how long the process was stopped, in total */
	unsigned stops;      /* how often */
};
