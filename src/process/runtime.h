/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who makes code in a process at run time, and whether that code keeps frame
 * pointers: nothing else leads out of it, and where FP is a register like any
 * other it leads to some frame farther out, so that callers would be missing
 * from a path that looks whole. Known by the files that are mapped, and by the
 * options of the program where those decide.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct maps;

struct runtime {
	const char *name; /* "": nobody that we know, who is taken to keep frame pointers */
	bool bare;        /* it keeps none */
	bool top; /* its frame records are at the upper end of their frames: what lies above is the
		     caller's. On x86-64 they always are */
	const char *why; /* what a reader is told about paths that end there, or "" */
};

/* `task` is a thread of the process, or less than 1 where there is none to ask: then options are
   not believed. Never NULL; static. */
const struct runtime *runtime_find(const struct maps *maps, pid_t task, uint16_t machine);

/* Whether the file is called as those that hold code which such a compiler (SBCL) saved. */
bool runtime_is_saved_code(const char *path);

/* Whether the options of java(1) have it keep frame pointers: its arguments, each ended by a zero, and
   its environment. Foreign bytes. */
bool runtime_java_keeps(const char *arguments, size_t size, const char *environment,
			size_t environment_size);
/* The same of the emulator of Erlang. */
bool runtime_erlang_keeps(const char *arguments, size_t size);
