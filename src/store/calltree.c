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

static bool make_room(struct calltree *t, size_t count)
{
	uint32_t room = t->room ? t->room : ROOM_FIRST;
	while (room < count)
		room *= 2;
	if (room == t->room)
		return true;
	struct pack_node *nodes = reallocarray(t->nodes, room, sizeof *nodes);
	if (!nodes)
		return false;
	t->nodes = nodes;
	t->room = room;
	return true;
}

/* Of equal nodes, which only a damaged file has, each has a slot. */
static void hash_rest(struct calltree *t)
{
	for (; t->hashed < t->count; t->hashed++) {
		size_t at = slot_of(t, &t->nodes[t->hashed]);
		while (t->slots[at])
			at = (at + 1) & (t->slot_room - 1);
		t->slots[at] = t->hashed;
	}
}

/* Slots for all nodes and one more, at most half of them taken. */
static bool prepare_slots(struct calltree *t)
{
	if (t->slot_room < (size_t)t->room * 2) {
		uint32_t *slots = calloc((size_t)t->room * 2, sizeof *slots);
		if (!slots)
			return false;
		free(t->slots);
		t->slots = slots;
		t->slot_room = (size_t)t->room * 2;
		t->hashed = 1;
	}
	hash_rest(t);
	return true;
}

bool calltree_clear(struct calltree *t)
{
	if (!make_room(t, 1))
		return false;
	if (t->hashed > 1)
		memset(t->slots, 0, t->slot_room * sizeof *t->slots);
	t->nodes[0] = (struct pack_node){0};
	t->count = t->hashed = 1;
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
	if (!make_room(t, (size_t)t->count + 1) || !prepare_slots(t))
		return UINT32_MAX;
	size_t at = slot_of(t, node);
	for (; t->slots[at]; at = (at + 1) & (t->slot_room - 1))
		if (same(&t->nodes[t->slots[at]], node))
			return t->slots[at];
	t->nodes[t->count] = *node;
	t->slots[at] = t->count;
	t->hashed++;
	return t->count++;
}

bool calltree_append(struct calltree *t, const struct pack_node *nodes, size_t count)
{
	if (!make_room(t, t->count + count))
		return false;
	memcpy(t->nodes + t->count, nodes, count * sizeof *nodes);
	t->count += (uint32_t)count;
	return true;
}
