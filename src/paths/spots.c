/* SPDX-License-Identifier: Apache-2.0 */
#include "paths/spots.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "base/sum.h"
#include "paths/result.h"

#define TABLE_LEAST 64u

/* ---- while the program runs ---- */

static bool is_same(const struct spot_total *t, const struct path_spot *spot, uint32_t metric)
{
	return t->metric == metric && t->spot.first == spot->first &&
	       t->spot.count == spot->count && t->spot.block == spot->block;
}

static size_t hash(const struct path_spot *spot, uint32_t metric)
{
	uint64_t h = spot->first * 0x9e3779b97f4a7c15u + spot->count;
	h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9u + spot->block;
	h = (h ^ h >> 32) * 0x94d049bb133111ebu + metric;
	return (size_t)(h ^ h >> 31);
}

/* Where the index of a spot is in the table, or would be. */
static uint32_t *find(const struct path_spots *s, const struct path_spot *spot, uint32_t metric)
{
	size_t at = hash(spot, metric) & (s->table_size - 1);
	while (s->table[at] && !is_same(&s->totals[s->table[at] - 1], spot, metric))
		at = (at + 1) & (s->table_size - 1);
	return &s->table[at];
}

static bool grow(struct path_spots *s)
{
	size_t size = s->table_size ? 2 * s->table_size : TABLE_LEAST;
	uint32_t *table = calloc(size, sizeof *table);
	if (!table)
		return false;
	free(s->table);
	s->table = table;
	s->table_size = size;
	for (size_t i = 0; i < s->count; i++)
		*find(s, &s->totals[i].spot, s->totals[i].metric) = (uint32_t)i + 1;
	return true;
}

bool path_spots_add(struct path_spots *s, const struct path_spot *spot, uint32_t metric,
		    uint64_t value)
{
	if (2 * s->count >= s->table_size && !grow(s))
		return false;
	uint32_t *slot = find(s, spot, metric);
	if (!*slot) {
		if (!ARRAY_ROOM_BELOW(s->totals, s->count, s->room, UINT32_MAX - 1))
			return false;
		s->totals[s->count++] = (struct spot_total){.spot = *spot, .metric = metric};
		*slot = (uint32_t)s->count;
	}
	struct spot_total *t = &s->totals[*slot - 1];
	t->samples++;
	t->value = sum_add(t->value, value);
	return true;
}

void path_spots_free(struct path_spots *s)
{
	free(s->totals);
	free(s->table);
	*s = (struct path_spots){0};
}

/* ---- when the counts are known ---- */

struct giver {
	struct path_function *f;
	uint64_t *taken; /* numbers of the paths that were taken, ascending */
	size_t taken_count;
	/* By block, the taken paths that come by it: passing[first[block]] up to that of the next one. NULL: not made yet. */
	size_t *first;
	uint64_t *passing;
};

static bool list_taken(struct giver *g)
{
	const struct path_function *f = g->f;
	size_t count = 0;
	for (uint64_t i = 0; i < f->numbering.path_count; i++)
		count += f->counts[i] > 0;
	g->taken = calloc(count + 1, sizeof *g->taken);
	for (uint64_t i = 0; i < f->numbering.path_count && g->taken; i++)
		if (f->counts[i])
			g->taken[g->taken_count++] = i;
	return g->taken;
}

/* Calls for each block of each path that was taken. */
static struct err *for_passing(const struct giver *g,
			       void (*put)(void *context, uint32_t block, uint64_t number),
			       void *context)
{
	struct numbering_path path = {0};
	struct err *e = NULL;
	for (size_t i = 0; i < g->taken_count && !e; i++) {
		e = numbering_decode(&g->f->numbering, g->taken[i], &path);
		for (size_t k = 0; k < path.count && !e; k++)
			put(context, path.blocks[k], g->taken[i]);
	}
	numbering_path_free(&path);
	return e;
}

static void count_block(void *context, uint32_t block, uint64_t number)
{
	struct giver *g = context;
	(void)number;
	g->first[block + 1]++;
}

struct filling {
	struct giver *g;
	size_t *next; /* by block */
};

