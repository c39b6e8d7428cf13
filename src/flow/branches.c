/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/branches.h"

#include <stdlib.h>

#define HEADS_FIRST 64u

static size_t head_of(const struct branches *b, uint32_t to)
{
	return (uint32_t)(to * 0x9e3779b1u) % b->head_count;
}

static void link_item(struct branches *b, size_t index)
{
	uint32_t *head = &b->heads[head_of(b, b->items[index].to)];
	b->items[index].next = *head;
	*head = (uint32_t)index + 1;
}

static bool grow(struct branches *b)
{
	size_t room = b->room ? b->room * 2 : HEADS_FIRST;
	struct branches_item *items = realloc(b->items, room * sizeof *items);
	if (!items)
		return false;
	b->items = items;
	uint32_t *heads = calloc(room, sizeof *heads);
	if (!heads)
		return false;
	free(b->heads);
	b->heads = heads;
	b->head_count = b->room = room;
	for (size_t i = 0; i < b->count; i++)
		link_item(b, i);
	return true;
}

bool branches_add(struct branches *b, uint64_t from, uint64_t to)
{
	if (from - b->base > UINT32_MAX || to - b->base > UINT32_MAX)
		return true;
	if (b->count == UINT32_MAX - 1 || (b->count == b->room && !grow(b)))
		return false;
	b->items[b->count] = (struct branches_item){(uint32_t)(from - b->base),
						    (uint32_t)(to - b->base), 0};
	link_item(b, b->count++);
	return true;
}

/* The next one of a chain that leads there; 0: none. */
static uint32_t next_to(const struct branches *b, uint32_t at, uint64_t to)
{
	while (at && b->items[at - 1].to != to - b->base)
		at = b->items[at - 1].next;
	return at;
}

static uint32_t first_to(const struct branches *b, uint64_t to)
{
	if (!b->count || to - b->base > UINT32_MAX)
		return 0;
	return next_to(b, b->heads[head_of(b, (uint32_t)(to - b->base))], to);
}

bool branches_any(const struct branches *b, uint64_t to)
{
	return first_to(b, to);
}

size_t branches_to(const struct branches *b, uint64_t to, uint64_t *out, size_t max)
{
	size_t count = 0;
	for (uint32_t i = first_to(b, to); i && count < max;
	     i = next_to(b, b->items[i - 1].next, to)) {
		uint64_t from = b->base + b->items[i - 1].from;
		size_t at = count;
		while (at && out[at - 1] > from)
			at--;
		if (at && out[at - 1] == from)
			continue;
		for (size_t k = count++; k > at; k--)
			out[k] = out[k - 1];
		out[at] = from;
	}
	return count;
}

void branches_free(struct branches *b)
{
	free(b->items);
	free(b->heads);
	*b = (struct branches){0};
}
