/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes, and the hash that finds a node's child. */
#include <string.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/sum.h"
#include "profile/own.h"

#define AHEAD 6      /* nodes whose slots are on their way from memory */
#define FAR_AHEAD 16 /* the same, if each may also name a node elsewhere */

static uint64_t hash_node(const struct profile_node *n)
{
	uint64_t hash = own_mix((uint64_t)n->parent << 32 | n->module);
	return own_mix(hash ^ n->address ^ (uint64_t)n->kind << 62);
}

static bool same_node(const struct profile_node *a, const struct profile_node *b)
{
	return a->address == b->address && a->parent == b->parent && a->module == b->module &&
	       a->kind == b->kind;
}

/* The slot that holds a node equal to `n`, or the free one where it belongs. */
static struct node_slot *find_slot(const struct profile *p, const struct profile_node *n,
				   uint64_t hash)
{
	const struct profile_private *own = p->own;
	size_t mask = own->slot_room - 1, at = hash & mask;
	uint32_t tag = (uint32_t)(hash >> 32);
	while (own->slots[at].node &&
	       (own->slots[at].tag != tag || !same_node(&p->nodes[own->slots[at].node], n)))
		at = (at + 1) & mask;
	return &own->slots[at];
}

/* Of equal nodes, which only a foreign file has, the first one stays in the hash. */
static void hash_rest(struct profile *p)
{
	struct profile_private *own = p->own;
	if (own->hashed == 0)
		own->hashed = 1; /* the root */
	for (; own->hashed < p->node_count; own->hashed++) {
		const struct profile_node *n = &p->nodes[own->hashed];
		uint64_t hash = hash_node(n);
		if (own->hashed + AHEAD < p->node_count)
			__builtin_prefetch(
				&own->slots[hash_node(n + AHEAD) & (own->slot_room - 1)]);
		struct node_slot *slot = find_slot(p, n, hash);
		if (!slot->node)
			*slot = (struct node_slot){(uint32_t)(hash >> 32), (uint32_t)own->hashed};
	}
}

/* Room for all nodes and so many more, at most half full. */
static bool prepare_hash(struct profile *p, size_t more)
{
	struct profile_private *own = p->own;
	size_t room = own->slot_room ? own->slot_room : 1024;
	struct node_slot *slots;
	while (room < (p->node_count + more) * 2)
		room *= 2;
	if (room != own->slot_room) {
		slots = calloc(room, sizeof *slots);
		if (!slots)
			return false;
		free(own->slots);
		own->slots = slots;
		own->slot_room = room;
		own->hashed = 0;
	}
	hash_rest(p);
	return true;
}

struct err *own_append_node(struct profile *p, const struct profile_node *node)
{
	struct profile_node *moved;
	if (p->node_count >= PROFILE_NODE_MAX)
		return err_new("a profile cannot have more than %u contexts", PROFILE_NODE_MAX);
	moved = own_grow(p->nodes, &p->own->node_room, p->node_count, sizeof *node);
	if (!moved)
		return err_new("out of memory");
	p->nodes = moved;
	p->nodes[p->node_count++] = *node;
	return NULL;
}

/* Without the hash, whose slots are seldom in the processor's caches: most paths are as they came first,
   each node behind its parent. The last node has no children yet. */
static struct err *child_nearby(struct profile *p, const struct profile_node *wanted,
				uint32_t *node)
{
	uint32_t next = wanted->parent + 1;
	*node = 0;
	if (next < p->node_count && !same_node(&p->nodes[next], wanted))
		return NULL;
	*node = next;
	return next < p->node_count ? NULL : own_append_node(p, wanted);
}

static bool is_context(const struct profile *p, const struct profile_node *n, uint32_t parent)
{
	return parent < p->node_count && n->module < p->module_count && n->kind > PROFILE_ROOT &&
	       n->kind <= PROFILE_PARTIAL && (n->kind != PROFILE_PARTIAL || parent == 0);
}

static struct err *no_context(const struct profile_node *n)
{
	return err_new("no such context: parent %u, kind %d, module %u", n->parent, (int)n->kind,
		       n->module);
}

/* There is room in the hash. */
static struct err *find_or_append(struct profile *p, const struct profile_node *wanted,
				  uint32_t *node)
{
	uint64_t hash = hash_node(wanted);
	struct node_slot *slot = find_slot(p, wanted, hash);
	if (!slot->node) {
		struct err *e = own_append_node(p, wanted);
		if (e)
			return e;
		*slot = (struct node_slot){(uint32_t)(hash >> 32), (uint32_t)p->node_count - 1};
		p->own->hashed = p->node_count;
	}
	*node = slot->node;
	return NULL;
}

