/* SPDX-License-Identifier: Apache-2.0 */
/*
 * If both graphs are alike, as of a function that only has moved, a walk through both at once finds all pairs. Otherwise:
 *
 *  1. The blocks of one build are laid beside those of the other, in the order of their addresses, so that those that are
 *     alike come together. Blocks are the more alike the more of what is around them is: their neighbours are mixed into hashes,
 *     round by round. Lines count by their distance from the first and the last one of the function, as other numbers change
 *     with everything that is written above.
 *  2. Blocks that were moved are found by their hashes, if these are rare enough to be sure.
 *  3. Of what is left over, those are pairs that have neighbours in common: their code has changed.
 */
#include "compare/block_pairs.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "flow/graph.h"
#include "paths/ways.h"

#define ROUNDS 3u                   /* neighbours of neighbours of neighbours */
#define CELLS_MAX ((size_t)1 << 24) /* of the table: larger functions are matched by hashes alone */
#define LEAST 4                     /* less is not alike */
#define NEIGHBOUR 3                 /* what a neighbour counts that is a pair */
#define LEFT_OVER_MAX 200u
#define NEIGHBOURS_MAX 16u /* of a block that are looked at: switches may have thousands */

/* ---- a block ---- */

struct traits {
	uint64_t hashes[ROUNDS + 1]; /* of the block alone, with its neighbours, ... */
	uint32_t length;
	uint8_t ends;
	bool landing;
	uint32_t line, span; /* from the function's first one; of how many; UINT32_MAX: not known */
	uint32_t rest;       /* to the function's last one */
};

struct side {
	const struct block_side *in;
	struct traits *all;
	uint32_t *paired; /* the result: of this side to the other */
	uint32_t *order;  /* edges of each block: those that fall first, then jumps, ... */
	/* Edges that come to block i: back[first_back[i]] up to back[first_back[i + 1]]. */
	uint32_t *back, *first_back;
};

static const struct graph_edge *edge_of(const struct side *s, size_t i)
{
	return &s->in->graph->edges[s->order[i]];
}

/* Parts of a function may lie in another order, so edges are ordered by kind. */
static void order_edges(struct side *s)
{
	const struct graph *g = s->in->graph;
	for (size_t i = 0; i < g->edge_count; i++) {
		size_t at = i, first = g->blocks[g->edges[i].from].first;
		for (; at > first && g->edges[s->order[at - 1]].kind > g->edges[i].kind; at--)
			s->order[at] = s->order[at - 1];
		s->order[at] = (uint32_t)i;
	}
}

static void list_back(struct side *s)
{
	const struct graph *g = s->in->graph;
	for (size_t i = 0; i < g->edge_count; i++)
		s->first_back[g->edges[i].to + 2]++;
	for (size_t i = 1; i <= g->block_count; i++)
		s->first_back[i + 1] += s->first_back[i];
	/* While it is filled, what comes behind a block says where the next edge of that goes. */
	for (size_t i = 0; i < g->edge_count; i++)
		s->back[s->first_back[g->edges[i].to + 1]++] = (uint32_t)i;
}

static uint64_t hash_block(const struct side *s, uint32_t block)
{
	const struct graph_block *b = &s->in->graph->blocks[block];
	uint64_t hash = hash_number(HASH_START, b->ends);
	hash = hash_number(hash, b->landing | b->again << 1);
	hash = hash_number(hash, s->in->lengths[block]);
	for (uint32_t i = b->first; i < b->first + b->count; i++)
		hash = hash_number(hash, edge_of(s, i)->kind);
	return hash;
}

/* Mixes the hashes of the round before into those of this one. */
static void hash_round(struct side *s, unsigned round)
{
	const struct graph *g = s->in->graph;
	for (size_t i = 0; i < g->block_count; i++)
		s->all[i].hashes[round] = hash_number(s->all[i].hashes[round - 1], round);
	for (size_t i = 0; i < g->edge_count; i++) {
		const struct graph_edge *e = edge_of(s, i);
		struct traits *from = &s->all[e->from], *to = &s->all[e->to];
		uint64_t on = hash_number(HASH_START, to->hashes[round - 1]),
			 back = hash_number(HASH_START + 1, from->hashes[round - 1]);
		/* Sums: who comes first is by chance. */
		from->hashes[round] += hash_number(on, e->kind);
		to->hashes[round] += hash_number(back, e->kind);
	}
}

