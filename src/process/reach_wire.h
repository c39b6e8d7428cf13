/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What reach.c and reach_main.c say to each other. */
#include <limits.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>

#include "apart/apart.h"
#include "process/reach.h"

/* The descriptors of the other process. */
#define REACH_SOCKET APART_FIRST
#define REACH_PAPER (APART_FIRST + 1)
#define REACH_HANDED 2

/* What it takes to look at everybody's, where we have it: the memory, the files, the mapped files without a name. */
#define REACH_RIGHTS                                                          \
	(UINT64_C(1) << CAP_SYS_PTRACE | UINT64_C(1) << CAP_DAC_READ_SEARCH | \
	 UINT64_C(1) << CAP_CHECKPOINT_RESTORE)

enum reach_act { REACH_OPEN, REACH_STAT, REACH_READ };

struct reach_question {
	enum reach_act act;
	pid_t pid; /* whose memory */
	int flags;
	uint32_t count;
	struct reach_piece pieces[REACH_PIECES];
	char path[PATH_MAX]; /* the last: only what it needs is sent */
};

/* Whose path it is, by /proc/PID/; 0: nobody's. */
static inline pid_t reach_whose(const char *path)
{
	return strncmp(path, "/proc/", 6) != 0 ? 0 : (pid_t)strtol(path + 6, NULL, 10);
}

struct reach_answer {
	int64_t size; /* bytes that were read; less than 0: see error */
	int error;    /* errno */
	struct stat st;
};
