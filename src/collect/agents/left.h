/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a collector has left in a process that was killed while that counted calls. The process goes on and counts on. Only its
 * memory is read and written, since nothing else is known: its arena is there.
 *
 * Its children have copies of its code, with the jumps, and the same arena. So jumps are taken out of all processes that have
 * the arena, and the agent ends when none is left.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "harvest/probes.h"

struct err;

struct left_probe {
	uint64_t function; /* its address */
	bool on;           /* its jump is in this process */
	struct probe_sums sums;
};

struct left {
	struct left_probe *all;
	size_t count;
};

/* Reads what is left. *out: to be freed; empty if there is nothing, or if its collector is alive. */
struct err *left_read(pid_t pid, struct left *out);
void left_free(struct left *left);
/* Takes the jumps of these functions out. If no other is left, does what left_clear does. */
struct err *left_take_out(pid_t pid, const uint64_t *functions, size_t count);
/* Takes all out, and ends the agent. An error: its collector is alive, or a thread stays inside of the agent. *code: whether
   the code of the process is as it was, also if there is an error. */
struct err *left_clear(pid_t pid, bool *code);
/* Whether all of this memory is islands of functions that were probed: a child has those of its parent. */
bool left_has_islands(pid_t pid, uint64_t start, uint64_t end);
