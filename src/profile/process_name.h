/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a process is called. The kernel has a name for it (comm), which ps, top and
 * pgrep show: that by which it was started, or which it gave itself, 15 bytes of it.
 * Its file may be called otherwise: redis-server is a link to redis-check-rdb, and a
 * script is run by its interpreter. A recording keeps both where they differ:
 *
 *     redis-server [redis-check-rdb]
 */
#include <stdbool.h>
#include <stddef.h>

#define PROCESS_COMM_MAX 15 /* bytes that the kernel keeps */

/* `file`: the name of its file, without folders. */
void process_name_make(char *out, size_t size, const char *comm, const char *file);

/* Whether somebody who asks for `wanted` means the process of this name: that by which it runs, also cut as the kernel does
   it, or its file's, or that in its arguments (joined by spaces; NULL: not known). */
bool process_name_is(const char *name, const char *arguments, const char *wanted);
