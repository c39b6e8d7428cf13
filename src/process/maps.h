/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The memory map of a process: /proc/PID/maps, read whole and parsed.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

struct map {
	uint64_t start, end, offset;
	uint64_t device, inode; /* as in struct stat */
	bool readable, writable, executable;
	const char
		*path; /* "" for anonymous memory; " (deleted)" is cut off and said in `deleted` */
	bool deleted;
};

struct maps {
	struct map *items; /* ascending */
	size_t count;
	char *text; /* what the paths point into */
	pid_t task; /* a thread that has this memory; 0: it was not read from a process */
};

struct err *maps_read(pid_t pid, struct maps *out);
/* The same from text, which is copied: foreign bytes, lines that make no sense are left out. */
struct err *maps_parse(const char *text, size_t size, struct maps *out);
/* Whether the kernel says of this file that it is deleted; *length is that of its name without that. */
bool maps_is_deleted(const char *path, size_t *length);
void maps_free(struct maps *maps);
