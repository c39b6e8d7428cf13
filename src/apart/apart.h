/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Work on foreign bytes, in a process of its own: the same program, started with a
 * command that nobody else uses, without privileges and with bounds in memory, time
 * and files. Where it dies, who asked for the work goes on without it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

#define APART_FIRST 3     /* the descriptors of the other process: those handed over, in order */
#define APART_FILES_MAX 4 /* that can be handed over */

struct apart_bounds {
	uint64_t memory; /* bytes more than it begins with, and half of the machine's at most */
	uint64_t cpu_seconds; /* 0: as it was */
	uint64_t file_size;   /* bytes of a file that it writes; 0: as it was */
	uint64_t files;       /* open at once; 0: as it was */
	int nice;
};

/* ---- who asks ---- */

/* Starts `program` with these arguments, of which the last is NULL; `files` become APART_FIRST and the following ones,
   where they are not negative. */
struct err *apart_start(const char *program, char *const *arguments, const int *files, size_t count,
			pid_t *pid);
/* The same, with those of our capabilities that `rights` has a bit for. They are the caller's thread's to give. */
struct err *apart_start_with(uint64_t rights, const char *program, char *const *arguments,
			     const int *files, size_t count, pid_t *pid);
/* Ends it, whatever it does; returns its status, and adds what it took to *cpu_ns. */
int apart_end(pid_t pid, uint64_t *cpu_ns);
/* Why it did not answer. */
struct err *apart_say_death(int status, uint64_t cpu_seconds);
/* Until something comes from it, or it is gone: false where neither was within `ms`. Time that it waited for a CPU does not
   count, within bounds: that the machine is busy is nobody's fault. */
bool apart_wait(pid_t pid, int socket, uint64_t ms);

/* ---- who works ---- */

/* The first thing that it does: ends with `parent`, has the first `handed` descriptors only, the bounds, and no privileges. False:
   nobody needs it any more. */
bool apart_enter(pid_t parent, int handed, const struct apart_bounds *bounds);
/* Part of that (apart_calls.c): from now on system calls that it has no use for do not exist. */
void apart_restrict_calls(void);
/* Has only these of its capabilities from now on. */
void apart_keep(uint64_t rights);
/* The most memory that it had, as far as it can tell. */
uint64_t apart_memory(void);
