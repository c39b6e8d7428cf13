/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Copies of stacks that have the sentinel of an agent in them (agent/sentinel.c): its thread has noted which words
 * it has replaced. What the thread itself copies has the true words already. copies.c uses this for what
 * the kernel has copied.
 */
#include <stdint.h>

struct arena;

/* Returns the true word for one that was read at this address of a thread's stack; `owner`: its record. */
uint64_t sentinels_see_through(const struct arena *a, uint32_t owner, uint64_t address,
			       uint64_t word);
/* Sets the true words in a part of a stack that is at `address`, and in the registers. */
void sentinels_remove(const struct arena *a, uint32_t owner, uint64_t address, uint8_t *stack,
		      uint64_t size, uint64_t *registers);
