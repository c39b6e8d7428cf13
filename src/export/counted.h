/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Functions whose paths were counted, for the formats of executions (export/executions.h): nothing of them is estimated.
 */
#include <stddef.h>
#include <stdint.h>

struct err;
struct modules;
struct profile;
struct program;
struct ranking;

/* The file that is meant: the one with this path or name, NULL: the one in which most instructions were counted. 0: nothing was counted
   in it. */
uint32_t counted_module(const struct ranking *ranking, const struct profile *profile,
			const char *name);

struct counted_program {
	size_t refused; /* functions of the file that have no counts */
	size_t unread;  /* functions that were counted, but are not found in the file any more */
};

/* Makes a program of the functions that were counted in a file and called, for executions_write; program_close frees it. Its `samples` are
   all instructions that were counted, `explained` those of its functions. An error if the file cannot be read. */
struct err *counted_program_make(const struct ranking *ranking, const struct profile *profile,
				 struct modules *modules, uint32_t module, struct program *out,
				 struct counted_program *about);