struct err *profile_child(struct profile *p, uint32_t parent, enum profile_node_kind kind,
			  uint32_t module, uint64_t address, uint32_t *node)
{
	const struct profile_node wanted = {parent, module, address, (uint8_t)kind};
	if (!is_context(p, &wanted, parent))
		return no_context(&wanted);
	struct err *e = child_nearby(p, &wanted, node);
	if (e || *node)
		return e;
	if (!prepare_hash(p, 1))
		return err_new("out of memory");
	return find_or_append(p, &wanted, node);
}

/* ---- a tree at once ---- */

/* Begins to fetch the slot of a node, if its parent is known. Nearly each slot, and the node that it names, is
   somewhere else in memory. */
static void fetch_slot(const struct profile *p, const struct profile_node *n, const uint32_t *to,
		       size_t known, uint64_t *hash)
{
	struct profile_node wanted = *n;
	*hash = 0;
	if (n->parent >= known)
		return;
	wanted.parent = to[n->parent];
	*hash = hash_node(&wanted);
	__builtin_prefetch(&p->own->slots[*hash & (p->own->slot_room - 1)]);
}

static void fetch_node(const struct profile *p, uint64_t hash)
{
	if (hash)
		__builtin_prefetch(&p->nodes[p->own->slots[hash & (p->own->slot_room - 1)].node]);
}

struct err *profile_add_tree(struct profile *p, const struct profile_node *nodes, size_t count,
			     uint32_t *to)
{
	uint64_t hashes[2 * FAR_AHEAD] = {0};
	struct err *e = NULL;
	if (!prepare_hash(p, count))
		return err_new("out of memory");
	to[0] = 0;
	for (size_t i = 1; !e && i < count; i++) {
		struct profile_node wanted = nodes[i];
		if (wanted.parent >= i || !is_context(p, &wanted, to[wanted.parent]))
			return no_context(&wanted);
		if (i + 2 * FAR_AHEAD < count)
			fetch_slot(p, &nodes[i + 2 * FAR_AHEAD], to, i,
				   &hashes[i % (2 * FAR_AHEAD)]);
		fetch_node(p, hashes[(i + FAR_AHEAD) % (2 * FAR_AHEAD)]);
		wanted.parent = to[wanted.parent];
		e = find_or_append(p, &wanted, &to[i]);
	}
	return e;
}

uint64_t profile_period(const struct profile *p, uint32_t metric)
{
	return coverage_period(p->metrics[metric].coverage, p->metrics[metric].period);
}

uint32_t profile_sampled(const struct profile *p, uint32_t metric)
{
	const char *name = metric < p->metric_count ? p->metrics[metric].name : "";
	const char *dot = strrchr(name, '.');
	bool time = dot && !strcmp(p->metrics[metric].unit, "ns") && p->metrics[metric].period > 1;
	for (uint32_t i = 0; dot && !time && i < p->metric_count; i++) {
		const char *event = p->metrics[i].name;
		if (strlen(event) == (size_t)(dot - name) && !strncmp(event, name, strlen(event)))
			return i;
	}
	return metric;
}

uint32_t profile_main(const struct profile *p)
{
	return p->metric_count > 1 && strcmp(p->metrics[0].unit, "ns") && !profile_sampled(p, 1);
}

uint64_t profile_samples(const struct profile *p, uint32_t metric)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < p->value_count; i++)
		if (p->values[i].metric == metric)
			sum = sum_add(sum, p->values[i].count);
	return sum;
}

static bool is_start(const struct profile_node *n, unsigned reason)
{
	return n->kind == PROFILE_PARTIAL && n->address == reason;
}

/* For when there is no memory to mark nodes in. */
static bool is_below(const struct profile *p, uint32_t node, unsigned reason)
{
	while (node && p->nodes[node].parent)
		node = p->nodes[node].parent;
	return is_start(&p->nodes[node], reason);
}

uint64_t profile_partial(const struct profile *p, uint32_t metric, unsigned reason)
{
	bool *below = calloc(p->node_count, sizeof *below);
	uint64_t sum = 0;
	for (size_t i = 1; below && i < p->node_count; i++)
		below[i] = is_start(&p->nodes[i], reason) || below[p->nodes[i].parent];
	for (size_t i = 0; i < p->value_count; i++) {
		const struct profile_value *v = &p->values[i];
		if (v->metric == metric && (below ? below[v->node] : is_below(p, v->node, reason)))
			sum = sum_add(sum, v->count);
	}
	free(below);
	return sum;
}
