/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Opens the file behind a mapping of a process, even if its name was changed or deleted since. The ways are,
 * in this order: /proc/PID/map_files, the path as the process sees it, the path as we see it (the process may
 * have ended), and at last the file rebuilt from the process's memory. space.c and library/ open modules with
 * it; names are read with it, too (daemon/namer.c, analyze/modules.c).
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct image;
struct map;
struct maps;

/* In the place of the pid of a process that has ended. PROCESS_BELOW(other): files are looked for below
   the root of another process that had the same root. */
#define PROCESS_GONE 0
#define PROCESS_BELOW(other) (-(other))

/* Opens the file (or vDSO) of maps->items[index]. */
struct err *backing_open(pid_t pid, const struct maps *maps, size_t index, struct image **out);
/* The path by which we find the same file: the path as the process sees it, or below the process's root.
   The caller frees it. NULL: the file was deleted, or lies in another mount namespace. */
char *backing_path(pid_t pid, const struct map *map);
/* When the file was last written, in ns; 0 if that is not known. A new file may have an old one's inode
   number and name; this tells them apart. */
uint64_t backing_changed(pid_t pid, const struct map *map);
/* Opens this process's own vDSO. */
struct err *backing_open_vdso(struct image **out);
