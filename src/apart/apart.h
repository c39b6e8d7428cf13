/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Runs work on foreign bytes in a process of its own. That process is the same program, started with an
 * internal command. It has no privileges, and limits for memory, time and files. If it dies, the process that
 * asked goes on without the result. The maker of tables (library/maker.h), the teller of names
 * (library/teller.h) and reach (process/reach.h, with a few capabilities) are such processes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

#define APART_FIRST 3     /* in the new process, the descriptors that are handed over start here */
#define APART_FILES_MAX 4 /* how many can be handed over */

struct apart_bounds {
	/* In bytes, on top of what it has at its start; at most half of the machine's memory. */
	uint64_t memory;
	uint64_t cpu_seconds; /* 0: no new limit */
	uint64_t file_size;   /* limit for a file that it writes, in bytes; 0: no new limit */
	uint64_t files;       /* limit for open descriptors; 0: no new limit */
	int nice;
};

/* ---- in the process that asks ---- */

/* Starts `program`. The last of `arguments` is NULL. In the new process, `files` become the descriptors
   APART_FIRST, APART_FIRST + 1 and so on; negative ones are skipped. */
struct err *apart_start(const char *program, char *const *arguments, const int *files, size_t count,
			pid_t *pid);
/* The same, and the new process keeps those of our capabilities whose bits are set in `rights`. The
   calling thread must have them. */
struct err *apart_start_with(uint64_t rights, const char *program, char *const *arguments,
			     const int *files, size_t count, pid_t *pid);
/* Kills the process and waits for its end. Returns its wait status and adds its CPU time to *cpu_ns. */
int apart_end(pid_t pid, uint64_t *cpu_ns);
/* Makes an error of the wait status of a process that did not answer. */
struct err *apart_say_death(int status, uint64_t cpu_seconds);
/* Waits until something comes from the process or it has ended. False if neither happens within `ms`.
   Time in which the process waited for a CPU does not count, up to a bound, because a busy machine is
   not its fault. */
bool apart_wait(pid_t pid, int socket, uint64_t ms);

/* ---- in the process that works ---- */

/* The new process calls this first. From now on it ends with `parent`, keeps only the first `handed`
   descriptors, and has the bounds and no privileges. False if `parent` has ended already. */
bool apart_enter(pid_t parent, int handed, const struct apart_bounds *bounds);
/* Part of apart_enter (apart_calls.c): system calls that such a process does not need fail from now on. */
void apart_restrict_calls(void);
/* From now on the process has only those of its capabilities whose bits are set in `rights`. */
void apart_limit_rights(uint64_t rights);
/* The peak memory of this process in bytes; 0 if it cannot be read. */
uint64_t apart_memory(void);
