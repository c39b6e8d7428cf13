/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether a stack is still the one that was copied. A copy has only the innermost part; the rest is read
 * from the process soon after. It is unchanged if the copied bytes next to it are unchanged: these bytes
 * are the mark. A stack that has returned and grown again may have the same bytes there, so it must be read
 * soon. The sampler by agents uses it (collect/agents/).
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MARK_SIZE 64u

struct mark {
	uint64_t address; /* 0: there is none */
	uint8_t bytes[MARK_SIZE];
};

/* Makes a mark from a part of a stack that is at `address`: its outermost bytes that can be told from
   any others. */
void mark_make(struct mark *mark, uint64_t address, const uint8_t *stack, size_t size);

/* Reads what the process has at `address` now, if the mark is unchanged, and `ns` (CLOCK_MONOTONIC),
   when it was made, is not long ago. Returns how many bytes: whole words. */
size_t mark_read(const struct mark *mark, pid_t pid, uint64_t ns, uint64_t address, void *out,
		 size_t size);
