/* SPDX-License-Identifier: Apache-2.0 */
#include "store/calltree.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define ROOM_FIRST 1024

static size_t slot_of(const struct calltree *t, const struct pack_node *n)
{
	uint64_t hash = hash_number(HASH_START, n->parent);
	hash = hash_number(hash, (uint64_t)n->image << 2 ^ n->kind);
	return (size_t)hash_number(hash, n->address) & (t->slot_room - 1);
}

static bool same(const struct pack_node *a, const struct pack_node *b)
{
	return a->address == b->address && a->parent == b->parent && a->image == b->image &&
	       a->kind == b->kind;
}

static void place(struct calltree *t, uint32_t number)
{
	size_t at = slot_of(t, &t->nodes[number]);
	while (t->slots[at])
		at = (at + 1) & (t->slot_room - 1);
	t->slots[at] = number;
}

static bool grow(struct calltree *t)
{
	uint32_t room = t->room ? t->room * 2 : ROOM_FIRST;
	struct pack_node *nodes = reallocarray(t->nodes, room, sizeof *nodes);
	uint32_t *slots = nodes ? calloc((size_t)room * 2, sizeof *slots) : NULL;
	if (nodes)
		t->nodes = nodes;
	if (!slots)
		return false;
	free(t->slots);
	t->slots = slots;
	t->slot_room = (size_t)room * 2;
	t->room = room;
	for (uint32_t i = 1; i < t->count; i++)
		place(t, i);
	return true;
}

bool calltree_clear(struct calltree *t)
{
	t->count = 0;
	if (!t->room && !grow(t))
		return false;
	memset(t->slots, 0, t->slot_room * sizeof *t->slots);
	t->nodes[0] = (struct pack_node){0};
	t->count = 1;
	return true;
}

void calltree_free(struct calltree *t)
{
	free(t->nodes);
	free(t->slots);
	*t = (struct calltree){0};
}

/* A path that came at once has its nodes one after the other, so most are found without a look elsewhere
   into memory. */
uint32_t calltree_child(struct calltree *t, const struct pack_node *node)
{
	uint32_t next = node->parent + 1;
	if (next < t->count && same(&t->nodes[next], node))
		return next;
	size_t at = slot_of(t, node);
	for (; t->slots[at]; at = (at + 1) & (t->slot_room - 1))
		if (same(&t->nodes[t->slots[at]], node))
			return t->slots[at];
	bool full = t->count == t->room;
	if (full && !grow(t))
		return UINT32_MAX;
	t->nodes[t->count] = *node;
	if (full)
		place(t, t->count);
	else
		t->slots[at] = t->count;
	return t->count++;
}
