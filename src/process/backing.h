/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The file behind a mapping, whatever happened to its name since: by its path
 * as the process sees it, by /proc/PID/map_files, or put together again from
 * the process's memory.
 */
#include <stddef.h>
#include <sys/types.h>

struct err;
struct image;
struct maps;

/* Opens the file (or vDSO) of maps->items[index]. */
struct err *backing_open(pid_t pid, const struct maps *maps, size_t index, struct image **out);
/* Opens this process's own vDSO. */
struct err *backing_open_vdso(struct image **out);
