/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How far SP, or the frame pointer, is below where SP was at the entry of the function: before each instruction. */
#include <stdbool.h>
#include <stdint.h>

struct graph;
struct image;
struct isa;
struct live;

struct depth {
	bool sp_known, fp_known;
	int32_t sp, fp; /* bytes that are to be added, for SP as it was at the entry */
};

/* By instruction of `live`, malloc'ed; NULL: no memory. */
struct depth *depth_find(struct image *image, const struct isa *isa, const struct graph *graph,
			 const struct live *live);
