/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Stacks that the sampler could only copy. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct kernel_far;
struct kernel_pieces;
struct kernel_snapshot;

#define COPY_MORE (8u << 20) /* bytes that are read beyond a copy of a stack, at most */

struct kernel_copy { /* a stack of which something may be missing */
	pid_t pid;
	uint64_t time, address, size;
	uint64_t *holes; /* KERNEL_HOLES */
	uint8_t *bytes;
};
/* Reads what is missing of it, if that is not too late; beyond its end as much as there is room for
   behind its bytes. */
void copy_complete(struct kernel_copy *copy, uint64_t room);
/* How many bytes the pieces of such a record take. */
uint64_t copy_far_size(const struct kernel_far *far);
/* Into so many bytes; `stacks`: what is behind the snapshot's own. */
void copy_far(const struct kernel_far *far, const uint8_t *stacks, struct kernel_pieces *out);
/* The snapshot in a record, and how many bytes come before it; NULL: there is none, or it is not whole. */
const struct kernel_snapshot *copy_in(const void *record, size_t size, size_t *before);
/* For a walk (struct walk_reader). */
bool copy_read(void *waiting, uint64_t address, uint64_t *out);
