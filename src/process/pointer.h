/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Steps for code that no table describes: by frame pointers where a program
 * made code for itself, and back out of calls to where no code is.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct walk;
struct walk_reader;
struct walk_space;

enum code_kind {
	CODE_NONE,   /* not executable */
	CODE_OTHER,  /* executable, of no module that could be read */
	CODE_BARE,   /* the same, and frame pointers are not kept there */
	CODE_MODULE, /* of a module with a table */
};

struct code_space {
	enum code_kind (*at)(const void *context, uint64_t address);
	const void *context;
	const struct walk_space *modules;
	bool top;   /* as struct runtime has it */
	bool fresh; /* it was looked at after the process was seen where it is */
	pid_t task; /* a thread that has the code in memory, or 0 */
};

/* By the frame record at FP: the caller's FP, and above it the return address; from a first frame that is
   not made yet, or no more, by where the call left that. */
bool pointer_step(struct walk *walk, const struct code_space *code,
		  const struct walk_reader *reader);

/* To the caller of a first frame whose PC is in no code. Only right with maps that were read
   after the process was seen there (`fresh`): else it may be code that has just been loaded. */
bool pointer_step_back(struct walk *walk, const struct code_space *code,
		       const struct walk_reader *reader);
