/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The memory map of a process: reads and parses /proc/PID/maps. All code that finds the modules of a
   process uses it: space.c, backing.c, library/, collect/. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

struct map {
	uint64_t start, end, offset;
	uint64_t device, inode; /* as in struct stat */
	bool readable, writable, executable;
	/* "" for anonymous memory. The suffix " (deleted)" is cut off, and `deleted` is set. */
	const char *path;
	bool deleted;
};

struct maps {
	struct map *items; /* sorted by address, disjoint */
	size_t count;
	char *text; /* memory of the paths */
	pid_t task; /* a thread that has this memory; 0: not read from a process */
};

struct err *maps_read(pid_t pid, struct maps *out);
/* The same from text, which is copied. Lines that cannot be parsed are left out. */
struct err *maps_parse(const char *text, size_t size, struct maps *out);
/* Whether the kernel has marked this path as deleted. *length: the length of the path without the mark. */
bool maps_is_deleted(const char *path, size_t *length);
void maps_free(struct maps *maps);
