/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Names of code that was made at run time, as compilers in a process tell
 * them: lines "START SIZE NAME" (hexadecimal) in /tmp/perf-PID.map.
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

/* *out is NULL where the process has written no such file, or somebody else has. */
struct err *jit_open(pid_t pid, struct jit **out);
/* The same from a file that `user` (or root) has written: of a process that is gone. */
struct err *jit_open_file(const char *path, uid_t user, struct jit **out);
/* The same for some addresses alone, ascending: nothing else is kept, so memory does not depend on the file.
   Of one that is larger than *budget the end is read, where the newest code is; what was read is taken
   off. */
struct jit_wanted {
	const uint64_t *addresses;
	size_t count;
	size_t *budget; /* bytes */
};
struct err *jit_open_wanted(pid_t pid, const struct jit_wanted *wanted, struct jit **out);
struct err *jit_open_file_wanted(const char *path, uid_t user, const struct jit_wanted *wanted,
				 struct jit **out);
/* The same from text, which is copied. Lines that make no sense are left out. */
struct err *jit_parse(const char *text, size_t size, struct jit **out);
void jit_close(struct jit *jit); /* NULL is fine */

/* The code at `address`, the newest where code was replaced, or NULL. */
const struct jit_code *jit_find(const struct jit *jit, uint64_t address);