static void find_lines(struct side *s)
{
	const struct ways *w = s->in->lines;
	uint32_t first = UINT32_MAX, last = 0;
	for (size_t i = 0; w && i < w->known_count; i++) {
		if (w->known[i].file != w->main)
			continue;
		first = w->known[i].line < first ? w->known[i].line : first;
		last = w->known[i].line > last ? w->known[i].line : last;
	}
	for (size_t b = 0; b < s->in->graph->block_count; b++) {
		struct traits *t = &s->all[b];
		uint32_t low = UINT32_MAX, high = 0;
		for (uint32_t i = w ? w->first[b] : 0; w && i < w->first[b + 1]; i++) {
			const struct way_line *l = &w->known[w->ranks[i]];
			if (l->file != w->main)
				continue;
			low = l->line < low ? l->line : low;
			high = l->line > high ? l->line : high;
		}
		bool known = low != UINT32_MAX;
		t->line = known ? low - first : UINT32_MAX;
		t->span = known ? high - low : 0;
		t->rest = known ? last - low : 0;
	}
}

static struct err *open_side(const struct block_side *in, uint32_t *paired, struct side *s)
{
	const struct graph *g = in->graph;
	*s = (struct side){.in = in,
			   .all = calloc(g->block_count + 1, sizeof *s->all),
			   .order = calloc(g->edge_count + 1, sizeof *s->order),
			   .back = calloc(g->edge_count + 1, sizeof *s->back),
			   .first_back = calloc(g->block_count + 2, sizeof *s->first_back),
			   .paired = paired};
	if (!s->all || !s->order || !s->back || !s->first_back)
		return err_new("out of memory");
	order_edges(s);
	list_back(s);
	for (uint32_t i = 0; i < g->block_count; i++) {
		s->all[i].hashes[0] = hash_block(s, i);
		s->all[i].length = in->lengths[i];
		s->all[i].ends = g->blocks[i].ends;
		s->all[i].landing = g->blocks[i].landing;
	}
	for (unsigned round = 1; round <= ROUNDS; round++)
		hash_round(s, round);
	find_lines(s);
	return NULL;
}

static void close_side(struct side *s)
{
	free(s->all);
	free(s->order);
	free(s->back);
	free(s->first_back);
}

static void pair(struct side *old, struct side *new, uint32_t x, uint32_t y)
{
	old->paired[x] = y;
	new->paired[y] = x;
}

/* ---- graphs that are alike ---- */

static bool is_alike(const struct side *old, const struct side *new, uint32_t x, uint32_t y)
{
	return old->all[x].hashes[0] == new->all[y].hashes[0] &&
	       old->in->graph->blocks[x].count == new->in->graph->blocks[y].count;
}

/* Pairs what follows two blocks; false: that differs. `work` has blocks of the old side to be looked at. */
static bool follow(struct side *old, struct side *new, uint32_t x, uint32_t *work, size_t *count)
{
	uint32_t y = old->paired[x];
	const struct graph_block *b = &old->in->graph->blocks[x], *c = &new->in->graph->blocks[y];
	for (uint32_t i = 0; i < b->count; i++) {
		uint32_t to = edge_of(old, b->first + i)->to,
			 other = edge_of(new, c->first + i)->to;
		if (old->paired[to] == other)
			continue;
		if (old->paired[to] != BLOCK_ALONE || new->paired[other] != BLOCK_ALONE ||
		    !is_alike(old, new, to, other))
			return false;
		pair(old, new, to, other);
		work[(*count)++] = to;
	}
	return true;
}

