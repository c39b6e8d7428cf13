/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the stack of calls truly is, from watching each call and return.
 *
 * An entry is what a call leaves behind: where it returns to, and SP before it, which is the CFA
 * of the callee. A signal leaves two: the trampoline to which the handler returns, and the
 * interrupted instruction. The rules:
 *  - a return goes to the topmost entry's address; an indirect jump that goes there is one too,
 *    also where a walk found it before an exception arrived there, one byte further on (RECIPE_RESUMES);
 *  - a jump or return that leaves SP above entries (longjmp, exceptions) has dropped them, and,
 *    since who lands so has a frame, also those with the same SP;
 *  - where SP went to another stack (contexts, goroutines), nothing is known any more.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "step/target.h"

struct shadow_entry {
	uint64_t address, cfa;
	bool signal; /* was interrupted there, did not call */
};

enum shadow_change {
	SHADOW_SAME,    /* no call and no return */
	SHADOW_MOVED,   /* a call, return or signal that is understood */
	SHADOW_UNWOUND, /* longjmp, exception: frames were dropped */
	SHADOW_LOST,    /* another stack, or a signal's context was changed: begin anew */
	SHADOW_WRONG,   /* a return to where no entry says: begin anew, and complain */
};

struct shadow {
	struct shadow_entry *entries; /* outermost first */
	size_t count, room;
};

void shadow_push(struct shadow *shadow, struct shadow_entry entry);

/* `insn` was executed (or, where target->delivered, perhaps was not) and led from `before` to
   target->now. */
enum shadow_change shadow_apply(struct shadow *shadow, const struct target *target,
				const struct insn *insn, const struct target_state *before);

/* The system call that this instruction makes, if it changes what is mapped. */
bool shadow_maps(const struct target *target, const struct insn *insn,
		 const struct target_state *before);
