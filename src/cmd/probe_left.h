/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a `culprit probe` has left in a process that was killed (collect/agents/left.h): it is shown, and taken out. cmd/probe.c
   and cmd/probe_live.c use it. */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct args;
struct buf;
struct err;

/* Takes all out: probes of the kernel on top of it would crash the process. An error: somebody counts there, or it cannot be
   taken out. `why`: gets the reason why the program cannot count its calls now; then there is no error. */
struct err *probe_left_clear(pid_t pid, char *why, size_t size);
/* Does what a command says if nobody is there to ask. Returns false if nothing is left, or the command is not for that. */
bool probe_left_answer(const char *command, pid_t pid, bool json, const struct args *args,
		       struct buf *out, int *status);
