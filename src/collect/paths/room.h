/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Finds room in the address space of a process for copies of functions: near the module that they are of. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct maps;

struct room_taken { /* what was given away before */
	uint64_t start, end;
};

/* Whether the program maps memory of its own meanwhile: then places are preferred where the kernel will not do so soon. */
enum room_use { ROOM_STILL, ROOM_BUSY };

/* Returns an address from which on `size` bytes are free, from where all of [low, high) is nearer than `reach`; 0: there
   is none. */
uint64_t room_find(const struct maps *maps, const struct room_taken *taken, size_t taken_count,
		   uint64_t low, uint64_t high, uint64_t size, uint64_t reach, enum room_use use);
