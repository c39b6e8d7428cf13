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
	c->count = PATH_CONTEXTS_FIRST;
	if (c->items && c->index)
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
	*c = (struct path_contexts){0};
}

/* ---- functions ---- */

uint32_t path_contexts_place(struct path_contexts *c, const char *name, const char *module,
			     uint64_t address)
{
	for (size_t i = c->place_count; i-- > 0;)
		if (c->places[i].address == address && !strcmp(c->places[i].module, module))
			return (uint32_t)i;
	if (!ARRAY_ROOM(c->places, c->place_count, c->place_room))
		return PATH_NO_CONTEXT;
	struct path_caller place = {strdup(name), strdup(module), address};
	if (!place.name || !place.module) {
		free(place.name);
		free(place.module);
		return PATH_NO_CONTEXT;
	}
	c->places[c->place_count] = place;
	return (uint32_t)c->place_count++;
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

void path_contexts_settle(struct path_contexts *c)
{
	for (size_t i = 0; i < c->count; i++) {
		struct path_context *n = &c->items[i];
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
}

uint64_t path_context_count(const struct path_context *n, uint64_t path)
{
	size_t i = FIRST_NOT(k, n->taken_count, n->taken[k].path < path);
	return i < n->taken_count && n->taken[i].path == path ? n->taken[i].count : 0;
}

uint32_t path_contexts_next(const struct path_contexts *c, const char *module, uint64_t address,
			    uint32_t from)
{
	from = from < PATH_CONTEXTS_FIRST ? PATH_CONTEXTS_FIRST : from;
	for (size_t i = from; i < c->count; i++) {
		const struct path_context *n = &c->items[i];
		const struct path_caller *p = &c->places[n->place];
		if ((n->entries || n->taken_count || n->unknown) && p->address == address &&
		    !strcmp(p->module, module))
			return (uint32_t)i;
	}
	return PATH_NO_CONTEXT;
}
