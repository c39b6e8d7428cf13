/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which symbols matter to some addresses: around each, from the last function that begins at or
 * before it to the first one behind it, all that reach in there, and their aliases. For these
 * addresses a search among them finds what a search among all would find.
 *
 * Call near_see for all functions with sizes, then near_spread, then near_keeps for each symbol. If there may
 * be aliases (near_aliases), call near_keeps for each symbol once more.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct near;

/* The addresses ascend, and must outlive it. NULL: no memory. */
struct near *near_open(const uint64_t *addresses, size_t count);
void near_close(struct near *near); /* NULL is fine */

/* A function begins at `start`. */
void near_see(struct near *near, uint64_t start);
/* Gives each address the nearest functions, which near_see has told only to their neighbours. */
void near_spread(struct near *near);
bool near_keeps(struct near *near, uint64_t start, uint64_t size);
/* From now on only shorter aliases of what was kept are. False: there are none. */
bool near_aliases(struct near *near);
bool near_failed(const struct near *near); /* no memory */
