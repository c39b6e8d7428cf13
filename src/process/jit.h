/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Names of code that was made at run time. JIT compilers write them to /tmp/perf-PID.map, as lines "START
 * SIZE NAME" (hexadecimal). Recordings (harvest/names.c), imports (import/paths.c) and `culprit stack`
 * (symbolize.c) read them.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct jit;

struct jit_code {
	uint64_t start, size;
	const char *name; /* owned by the struct jit */
};

/* Reads the file of a process. *out is NULL if the process has not written one, or if the file belongs to
   another user. */
struct err *jit_open(pid_t pid, struct jit **out);
/* The same for a process that has ended: reads a file that belongs to `user` or root. */
struct err *jit_open_file(const char *path, uid_t user, struct jit **out);
/* The same, but only code at some addresses is kept, so memory does not depend on the size of the file. If
   the file is larger than *budget, only its end is read, which has the newest code. The bytes that were
   read are subtracted from *budget. */
struct jit_wanted {
	const uint64_t *addresses; /* ascending */
	size_t count;
	size_t *budget; /* bytes */
};
struct err *jit_open_wanted(pid_t pid, const struct jit_wanted *wanted, struct jit **out);
struct err *jit_open_file_wanted(const char *path, uid_t user, const struct jit_wanted *wanted,
				 struct jit **out);
/* The same from text, which is copied. Lines that cannot be parsed are left out. */
struct err *jit_parse(const char *text, size_t size, struct jit **out);
void jit_close(struct jit *jit); /* NULL is fine */

/* The code at `address`, or NULL. If code was replaced, the newest. */
const struct jit_code *jit_find(const struct jit *jit, uint64_t address);
