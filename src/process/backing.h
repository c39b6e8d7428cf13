/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The file behind a mapping, whatever happened to its name since: by
 * /proc/PID/map_files, by its path as the process sees it, by its path as we see it
 * (the process may have ended meanwhile), or put together again from its memory.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct image;
struct map;
struct maps;

/* In the place of a process that has ended, where nothing else is known or another one is, which has the
   same root. */
#define PROCESS_GONE 0
#define PROCESS_BELOW(other) (-(other))

/* Opens the file (or vDSO) of maps->items[index]. */
struct err *backing_open(pid_t pid, const struct maps *maps, size_t index, struct image **out);
/* Where we find the same file: its path as the process sees it, or below the process's root. The
   caller's; NULL where it has no name for us: it was deleted, or lies in another mount namespace. */
char *backing_path(pid_t pid, const struct map *map);
/* When the file was written last, in ns: a new file may have an old one's number and name. 0 where
   nobody can tell. */
uint64_t backing_changed(pid_t pid, const struct map *map);
/* Opens this process's own vDSO. */
struct err *backing_open_vdso(struct image **out);
