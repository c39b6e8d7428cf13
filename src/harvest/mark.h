/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether a stack is still the one that was copied. A copy has the innermost part alone; the rest is read
 * from the process, soon after. It is what it was if the copied bytes next to it are: these are the mark. A stack
 * that has returned and grown again since may have the same bytes there, which is why it must be soon.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MARK_SIZE 64u

struct mark {
	uint64_t address; /* 0: there is none */
	uint8_t bytes[MARK_SIZE];
};

/* Of a stack's part at `address`: its outermost bytes that can be told from any others. */
void mark_find(struct mark *mark, uint64_t address, const uint8_t *stack, size_t size);

/* Reads what the process has at `address` now, as long as it was at `ns` (CLOCK_MONOTONIC). How many bytes: whole words. */
size_t mark_read(const struct mark *mark, pid_t pid, uint64_t ns, uint64_t address, void *out,
		 size_t size);
