/* SPDX-License-Identifier: Apache-2.0 */
#include "paths/contexts.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

bool path_contexts_open(struct path_contexts *c)
{
	if (c->items)
		return true;
	c->room = 64;
	c->items = calloc(c->room, sizeof *c->items);
	c->index_size = 256;
	c->index = calloc(c->index_size, sizeof *c->index);
	c->place_index_size = 64;
	c->place_index = calloc(c->place_index_size, sizeof *c->place_index);
	c->count = PATH_CONTEXTS_FIRST;
	if (c->items && c->index && c->place_index)
		return true;
	path_contexts_free(c);
	return false;
}

void path_contexts_free(struct path_contexts *c)
{
	for (size_t i = 0; i < c->place_count; i++) {
		free(c->places[i].name);
		free(c->places[i].module);
	}
	for (size_t i = 0; c->items && i < c->count; i++)
		free(c->items[i].taken);
	free(c->places);
	free(c->items);
	free(c->index);
	free(c->place_index);
	*c = (struct path_contexts){0};
}

/* ---- functions ---- */

/* Where it is in the table, or would be. */
static size_t place_at(const struct path_contexts *c, const char *module, uint64_t address)
{
	size_t at = (size_t)((address * UINT64_C(0x9e3779b97f4a7c15)) >> 24) % c->place_index_size;
	for (; c->place_index[at]; at = (at + 1) % c->place_index_size) {
		const struct path_caller *p = &c->places[c->place_index[at] - 1];
		if (p->address == address && !strcmp(p->module, module))
			break;
	}
	return at;
}

static bool grow_places(struct path_contexts *c)
{
	uint32_t *index = calloc(2 * c->place_index_size, sizeof *index);
	if (!index)
		return false;
	free(c->place_index);
	c->place_index = index;
	c->place_index_size *= 2;
	for (uint32_t i = 0; i < c->place_count; i++)
		c->place_index[place_at(c, c->places[i].module, c->places[i].address)] = i + 1;
	return true;
}

uint32_t path_contexts_place(struct path_contexts *c, const char *name, const char *module,
			     uint64_t address)
{
	size_t at = place_at(c, module, address);
	if (c->place_index[at])
		return c->place_index[at] - 1;
	if (!ARRAY_ROOM(c->places, c->place_count, c->place_room) ||
	    (2 * c->place_count > c->place_index_size && !grow_places(c)))
		return PATH_NO_CONTEXT;
	struct path_caller place = {
		.name = strdup(name), .module = strdup(module), .address = address};
	if (!place.name || !place.module) {
		free(place.name);
		free(place.module);
		return PATH_NO_CONTEXT;
	}
	c->places[c->place_count++] = place;
	c->place_index[place_at(c, module, address)] = (uint32_t)c->place_count;
	return (uint32_t)c->place_count - 1;
}

/* ---- the tree ---- */

static bool same(const struct path_context *a, const struct path_context *b)
{
	return a->parent == b->parent && a->place == b->place && a->site == b->site;
}

/* Where it is in the table, or would be. */
static size_t index_of(const struct path_contexts *c, const struct path_context *n)
{
	uint64_t hash = ((uint64_t)n->parent << 32 | n->place) * UINT64_C(0x9e3779b97f4a7c15);
	hash = (hash ^ hash >> 29 ^ n->site) * UINT64_C(0xbf58476d1ce4e5b9);
	size_t at = (size_t)(hash >> 20) % c->index_size;
	while (c->index[at] && !same(&c->items[c->index[at]], n))
		at = (at + 1) % c->index_size;
	return at;
}

static bool grow_index(struct path_contexts *c)
{
	uint32_t *index = calloc(2 * c->index_size, sizeof *index);
	if (!index)
		return false;
	free(c->index);
	c->index = index;
	c->index_size *= 2;
	for (uint32_t i = PATH_CONTEXTS_FIRST; i < c->count; i++)
		c->index[index_of(c, &c->items[i])] = i;
	return true;
}

uint32_t path_contexts_add(struct path_contexts *c, uint32_t parent, uint32_t place, uint64_t site)
{
	const struct path_context item = {.parent = parent, .place = place, .site = site};
	size_t at = index_of(c, &item);
	if (c->index[at])
		return c->index[at];
	if (2 * c->count > c->index_size && !grow_index(c))
		return PATH_NO_CONTEXT;
	if (c->count >= PATH_NO_CONTEXT || !ARRAY_ROOM(c->items, c->count, c->room))
		return PATH_NO_CONTEXT;
	c->index[index_of(c, &item)] = (uint32_t)c->count;
	c->items[c->count] = item;
	return (uint32_t)c->count++;
}

/* ---- counts ---- */

bool path_contexts_count(struct path_contexts *c, uint32_t context, uint64_t path, uint64_t count)
{
	struct path_context *n = &c->items[context];
	if (n->taken_count && n->taken[n->taken_count - 1].path == path) {
		n->taken[n->taken_count - 1].count += count;
		return true;
	}
	if (!ARRAY_ROOM(n->taken, n->taken_count, n->taken_room))
		return false;
	n->taken[n->taken_count++] = (struct path_taken){path, count};
	return true;
}

static int by_path(const void *a, const void *b)
{
	const struct path_taken *x = a, *y = b;
	return x->path < y->path ? -1 : x->path > y->path;
}

static void join_taken(struct path_context *n)
{
	size_t kept = 0;
	if (n->taken_count)
		qsort(n->taken, n->taken_count, sizeof *n->taken, by_path);
	for (size_t k = 0; k < n->taken_count; k++)
		if (kept && n->taken[kept - 1].path == n->taken[k].path)
			n->taken[kept - 1].count += n->taken[k].count;
		else
			n->taken[kept++] = n->taken[k];
	n->taken_count = kept;
}

void path_contexts_settle(struct path_contexts *c)
{
	for (size_t i = 0; i < c->place_count; i++)
		c->places[i].first = c->places[i].last = 0;
	for (uint32_t i = PATH_CONTEXTS_FIRST; i < c->count; i++) {
		struct path_context *n = &c->items[i];
		struct path_caller *p = &c->places[n->place];
		join_taken(n);
		n->next = 0;
		if (!n->entries && !n->taken_count && !n->unknown)
			continue;
		if (p->first)
			c->items[p->last].next = i;
		else
			p->first = i;
		p->last = i;
	}
}

uint64_t path_context_count(const struct path_context *n, uint64_t path)
{
	size_t i = FIRST_NOT(k, n->taken_count, n->taken[k].path < path);
	return i < n->taken_count && n->taken[i].path == path ? n->taken[i].count : 0;
}

uint32_t path_contexts_of(const struct path_contexts *c, const char *module, uint64_t address)
{
	uint32_t place = c->count ? c->place_index[place_at(c, module, address)] : 0;
	return place ? c->places[place - 1].first : 0;
}
