/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which symbols matter to some addresses: around each, from the last function that begins at or
 * before it to the first one behind it, all that reach in there, and their aliases. For these
 * addresses a search among them finds what a search among all would find.
 *
 * First all functions with sizes are seen, then it is settled, then each symbol is kept or not; and once more
 * for the aliases, if there may be any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct near;

/* The addresses ascend, and must outlive it. NULL: no memory. */
struct near *near_open(const uint64_t *addresses, size_t count);
void near_close(struct near *near); /* NULL is fine */

void near_see(struct near *near, uint64_t start);
void near_settle(struct near *near);
bool near_keeps(struct near *near, uint64_t start, uint64_t size);
/* From now on only shorter aliases of what was kept are. False: there are none. */
bool near_aliases(struct near *near);
bool near_failed(const struct near *near); /* no memory */
