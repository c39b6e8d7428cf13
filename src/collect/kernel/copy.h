/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Copies of stacks: samples that the sampler could not walk itself. reader.c completes a copy when it
   comes out of the ring. waiting.c keeps it, and walks.c reads its words. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct kernel_copy;
struct kernel_far;
struct kernel_pieces;

#define COPY_MORE (8u << 20) /* bytes that are read beyond a copy at most */

struct partial_stack { /* a stack of which parts may be missing */
	pid_t pid;
	uint64_t time, address, size;
	uint64_t *holes; /* KERNEL_HOLES words */
	uint8_t *bytes;
};
/* Reads the missing parts from the process, if the stack was copied a moment ago. Beyond its end it reads up
   to `room` bytes: that much must be free behind `bytes`. */
void copy_complete(struct partial_stack *stack, uint64_t room);
/* Returns the size in bytes of the pieces of such a record. */
uint64_t copy_far_size(const struct kernel_far *far);
/* Fills `out`, which has copy_far_size() bytes. `stacks`: the bytes behind the copy's own stack. */
void copy_far(const struct kernel_far *far, const uint8_t *stacks, struct kernel_pieces *out);
/* Returns the copy in a record, and sets `before` to the number of bytes before it; NULL: the record
   has no copy, or is cut off. */
const struct kernel_copy *copy_in(const void *record, size_t size, size_t *before);
/* Reads a word of a copy (struct kernel_waiting), as the reader of a walk (struct walk_reader). */
bool copy_read(void *waiting, uint64_t address, uint64_t *out);