static void forget(struct side *s)
{
	for (size_t i = 0; i < s->in->graph->block_count; i++)
		s->paired[i] = BLOCK_ALONE;
}

/* Whether all blocks that a walk from the entry comes to are alike. Then they are pairs. */
static struct err *walk_both(struct side *old, struct side *new, bool *alike)
{
	const struct graph *g = old->in->graph, *h = new->in->graph;
	uint32_t *work = calloc(g->block_count + 1, sizeof *work);
	size_t count = 0, seen = 0;
	*alike = g->block_count == h->block_count && g->edge_count == h->edge_count &&
		 is_alike(old, new, g->entry, h->entry);
	if (!work)
		return err_new("out of memory");
	if (*alike) {
		pair(old, new, g->entry, h->entry);
		work[count++] = g->entry;
	}
	while (seen < count && *alike)
		*alike = follow(old, new, work[seen++], work, &count);
	/* Blocks that nothing leads to are in no path. */
	if (!*alike) {
		forget(old);
		forget(new);
	}
	free(work);
	return NULL;
}

/* ---- those that are not ---- */

static int likeness_of_lines(const struct traits *x, const struct traits *y)
{
	if (x->line == UINT32_MAX || y->line == UINT32_MAX)
		return 0;
	bool first = x->line == y->line, last = x->rest == y->rest;
	return first || last ? 2 + first + last + (x->span == y->span) : -2;
}

static int compare_traits(const struct traits *x, const struct traits *y)
{
	uint32_t more = x->length > y->length ? x->length - y->length : y->length - x->length;
	int like = (x->ends == y->ends) + (more <= 1 + x->length / 4);
	for (unsigned round = 0; round <= ROUNDS; round++)
		like += 2 * (x->hashes[round] == y->hashes[round]);
	return like + likeness_of_lines(x, y);
}

static int likeness(const struct traits *x, const struct traits *y)
{
	int like = x->landing == y->landing ? compare_traits(x, y) : 0;
	return like >= LEAST ? like : 0;
}

/* A cell of the table: the best that can be had of the blocks before. Only the last row is kept, and the ways to all. */
enum way { WAY_NONE, WAY_SKIP_OLD, WAY_SKIP_NEW, WAY_PAIR };

static void fill_row(const struct side *old, const struct side *new, size_t x, int *row,
		     uint8_t *ways)
{
	size_t width = new->in->graph->block_count;
	int corner = 0; /* of the row before, one to the left */
	for (size_t y = 0; y < width; y++) {
		int above = row[y + 1], left = row[y], like = likeness(&old->all[x], &new->all[y]);
		int best = above >= left ? above : left;
		ways[y] = above >= left ? WAY_SKIP_OLD : WAY_SKIP_NEW;
		if (like && corner + like > best) {
			best = corner + like;
			ways[y] = WAY_PAIR;
		}
		corner = above;
		row[y + 1] = best;
	}
}

static struct err *lay_beside(struct side *old, struct side *new)
{
	size_t height = old->in->graph->block_count, width = new->in->graph->block_count;
	if (!width || height > CELLS_MAX / width)
		return NULL;
	int *row = calloc(width + 1, sizeof *row);
	uint8_t *ways = calloc(height * width + 1, sizeof *ways);
	for (size_t x = 0; x < height && row && ways; x++)
		fill_row(old, new, x, row, ways + x * width);
	for (size_t x = height, y = width; x && y && row && ways;) {
		uint8_t way = ways[(x - 1) * width + y - 1];
		if (way == WAY_PAIR)
			pair(old, new, (uint32_t)x - 1, (uint32_t)y - 1);
		x -= way == WAY_PAIR || way == WAY_SKIP_OLD;
		y -= way == WAY_PAIR || way == WAY_SKIP_NEW;
	}
	bool failed = !row || !ways;
	free(row);
	free(ways);
	return failed ? err_new("out of memory") : NULL;
}

struct hashed {
	uint64_t hash;
	uint32_t block;
	bool is_new;
};

