/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The files whose functions can be probed: those that a process has in memory, or those that the dynamic linker loads
   for a program. choose.c looks for functions in them. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct image;
struct structure;
struct symbols;

struct probe_module {
	char *path; /* as the process sees it */
	char *file; /* the same, as we can open it */
	uint64_t device, inode;
	bool shared;             /* other processes have it in memory, too */
	struct image *image;     /* NULL: not opened yet */
	struct symbols *symbols; /* the same */
	struct structure *structure;
};

struct probe_range { /* code of a module in the memory of a process */
	uint64_t start, end, offset;
	size_t module;
};

struct probe_modules {
	struct probe_module *all; /* the program is the first */
	size_t count, room;
	struct probe_range *ranges; /* empty for a program that does not run yet */
	size_t range_count, range_room;
};

/* Adds what a process has in memory. */
struct err *probe_modules_of_process(struct probe_modules *modules, pid_t pid);
/* Adds a program and the libraries that are loaded when it starts. If a script is given, its interpreter. */
struct err *probe_modules_of_program(struct probe_modules *modules, const char *path);
/* Adds one file, if it is not there. Sets its index. */
struct err *probe_modules_add_file(struct probe_modules *modules, const char *path, size_t *index);
/* Finds out which of them other processes have in memory, too: all but ourselves and these. */
void probe_modules_find_shared(struct probe_modules *modules, const pid_t *pids, size_t pid_count);
void probe_modules_free(struct probe_modules *modules);

/* Opens the file and reads its symbols. Returns an error if it cannot be read. */
struct err *probe_module_open(struct probe_module *module);
/* The same, and what is known of its procedures. */
struct err *probe_module_structure(struct probe_module *module);
