/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Jumps to copies in running processes, as banks list them (safe/banks.h): which processes have them, and how they are taken out.
 * If a collector was killed, its jumps are still there, and the process counts on, for nobody.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct still_also;
struct still_report;

enum left_found {
	LEFT_NOTHING,
	LEFT_ALIVE,   /* a collector that counts there */
	LEFT_CLEARED, /* of one that was killed; now the code is as it was */
};

/* Takes out what a killed collector has left in a process, and in all others that have the same banks. */
struct err *paths_left_clear(pid_t pid, enum left_found *found);
/* Calls `each` for all processes that have these banks in their memory. */
struct err *paths_left_each(uint64_t inode, struct err *(*each)(void *context, pid_t pid),
			    void *context);

struct banks_patch;
/* Restores the code of one process; which of it is changed does not matter. `report` is added to. */
struct err *paths_left_restore(pid_t pid, const struct banks_patch *patches, size_t count,
			       const struct still_also *also, struct still_report *report);
