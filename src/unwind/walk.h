/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * From a frame to its caller, and so to the root. Async-signal-safe: no
 * allocation, no locks, no calls but to the reader that it is given.
 *
 *    struct walk walk;
 *    walk_begin(&walk, cpu, registers, pc);
 *    do
 *            use(walk.pc);
 *    while ((end = walk_step(&walk, space, &reader)) == WALK_ON);
 *
 * Invariants:
 *  1. walk.pc is where the frame is: for the first frame and one that a signal
 *     interrupted, the instruction itself (walk.exact); else the return address,
 *     whose recipe is looked up one byte before it, inside the call.
 *  2. Every step moves SP up. The exceptions: a frame that has pushed nothing
 *     yet (aarch64) keeps it, but then its return address was in a register, and
 *     only an exact frame or its caller may have it there, or any one frame in a row
 *     in the extra register, which is known in all; an exact frame that has popped its return
 *     address (x86-64), by a recipe that says so (RECIPE_SPECIAL), finds it where nobody
 *     writes, not even a signal: in the red zone, or in the object that a register points to;
 *     a signal frame may lead to another stack, and so do recipes that say it (RECIPE_AWAY and
 *     those after it), whose callers have no slot: the same words may be on another stack by
 *     the next walk.
 *  3. Only SP, FP and one extra callee-saved register are carried from frame to
 *     frame. All others are known in exact frames only, and taken to be the same
 *     in the caller of one (walk.near): hand-written code that keeps its return
 *     address in a register over a call knows that the callee leaves it alone.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "unwind/cpu.h"
#include "unwind/end.h"
#include "unwind/table.h"

/* A module's code in the address space. */
struct walk_module {
	uint64_t start, end; /* addresses at run time */
	uint64_t bias;       /* run-time address = the module's own address + bias */
	uint32_t id, flags;  /* for whoever made it */
	struct table table;
};

/* All code of a process: modules ascending by start, disjoint. */
struct walk_space {
	const struct walk_module *modules;
	size_t count;
};

/* Reads a word of the walked process's memory; false where it cannot. */
struct walk_reader {
	bool (*word)(void *context, uint64_t address, uint64_t *out);
	void *context;
};

struct walk {
	const struct unwind_cpu *cpu;
	uint64_t pc, sp, fp, extra;
	const uint64_t *registers; /* of the first frame, by DWARF number; NULL later on */
	uint64_t signal_sp; /* in a frame that a signal interrupted: where its registers are */
	bool exact;
	bool near;                   /* registers are as in the exact frame before */
	bool still;                  /* the last step did not move SP */
	bool fp_lost, extra_lost;    /* a callee overwrote it without a trace */
	const struct recipe *recipe; /* that the last step used */
	uint64_t slot; /* where in memory the last step found the PC; 0: in a register */
	uint64_t g;    /* of Go, where code that has none in its register is called by it; else 0 */
	uint64_t left; /* SP on the stack of m.g0 where the walk left that */
};

/* Stands on the first frame. `registers` (CPU_REGISTERS of them) must stay during the walk. */
void walk_begin(struct walk *walk, const struct unwind_cpu *cpu, const uint64_t *registers,
		uint64_t pc);

/* Goes to the caller. Anything but WALK_ON ends the walk, and leaves it on the last frame. */
enum walk_end walk_step(struct walk *walk, const struct walk_space *space,
			const struct walk_reader *reader);

/* The module with this address, or NULL. */
const struct walk_module *walk_find_module(const struct walk_space *space, uint64_t address);

/* A word for each end, as in reports: "complete", "no recipe", … */
const char *walk_end_name(enum walk_end end);
