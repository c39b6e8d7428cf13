/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The slowest calls that programs keep themselves (safe/slowest.h): they are taken from the arenas. patches.c uses it. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct arena_probe;
struct arena_probe_sums;
struct patches_tree;
struct recording;

/* Returns how large a list is, in bytes, if so many calls are wanted. */
size_t slowest_size(uint32_t wanted);
/* Notes when ticks are counted first. */
void slowest_begin(void);
/* Takes the calls that belong to the sums of a node, by their reference. */
void slowest_take(const struct patches_tree *tree, const struct arena_probe_sums *sums,
		  uint64_t reference, uint32_t node);
/* Takes the calls of a function whose path is not known. */
void slowest_take_others(struct recording *recording, const struct arena *a,
			 const struct arena_probe *probe);
