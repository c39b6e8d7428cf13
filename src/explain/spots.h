/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a whole profile knows of single instructions, besides the samples on them: what page faults at them
 * took in the kernel, and whether several threads run them at once.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct modules;
struct profile;

struct spot {
	uint32_t module;
	bool shared; /* several threads of one process run it, at the same time */
	uint64_t address;
	uint64_t faults; /* samples in the kernel, while it handled faults of this instruction */
};

struct spots {
	struct spot *all; /* ascending by module and address */
	size_t count;
};

/* Those of the samples of a metric. `thread`: which count; NULL: all. */
struct err *spots_find(const struct profile *profile, struct modules *modules, uint32_t metric,
		       const bool *thread, struct spots *out);
void spots_free(struct spots *spots);

/* NULL: nothing but its samples is known of it. */
const struct spot *spots_at(const struct spots *spots, uint32_t module, uint64_t address);
