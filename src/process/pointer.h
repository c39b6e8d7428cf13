/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Steps of a walk through code that no table describes. There are two: by frame pointers, through code that
 * was made at run time; and back to the caller, if the program jumped to a place without code. The walks of
 * stopped threads (stacks.c) and of copies (harvest/stack.c) use it.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct walk;
struct walk_reader;
struct walk_space;

enum code_kind {
	CODE_NONE,   /* not executable */
	CODE_OTHER,  /* executable, but of no module that could be read */
	CODE_BARE,   /* the same, and its code keeps no frame pointers */
	CODE_MODULE, /* of a module with a table */
};

struct code_kinds {
	enum code_kind (*at)(const void *context, uint64_t address);
	const void *context;
	const struct walk_space *modules;
	bool top; /* as in struct runtime */
	/* The memory map was read after the process was seen at this place. */
	bool fresh;
	pid_t task; /* a thread that has the code in memory, or 0 */
};

/* Goes to the caller by the frame record at FP: the caller's FP, and above it the return address. If the
   first frame has no record yet, or not any more, the return address is where the call left it. */
bool pointer_step(struct walk *walk, const struct code_kinds *code,
		  const struct walk_reader *reader);

/* Goes to the caller of a first frame whose PC is in no code. This needs a memory map that was read after
   the process was seen there (`fresh`). Otherwise the place may be code that was loaded a moment ago. */
bool pointer_step_back(struct walk *walk, const struct code_kinds *code,
		       const struct walk_reader *reader);
