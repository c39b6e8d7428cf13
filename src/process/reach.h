/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What belongs to processes of others: their files, their memory, and what the kernel tells of it.
 *
 * Who looks at it may wait for ever. A file system that does not answer, because its server is
 * away or because somebody wants it so, holds up who opens or reads a file of it, who reads the
 * memory of a process that has one mapped, and then who asks for that process's mappings. No
 * signal ends such a wait. So a program that looks at everybody's has processes of its own for
 * it, and leaves behind the one that does not answer in time:
 *
 *      daemon                                                  PROGRAM reach PARENT
 *      reach_open ... --- a path, or a process and addresses --> REACH_SOCKET
 *                                                              reach_main: opens it, reads it
 *                     <-- an open file, sizes, errno ----------- REACH_SOCKET
 *                     <-- bytes of memory ---------------------- REACH_PAPER, which both have mapped
 *
 * An open file of a file system that might not answer comes as a copy in memory, so that nobody
 * has to wait when it is read either.
 *
 * The user for whose process, or path below /proc/PID, there was no answer rests for a minute, and each time twice as
 * long: nothing of his is asked for until then. For root's and one's own processes, and for paths of nobody's, that is the process or
 * the directory.
 *
 * Until reach_apart is called everything is done here, by whoever asks.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define REACH_COMMAND "reach"
#define REACH_ARGUMENTS 2    /* the command is one of them */
#define REACH_PIECES 2       /* that are read at once */
#define REACH_MAX (1u << 20) /* bytes of memory that are read at once */

struct reach_piece {
	uint64_t address, size;
	void *out;
};

/* From now on by `program`, which stays; NULL: by who asks. */
void reach_apart(const char *program);

/* As foreign_open (base/foreign.h). *st is of the file itself, also where the descriptor is that of a copy. -1 with errno:
   ETIMEDOUT where there was no answer. */
int reach_open(const char *path, int flags, struct stat *st);
/* As foreign_stat. */
int reach_stat(const char *path, struct stat *st);
/* The memory of a process, one piece after the other; how many bytes that were, up to the first that cannot be read, and REACH_MAX.
   -1 with errno. */
ssize_t reach_memory(pid_t pid, const struct reach_piece *pieces, size_t count);
/* All of one piece, of any size. */
bool reach_bytes(pid_t pid, uint64_t address, void *out, size_t size);

/* Whether nothing of the process is asked for now, since there was no answer a while ago. */
bool reach_rests(pid_t pid);

struct reach_account {
	unsigned late;     /* answers that did not come */
	char newest[1024]; /* what that was for */
	uint64_t cpu_ns;   /* of the processes */
};
/* Since the last call. */
struct reach_account reach_take_account(void);

/* The life of the other process, with its arguments; returns its exit status. */
int reach_main(int argc, char **argv);