static int by_hash(const void *a, const void *b)
{
	const struct hashed *x = a, *y = b;
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->is_new != y->is_new ? x->is_new - y->is_new
				      : (x->block > y->block) - (x->block < y->block);
}

static size_t list_alone(const struct side *s, unsigned round, bool is_new, struct hashed *out)
{
	size_t count = 0;
	for (uint32_t i = 0; i < s->in->graph->block_count; i++)
		if (s->paired[i] == BLOCK_ALONE)
			out[count++] = (struct hashed){s->all[i].hashes[round], i, is_new};
	return count;
}

/* Blocks that were moved: there is one with this hash on each side. */
static struct err *find_moved(struct side *old, struct side *new)
{
	struct hashed *all = calloc(old->in->graph->block_count + new->in->graph->block_count + 1,
				    sizeof *all);
	if (!all)
		return err_new("out of memory");
	for (unsigned round = ROUNDS; round > 0; round--) {
		size_t count = list_alone(old, round, false, all);
		count += list_alone(new, round, true, all + count);
		if (count)
			qsort(all, count, sizeof *all, by_hash);
		for (size_t i = 0, end; i < count; i = end) {
			for (end = i; end < count && all[end].hash == all[i].hash;)
				end++;
			if (end - i == 2 && all[i].is_new != all[i + 1].is_new)
				pair(old, new, all[i].block, all[i + 1].block);
		}
	}
	free(all);
	return NULL;
}

/* ---- what is left over ---- */

static uint32_t few(uint32_t count)
{
	return count < NEIGHBOURS_MAX ? count : NEIGHBOURS_MAX;
}

static bool has_edge(const struct graph *g, uint32_t from, uint32_t to)
{
	const struct graph_block *b = &g->blocks[from];
	for (uint32_t i = b->first; i < b->first + few(b->count); i++)
		if (g->edges[i].to == to)
			return true;
	return false;
}

/* How many ways on from `x` lead to the pairs of those from `y`, and how many of those that come to it. */
static int common_neighbours(const struct side *old, const struct side *new, uint32_t x, uint32_t y)
{
	const struct graph *g = old->in->graph, *h = new->in->graph;
	const struct graph_block *b = &g->blocks[x];
	int count = 0;
	for (uint32_t i = b->first; i < b->first + few(b->count); i++) {
		uint32_t to = old->paired[g->edges[i].to];
		count += to != BLOCK_ALONE && has_edge(h, y, to);
	}
	uint32_t back = old->first_back[x], backs = old->first_back[x + 1] - back;
	for (uint32_t i = back; i < back + few(backs); i++) {
		uint32_t from = old->paired[g->edges[old->back[i]].from];
		count += from != BLOCK_ALONE && has_edge(h, from, y);
	}
	return count;
}

static size_t list_left_over(const struct side *s, uint32_t *out)
{
	size_t count = 0;
	for (uint32_t i = 0; i < s->in->graph->block_count; i++)
		if (s->paired[i] == BLOCK_ALONE)
			out[count++] = i;
	return count;
}

/* The two that are most alike, and that have neighbours in common; 0: there are none. */
static int best_left_over(const struct side *old, const struct side *new, const uint32_t *xs,
			  size_t x_count, const uint32_t *ys, size_t y_count, uint32_t *x,
			  uint32_t *y)
{
	int best = 0;
	for (size_t i = 0; i < x_count; i++) {
		for (size_t k = 0; k < y_count; k++) {
			int common = common_neighbours(old, new, xs[i], ys[k]);
			int like = NEIGHBOUR * common +
				   compare_traits(&old->all[xs[i]], &new->all[ys[k]]);
			if (!common || like <= best ||
			    old->all[xs[i]].landing != new->all[ys[k]].landing)
				continue;
			best = like;
			*x = xs[i];
			*y = ys[k];
		}
	}
	return best;
}

