/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Opens files and reads memory of other users' processes, without the risk to wait for ever. process/,
 * library/, harvest/, the sampler in the kernel and the daemon do it through these functions.
 *
 * A file system may not answer: its server is away, or a user wants it so. That blocks everybody who opens or
 * reads one of its files, or reads the memory of a process that has such a file mapped, or even asks for the
 * memory map of that process. No signal ends such a wait. So a program that looks at everybody's processes
 * has separate processes for this. If one of them does not answer in time, it is left behind:
 *
 *      daemon                                                  PROGRAM reach PARENT
 *      reach_open ... --- a path, or a process and addresses --> REACH_SOCKET
 *                                                              reach_main: opens it, reads it
 *                     <-- an open file, sizes, errno ----------- REACH_SOCKET
 *                     <-- bytes of memory ---------------------- REACH_SHARED, which both have mapped
 *
 * A file of a file system that might not answer comes as a copy in memory. So reading it cannot block either.
 *
 * If there is no answer for a process, or for a path below /proc/PID, its user has to pause: nothing of that
 * user is asked for within the next minute. Each further time the pause is twice as long. For processes of
 * root and of our own user only the process pauses, and for paths that belong to no process only the
 * directory.
 *
 * Before reach_apart is called, everything is done in this process.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define REACH_COMMAND "reach"
#define REACH_ARGUMENTS 2    /* including the command */
#define REACH_PIECES 2       /* pieces that can be read at once */
#define REACH_MAX (1u << 20) /* bytes of memory that can be read at once */

struct reach_piece {
	uint64_t address, size;
	void *out;
};

/* From now on, processes of `program` do the work. The string must stay. NULL: this process does it. */
void reach_apart(const char *program);

/* Like foreign_open (base/foreign.h). *st describes the file itself, even if the descriptor is that of a
   copy. Returns -1 and sets errno: ETIMEDOUT if there was no answer. */
int reach_open(const char *path, int flags, struct stat *st);
/* Like foreign_stat; errors as for reach_open. */
int reach_stat(const char *path, struct stat *st);
/* Reads memory of a process, one piece after the other. Returns the number of bytes: it stops at the first
   byte that cannot be read, and after REACH_MAX bytes. -1 with errno on errors. */
ssize_t reach_memory(pid_t pid, const struct reach_piece *pieces, size_t count);
/* Reads one piece of any size. False if not all of it can be read. */
bool reach_bytes(pid_t pid, uint64_t address, void *out, size_t size);

/* Whether the process has to pause now, because there was no answer a while ago. */
bool reach_is_paused(pid_t pid);

struct reach_account {
	unsigned late;     /* answers that did not come */
	char newest[1024]; /* the last path or process without an answer */
	uint64_t cpu_ns;   /* of the processes that do the work */
};
/* What happened since the last call. */
struct reach_account reach_take_account(void);

/* The main function of the other process, with its arguments; returns its exit status. */
int reach_main(int argc, char **argv);
