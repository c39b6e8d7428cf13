/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Puts plans (plan.h) into a running process, and takes them out again.
 *
 * All threads are stopped meanwhile, for some microseconds each. No code of ours runs in the process but the islands, and
 * nothing is mapped there: islands stand in the rest of the last page of the file's code, and their counters in the rest
 * of the last page of its data, which belong to nobody. So only as many functions of a file can be patched as there is
 * room for. When a patch is taken out, the bytes are those of the file again. If we are killed, the patches stay, and count
 * on. Child processes get copies, which count for themselves.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct patcher;

struct patcher_function {
	uint64_t address;        /* in the memory of the process */
	size_t size;             /* in bytes */
	const uint64_t *targets; /* as in struct patch_input, in memory */
	size_t target_count;
};

struct err *patcher_open(pid_t pid, struct patcher **out);
/* Takes out what is left, as far as the process lives. */
void patcher_close(struct patcher *patcher);

/* Patches a function, so that its calls are counted. *id stands for the patch. */
struct err *patcher_add(struct patcher *patcher, const struct patcher_function *function,
			size_t *id);
/* Takes a patch out. An error if the bytes there are not ours any more: then they stay. */
struct err *patcher_remove(struct patcher *patcher, size_t id);
/* Reads how many calls were counted. */
struct err *patcher_calls(struct patcher *patcher, size_t id, uint64_t *calls);
