/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/paths/contexts.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "safe/contexts.h"

struct known { /* a record of the arena that is read */
	uint64_t address;
	uint32_t node;
};

struct reader {
	struct counting_contexts *to;
	const uint8_t *arena;
	uint64_t base; /* where the arena was */
	uint64_t bank; /* the same of the bank */
	size_t end;
	struct known *known; /* ascending */
	size_t count, room;
	bool failed;
};

struct counting_contexts *counting_contexts_new(void)
{
	struct counting_contexts *c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	c->index_size = 1024;
	c->index = calloc(c->index_size, sizeof *c->index);
	c->nodes = calloc(16, sizeof *c->nodes);
	c->room = 16;
	c->count = 2;
	if (c->index && c->nodes)
		return c;
	counting_contexts_free(c);
	return NULL;
}

void counting_contexts_free(struct counting_contexts *c)
{
	if (!c)
		return;
	free(c->nodes);
	free(c->index);
	free(c->words);
	free(c);
}

/* ---- the tree ---- */

static bool same(const struct counting_node *a, const struct counting_node *b)
{
	return a->parent == b->parent && a->from == b->from && a->function == b->function;
}

/* Where it is in the table, or would be. */
static size_t place_of(const struct counting_contexts *c, const struct counting_node *n)
{
	uint64_t hash = ((uint64_t)n->parent << 32 | n->function) * UINT64_C(0x9e3779b97f4a7c15);
	hash = (hash ^ hash >> 29 ^ n->from) * UINT64_C(0xbf58476d1ce4e5b9);
	size_t at = (size_t)(hash >> 20) % c->index_size;
	while (c->index[at] && !same(&c->nodes[c->index[at]], n))
		at = (at + 1) % c->index_size;
	return at;
}

static bool grow_index(struct counting_contexts *c)
{
	uint32_t *index = calloc(2 * c->index_size, sizeof *index);
	if (!index)
		return false;
	free(c->index);
	c->index = index;
	c->index_size *= 2;
	for (uint32_t i = 2; i < c->count; i++)
		c->index[place_of(c, &c->nodes[i])] = i;
	return true;
}

uint32_t counting_contexts_node(struct counting_contexts *c, uint32_t parent, uint64_t from,
				uint32_t function)
{
	const struct counting_node node = {parent, function, from};
	size_t at = place_of(c, &node);
	if (c->index[at])
		return c->index[at];
	if (2 * c->count > c->index_size && !grow_index(c))
		return UINT32_MAX;
	if (!ARRAY_ROOM(c->nodes, c->count, c->room))
		return UINT32_MAX;
	c->index[place_of(c, &node)] = (uint32_t)c->count;
	c->nodes[c->count] = node;
	return (uint32_t)c->count++;
}

/* ---- an arena ---- */

/* The node of a record that was read before. One of a bank has lost its context. */
static uint32_t node_at(const struct reader *r, uint64_t address)
{
	size_t i = FIRST_NOT(k, r->count, r->known[k].address < address);
	return i < r->count && r->known[i].address == address ? r->known[i].node : COUNTING_UNKNOWN;
}

static bool add_known(struct reader *r, uint64_t address, uint32_t node)
{
	if (!ARRAY_ROOM(r->known, r->count, r->room))
		return false;
	r->known[r->count++] = (struct known){address, node};
	return true;
}

static bool add_words(struct reader *r, const uint8_t *bytes, size_t size, uint32_t node)
{
	struct counting_contexts *c = r->to;
	for (size_t i = 0; i < size / 8; i++) {
		uint64_t word;
		memcpy(&word, bytes + 8 * i, sizeof word);
		if (!word)
			continue;
		if (!ARRAY_ROOM(c->words, c->word_count, c->word_room))
			return false;
		c->words[c->word_count++] = (struct counting_word){
			.node = node, .word = (uint32_t)i, .count = word};
	}
	return true;
}

/* A record of a bank is where the function has its counters there. */
static uint32_t parent_of(struct reader *r, const struct context_head *h)
{
	uint64_t at = h->parent - r->bank;
	if (at < r->base - r->bank)
		return counting_contexts_node(r->to, COUNTING_UNKNOWN, 0, (uint32_t)(at / 8));
	return node_at(r, h->parent);
}

static bool add_record(struct reader *r, size_t at, const struct context_head *h)
{
	uint64_t address = r->base + at + sizeof *h;
	uint32_t parent = parent_of(r, h);
	if (h->record != address)
		return true; /* a link */
	uint32_t node = parent == UINT32_MAX
				? parent
				: counting_contexts_node(r->to, parent, h->from, h->function);
	return node != UINT32_MAX && add_known(r, address, node) &&
	       add_words(r, r->arena + at + sizeof *h, h->size - sizeof *h, node);
}

static bool read_all(struct reader *r)
{
	struct context_head h;
	for (size_t at = CONTEXTS_FIRST; at + sizeof h <= r->end; at += h.size) {
		memcpy(&h, r->arena + at, sizeof h);
		if (h.size < sizeof h || h.size > r->end - at || h.size % 8)
			return true;
		if (!add_record(r, at, &h))
			return false;
	}
	return true;
}

bool counting_contexts_add(struct counting_contexts *c, const uint8_t *arena, size_t size,
			   uint64_t bank_bytes)
{
	struct context_arena head;
	if (size < CONTEXTS_FIRST)
		return true;
	memcpy(&head, arena, sizeof head);
	if (head.magic != CONTEXTS_MAGIC)
		return true;
	struct reader r = {.to = c, .arena = arena};
	r.base = head.root_head.record - sizeof head.root_head -
		 offsetof(struct context_arena, root_head);
	r.bank = r.base - bank_bytes;
	r.end = head.used < size ? (size_t)head.used : size;
	c->full += head.full;
	c->lost += head.lost;
	bool good = add_known(&r, head.root_head.record, COUNTING_OUTSIDE) && read_all(&r);
	free(r.known);
	return good;
}
