/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The walk of a stack that was copied, by what a list of modules says. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "unwind/walk.h"

struct stack_code {
	struct walk_space space;
	bool fresh; /* the process was looked at after the sample, and nothing before that explains it:
		       where no code is now, none was */
	bool inside; /* the kernel worked for the thread */
	const bool
		*late; /* true, at its end, where the reader gave words of a later time: then only
			     code that is known for it is the outermost, and not a zero. NULL: never */
	pid_t task;    /* a thread that has the code in memory, or 0 */
	uint64_t g;    /* of Go, where it is known otherwise than by its register, or 0 */
};

/* Fills `keys` (room for `max`) with the keys of the frames (cct/cct.h), innermost first, without
   those of our own library; or with the one of the kernel, where that was between the program and a handler
   of its, and nothing says where. `registers` are CPU_REGISTERS by DWARF number. */
enum walk_end stack_walk(const struct stack_code *code, uint16_t machine, const uint64_t *registers,
			 uint64_t pc, const struct walk_reader *reader, uint64_t *keys,
			 uint32_t max, uint32_t *count);
