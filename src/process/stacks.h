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
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "process/stack.h"
#include "recipes/build.h"

struct err;
struct remote;
struct remote_thread;
struct space;

/* Takes the stacks of all threads, or only of `tid` if that is not 0, with at most `max` frames each. If a
   stack shows unknown code, `space` is refreshed. */
struct err *stacks_take(pid_t pid, pid_t tid, size_t max, enum recipes_mode mode,
			struct space *space, struct stacks *out);
void stacks_free(struct stacks *stacks);

/* Walks one thread that somebody else holds stopped, with at most `max` frames. `fresh`: the maps in `space` were read a
   moment ago. The caller frees stack->frames. False if out of memory. */
bool stacks_walk(struct remote *remote, const struct remote_thread *thread,
		 const struct space *space, size_t max, bool fresh, struct stack *stack);

/* One word: "cfi", "code", "shape", "signal", "fp", "call"; "" for nothing. */
const char *stack_how_name(enum stack_how how);
