/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Walks a copied stack, by a list of modules. Both samplers use it for samples that could not be walked
   at once, and import/ uses it for the stacks of perf.data. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "unwind/walk.h"

struct stack_code {
	struct walk_space space;
	/* The memory map was read after the sample, and no earlier list explains the stack: where there
	   is no code now, there was none. */
	bool fresh;
	bool in_kernel; /* the kernel may have been at work for the thread */
	/* True, at the end of a walk, if the reader gave words of a later time. Then a path is complete
	   only if it ends in code that is known to be outermost, and not by a zero. NULL: never. */
	const bool *late;
	pid_t task; /* a thread that has the code in memory, or 0 */
	/* Addresses in the frames that run interpreted functions, innermost first: their keys get CCT_HOST. */
	const uint64_t *hosts;
	size_t host_count;
	uint64_t g; /* Go's g, if it is known otherwise than by its register; or 0 */
};

/* Fills `keys` (room for `max`) with the keys of the frames (cct/cct.h), innermost first, without those
   of the agent. If the kernel was between the program and a signal handler, and nothing says where,
   there is only the key of the kernel. `registers` are CPU_REGISTERS by DWARF number. */
enum walk_end stack_walk(const struct stack_code *code, uint16_t machine, const uint64_t *registers,
			 uint64_t pc, const struct walk_reader *reader, uint64_t *keys,
			 uint32_t max, uint32_t *count);