static void fill_block(void *context, uint32_t block, uint64_t number)
{
	struct filling *f = context;
	f->g->passing[f->next[block]++] = number;
}

static struct err *list_passing(struct giver *g)
{
	size_t blocks = g->f->graph.block_count;
	struct filling filling = {g, calloc(blocks + 1, sizeof *filling.next)};
	g->first = calloc(blocks + 2, sizeof *g->first);
	struct err *e = g->first && filling.next ? for_passing(g, count_block, g)
						 : err_new("out of memory");
	for (size_t b = 0; b < blocks && !e; b++) {
		g->first[b + 1] += g->first[b];
		filling.next[b] = g->first[b];
	}
	if (!e)
		g->passing = calloc(g->first[blocks] + 1, sizeof *g->passing);
	if (!e)
		e = g->passing ? for_passing(g, fill_block, &filling) : err_new("out of memory");
	free(filling.next);
	return e;
}

/* The taken paths that fit a spot. */
static struct err *find_fitting(struct giver *g, const struct path_spot *spot,
				const uint64_t **paths, size_t *count)
{
	struct err *e = NULL;
	*count = 0;
	if (spot->count) {
		size_t from = FIRST_NOT(i, g->taken_count, g->taken[i] < spot->first);
		size_t end = FIRST_NOT(i, g->taken_count,
				       g->taken[i] < spot->first ||
					       g->taken[i] - spot->first < spot->count);
		*paths = g->taken + from;
		*count = end - from;
	} else if (spot->block < g->f->graph.block_count) {
		if (!g->first)
			e = list_passing(g);
		if (e)
			return e;
		*paths = g->passing + g->first[spot->block];
		*count = g->first[spot->block + 1] - g->first[spot->block];
	}
	return e;
}

/* What of a value comes up to this part of the whole: these add up to it. */
static uint64_t part(uint64_t value, uint64_t of, uint64_t whole)
{
	return (uint64_t)((unsigned __int128)value * of / whole);
}

static void give(struct giver *g, const struct spot_total *t, const uint64_t *paths, size_t count)
{
	struct path_metered *m = &g->f->metered[t->metric];
	uint64_t whole = 0, before = 0;
	for (size_t i = 0; i < count; i++)
		whole = sum_add(whole, g->f->counts[paths[i]]);
	for (size_t i = 0; i < count; i++) {
		struct path_value *v = &m->paths[paths[i]];
		uint64_t end = sum_add(before, g->f->counts[paths[i]]);
		uint64_t value = part(t->value, end, whole) - part(t->value, before, whole);
		v->value = sum_add(v->value, value);
		v->sure = sum_add(v->sure, count == 1 ? value : 0);
		before = end;
	}
	m->samples += t->samples;
	m->placed += count ? t->samples : 0;
	m->sure += count == 1 ? t->samples : 0;
	m->value = sum_add(m->value, t->value);
}

static bool have_metered(const struct path_spots *s, uint32_t metric_count, struct path_function *f)
{
	f->metered = calloc(metric_count + 1, sizeof *f->metered);
	bool good = f->metered;
	for (size_t i = 0; i < s->count && good; i++) {
		struct path_metered *m = &f->metered[s->totals[i].metric];
		if (!m->paths)
			m->paths = calloc(f->numbering.path_count + 1, sizeof *m->paths);
		good = m->paths;
	}
	f->metered_count = f->metered ? metric_count : 0;
	return good;
}

struct err *path_spots_give(const struct path_spots *s, uint32_t metric_count,
			    struct path_function *f)
{
	struct giver g = {.f = f};
	struct err *e = NULL;
	if (!s->count)
		return NULL;
	if (!have_metered(s, metric_count, f) || !list_taken(&g))
		e = err_new("out of memory");
	for (size_t i = 0; i < s->count && !e; i++) {
		const uint64_t *paths = NULL;
		size_t count;
		e = find_fitting(&g, &s->totals[i].spot, &paths, &count);
		if (!e)
			give(&g, &s->totals[i], paths, count);
	}
	free(g.taken);
	free(g.first);
	free(g.passing);
	return e;
}
