/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Calls of interpreted functions (script/python.h) in the profile. Samplers give them as addresses in a
 * process; here they become functions and lines. In the profile, a file of source is a module, and an
 * address in it is
 *
 *    a hash of the function (32 bits) | the line (32 bits)
 *
 * so that all processes and recordings of the same source agree.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "script/python.h"

struct err;
struct library;
struct library_list;
struct profile;
struct recording;
struct scripts; /* the functions of a process, as far as they were called */

/* Finds the interpreter among the modules of a process. */
bool scripts_find(const struct library *library, const struct library_list *list, pid_t pid,
		  struct python *out);

struct scripts *scripts_open(const struct python *python); /* NULL: out of memory */
/* The process has become another program: from now on its functions are read by this. */
void scripts_read_as(struct scripts *scripts, const struct python *python);
void scripts_close(struct scripts *scripts); /* NULL is fine */
struct script_function;
struct script_call {
	struct script_function *function; /* NULL: ends a group, see struct python_call */
	uint32_t line;
};

/* The calls of a sample, innermost first. */
struct script_calls {
	size_t count, groups;
	const uint64_t *hosts; /* of each group: see struct python_call */
	struct script_call calls[];
};

/* Reads what there is about the function of a call, if it is not known yet. */
void scripts_learn(struct scripts *scripts, const struct python_memory *memory,
		   const struct python_call *call);
/* Finds out which functions were called, among those that are known. The caller frees the result; the
   functions stay until the scripts are closed. NULL: out of memory. */
struct script_calls *scripts_resolve(struct scripts *scripts, const struct python_call *calls,
				     size_t count);
/* Moves `node` to its child for one call. What is not known of its function yet is read from `memory`. */
struct err *scripts_add_call(struct scripts *scripts, const struct python_memory *memory,
			     struct profile *profile, const struct python_call *call,
			     uint32_t *node);
/* Moves `node` to its descendant for the outermost group of calls that is left; *left is their number, at first
   calls->count. */
struct err *scripts_add(struct recording *r, const struct script_calls *calls, size_t *left,
			uint32_t *node);