/* Each time, the two that are most alike. If much is left over, the function is another one. */
static struct err *pair_left_over(struct side *old, struct side *new)
{
	uint32_t *xs = calloc(old->in->graph->block_count + 1, sizeof *xs),
		 *ys = calloc(new->in->graph->block_count + 1, sizeof *ys), x = 0, y = 0;
	bool more = xs && ys;
	while (more) {
		size_t x_count = list_left_over(old, xs), y_count = list_left_over(new, ys);
		more = x_count <= LEFT_OVER_MAX && y_count <= LEFT_OVER_MAX &&
		       best_left_over(old, new, xs, x_count, ys, y_count, &x, &y) >= LEAST;
		if (more)
			pair(old, new, x, y);
	}
	bool failed = !xs || !ys;
	free(xs);
	free(ys);
	return failed ? err_new("out of memory") : NULL;
}

static struct err *align(struct side *old, struct side *new)
{
	struct err *e = lay_beside(old, new);
	uint32_t x = old->in->graph->entry, y = new->in->graph->entry;
	if (!e && old->paired[x] == BLOCK_ALONE && new->paired[y] == BLOCK_ALONE)
		pair(old, new, x, y);
	if (!e)
		e = find_moved(old, new);
	return e ? e : pair_left_over(old, new);
}

/* ---- both ---- */

static struct err *begin(const struct block_side *old, const struct block_side *new,
			 struct block_pairs *out)
{
	size_t x = old->graph->block_count, y = new->graph->block_count;
	*out = (struct block_pairs){.to_new = malloc((x + 1) * sizeof *out->to_new),
				    .to_old = malloc((y + 1) * sizeof *out->to_old)};
	if (!out->to_new || !out->to_old)
		return err_new("out of memory");
	memset(out->to_new, 0xff, (x + 1) * sizeof *out->to_new);
	memset(out->to_old, 0xff, (y + 1) * sizeof *out->to_old);
	return NULL;
}

static void count(const struct block_side *old, struct block_pairs *out)
{
	for (size_t i = 0; i < old->graph->block_count; i++)
		out->count += out->to_new[i] != BLOCK_ALONE;
}

struct err *block_pairs_find(const struct block_side *old, const struct block_side *new,
			     struct block_pairs *out)
{
	struct side x = {0}, y = {0};
	struct err *e = begin(old, new, out);
	if (!e)
		e = open_side(old, out->to_new, &x);
	if (!e)
		e = open_side(new, out->to_old, &y);
	if (!e)
		e = walk_both(&x, &y, &out->alike);
	if (!e && !out->alike)
		e = align(&x, &y);
	if (!e)
		count(old, out);
	close_side(&x);
	close_side(&y);
	if (e)
		block_pairs_free(out);
	return e;
}

struct err *block_pairs_by_address(const struct block_side *old, const struct block_side *new,
				   struct block_pairs *out)
{
	struct err *e = begin(old, new, out);
	if (e) {
		block_pairs_free(out);
		return e;
	}
	for (uint32_t i = 0; i < old->graph->block_count; i++) {
		uint32_t other = graph_find(new->graph, old->graph->blocks[i].start);
		if (other == GRAPH_NONE ||
		    new->graph->blocks[other].start != old->graph->blocks[i].start)
			continue;
		out->to_new[i] = other;
		out->to_old[other] = i;
	}
	count(old, out);
	out->alike = out->count == old->graph->block_count &&
		     out->count == new->graph->block_count &&
		     old->graph->edge_count == new->graph->edge_count;
	return NULL;
}

void block_pairs_free(struct block_pairs *p)
{
	free(p->to_new);
	free(p->to_old);
	*p = (struct block_pairs){0};
}

/* ---- shapes ---- */

uint64_t block_shape(const struct block_side *side)
{
	struct side s = {0};
	uint64_t hash = 0;
	struct err *e = open_side(side, NULL, &s);
	for (size_t i = 0; !e && i < side->graph->block_count; i++)
		hash += hash_number(HASH_START, s.all[i].hashes[ROUNDS]);
	hash = hash_number(hash, side->graph->block_count);
	close_side(&s);
	err_free(e);
	return hash;
}
