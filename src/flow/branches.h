/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which branches and jumps lead to an address: an index that grows while code
 * is followed. Zeroed is empty; `base` may be set before the first is added.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct branches {
	uint64_t base; /* addresses are kept as distances from here, of less than 4 GiB */
	struct branches_item {
		uint32_t from, to;
		uint32_t next; /* in its chain: index + 1 */
	} * items;
	size_t count, room;
	uint32_t *heads; /* by hash of the target: index + 1 */
	size_t head_count;
};

/* False where memory is out. What is out of reach of `base` is left out. */
bool branches_add(struct branches *b, uint64_t from, uint64_t to);

/* Whether any leads there. */
bool branches_any(const struct branches *b, uint64_t to);

/* Where those begin that lead there: at most `max` of them, ascending, each once. */
size_t branches_to(const struct branches *b, uint64_t to, uint64_t *from, size_t max);

void branches_free(struct branches *b);
