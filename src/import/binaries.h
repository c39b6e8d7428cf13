/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The files that a recording has mapped, each once, found again on this
 * machine: below the sysroot, at their own path, in perf's cache of binaries.
 * One with another build-id, or for another CPU, is not the file.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/image.h"
#include "recipes/cache.h"

struct binary {
	struct binary *chain;
	uint32_t id; /* 1 … */
	bool opened, is_vdso;
	char *path;                          /* as the process saw it */
	char *found;                         /* where it is now; NULL: nowhere */
	char *problem;                       /* why it has no table, or NULL */
	char build_id[2 * BUILD_ID_MAX + 1]; /* as recorded, else of the file; "": none */
	struct image_segment *segments;
	size_t segment_count;
	struct module_table table; /* empty where there is a problem */
	uint32_t profile;          /* its number there + 1; 0: not in it yet */
};

struct binaries;

/* `recorded`: when the recording ended, seconds since 1970: a file without a build-id that was
   written later is another one; 0: not known. */
struct binaries *binaries_new(const char *sysroot, uint16_t machine, uint64_t recorded);
void binaries_free(struct binaries *binaries); /* NULL is fine */

/* The binary of this path and build-id ("": not told), or NULL without memory and
   where there are too many. */
struct binary *binaries_find(struct binaries *binaries, const char *path, const char *build_id);
/* Looks for the file and makes its table; only the first time. */
void binary_open(struct binaries *binaries, struct binary *binary);

size_t binaries_count(const struct binaries *binaries);
/* By number from 1; NULL where there is none. */
struct binary *binaries_get(const struct binaries *binaries, uint32_t id);
