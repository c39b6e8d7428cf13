/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds out which compiler makes code in a process at run time, and whether that code keeps frame pointers.
 * Walks of stopped threads (stacks.c) and of samples (library/) need this: such code can only be walked by
 * frame pointers. If the compiler uses FP as an ordinary register, FP may point to some frame farther out.
 * Then callers would be missing from a path that looks complete. The compiler is known by the files that are
 * mapped, and sometimes by the program's options.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct maps;

struct runtime {
	const char *name; /* "": none that we know; then frame pointers are expected */
	bool bare;        /* its code keeps no frame pointers */
	/* Its frame records are at the upper ends of their frames: what lies above belongs to the caller.
	   On x86-64 this is always so. */
	bool top;
	const char *why; /* text for the user about paths that end there, or "" */
};

/* The runtime of a process with these maps. `task` is a thread of the process; if it is less than 1, the
   program's options cannot be read and the default is assumed. Never NULL; static. */
const struct runtime *runtime_find(const struct maps *maps, pid_t task, uint16_t machine);

/* Whether the file's name is that of a file with code that such a compiler (SBCL) saved. */
bool runtime_is_saved_code(const char *path);

/* Whether java(1) keeps frame pointers with these arguments (each ended by a zero byte) and this
   environment. Both are foreign bytes. */
bool runtime_java_keeps(const char *arguments, size_t size, const char *environment,
			size_t environment_size);
/* The same for Erlang's virtual machine. */
bool runtime_erlang_keeps(const char *arguments, size_t size);
