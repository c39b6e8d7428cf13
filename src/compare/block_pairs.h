/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which blocks of a function are the same in two builds of it: by how they follow each other, by their instructions, and
 * by their lines. What only one build has does not shift the rest.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct graph;
struct ways;

struct block_side {
	const struct graph *graph;
	const uint32_t *lengths;  /* by block: its instructions */
	const struct ways *lines; /* NULL: not known */
};

#define BLOCK_ALONE UINT32_MAX

struct block_pairs {
	/* By block of one side: that of the other; BLOCK_ALONE: there is none. */
	uint32_t *to_new, *to_old;
	size_t count;
	bool alike; /* all blocks have one, with as many instructions, and with the same ways on */
};

struct err *block_pairs_find(const struct block_side *old, const struct block_side *new,
			     struct block_pairs *out);
/* The same for two recordings of one file: by their addresses. */
struct err *block_pairs_by_address(const struct block_side *old, const struct block_side *new,
				   struct block_pairs *out);
void block_pairs_free(struct block_pairs *pairs);

/* A hash of all that makes functions alike, wherever they and their parts lie. */
uint64_t block_shape(const struct block_side *side);
