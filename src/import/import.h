/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A profile from a file of another profiler: perf.data, as perf record writes
 * it. Call chains are taken as they are; copies of stacks are walked with our
 * own unwind tables, made from the binaries as they are found again here.
 *
 * A path is complete only where it ends in code that nobody calls; else it is
 * partial, with a reason as in any other profile.
 */
#include <stdbool.h>
#include <stddef.h>

struct buf;
struct err;
struct profile;

struct import_options {
	const char *sysroot;  /* where the recorded machine's files are; NULL: here */
	const char *kallsyms; /* a list of its kernel's symbols; NULL: ours, where it is the same */
	bool timeline;        /* when each sample came is kept, too */
};

/* Reads the file ("-": standard input). `notes` gets a line for everything that the user should
   know: damage, files that are missing, stacks that were cut off. */
struct err *import_perf(const char *path, const struct import_options *options,
			struct profile **out, struct buf *notes);
/* The same from bytes. */
struct err *import_perf_bytes(const void *bytes, size_t size, const struct import_options *options,
			      struct profile **out, struct buf *notes);
