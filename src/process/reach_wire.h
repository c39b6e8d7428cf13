/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The messages between reach.c, which asks, and reach_main.c, which answers. */
#include <limits.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>

#include "apart/apart.h"
#include "process/reach.h"

/* The descriptors that the other process gets. */
#define REACH_SOCKET APART_FIRST
#define REACH_SHARED (APART_FIRST + 1)
#define REACH_HANDED 2

/* The capabilities that are needed to look at everybody's memory, files, and mapped files without a name.
   The process gets those of them that we have. */
#define REACH_RIGHTS                                                          \
	(UINT64_C(1) << CAP_SYS_PTRACE | UINT64_C(1) << CAP_DAC_READ_SEARCH | \
	 UINT64_C(1) << CAP_CHECKPOINT_RESTORE)

enum reach_act { REACH_OPEN, REACH_STAT, REACH_READ };

struct reach_question {
	enum reach_act act;
	pid_t pid; /* whose memory is read */
	int flags;
	uint32_t count;
	struct reach_piece pieces[REACH_PIECES];
	char path[PATH_MAX]; /* last, so that only the used part is sent */
};

/* The process of a path below /proc/PID; 0 for any other path. */
static inline pid_t reach_whose(const char *path)
{
	return strncmp(path, "/proc/", 6) != 0 ? 0 : (pid_t)strtol(path + 6, NULL, 10);
}

struct reach_answer {
	int64_t size; /* bytes that were read; negative: see `error` */
	int error;    /* errno */
	struct stat st;
};
