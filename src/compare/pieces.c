/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pieces of a function in one build are a list. The lists of two builds are laid beside each other as
 * texts are by diff: of all ways to pair pieces without crossing, the one with the largest sum of scores
 * is taken. With more than two builds, those of the last run come first, and each further one is laid
 * beside what the ones before gave.
 */
#include "compare/pieces.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/err.h"
#include "base/hash.h"

#define TABLE_MAX (1u << 18) /* pairs that are looked at; pieces of more are paired as they come */

/* ---- adding ---- */

static uint64_t key_of(const struct piece *p)
{
	uint64_t key = hash_number(hash_number(HASH_START, p->function), p->module);
	return hash_number(hash_number(key, p->file), p->position);
}

uint32_t pieces_find(const struct pieces *l, const struct piece *piece)
{
	return lookup_find(&l->by_place, key_of(piece));
}

struct err *pieces_add(struct pieces *l, const struct piece *piece, uint32_t *number)
{
	*number = pieces_find(l, piece);
	if (*number == LOOKUP_NONE) {
		if (!ARRAY_ROOM(l->all, l->count, l->room) ||
		    !lookup_put(&l->by_place, key_of(piece), (uint32_t)l->count))
			return err_new("out of memory");
		*number = (uint32_t)l->count++;
		l->all[*number] = *piece;
		l->all[*number].same = *number;
	}
	if (l->all[*number].last_run < piece->last_run)
		l->all[*number].last_run = piece->last_run;
	return NULL;
}

struct err *pieces_contain(struct pieces *l, uint32_t number, uint64_t what)
{
	if (!ARRAY_ROOM(l->contents, l->content_count, l->content_room))
		return err_new("out of memory");
	l->contents[l->content_count++] = (struct piece_content){number, what};
	return NULL;
}

/* ---- how alike two are ---- */

static int compare_contents(const void *a, const void *b)
{
	const struct piece_content *x = a, *y = b;
	if (x->piece != y->piece)
		return x->piece < y->piece ? -1 : 1;
	return (x->what > y->what) - (x->what < y->what);
}

/* Puts what a piece contains together, each thing once. */
static void order_contents(struct pieces *l)
{
	size_t kept = 0;
	if (l->content_count)
		qsort(l->contents, l->content_count, sizeof *l->contents, compare_contents);
	for (size_t i = 0; i < l->content_count; i++)
		if (!kept || compare_contents(&l->contents[kept - 1], &l->contents[i]) != 0)
			l->contents[kept++] = l->contents[i];
	l->content_count = kept;
	for (size_t i = 0; i < kept; i++) {
		struct piece *piece = &l->all[l->contents[i].piece];
		if (!piece->content++)
			piece->first = i;
	}
}

/* Of what either contains the part that both do. */
static uint32_t compare_content(const struct pieces *l, const struct piece *a,
				const struct piece *b, uint32_t all)
{
	size_t i = 0, j = 0, both = 0;
	while (i < a->content && j < b->content) {
		uint64_t x = l->contents[a->first + i].what, y = l->contents[b->first + j].what;
		both += x == y;
		i += x <= y;
		j += y <= x;
	}
	size_t either = a->content + b->content - both;
	return either ? (uint32_t)(all * both / either) : 0;
}

static bool has_same(const struct piece *a, const struct piece *b, int trait)
{
	return a->traits[trait] == b->traits[trait] && a->traits[trait] != PIECE_UNKNOWN;
}

static uint32_t score(const struct pieces *l, const struct piece_weights *w, uint32_t first,
		      uint32_t second)
{
	const struct piece *a = &l->all[first], *b = &l->all[second];
	uint32_t sum = compare_content(l, a, b, w->content);
	for (int i = 0; i < PIECE_TRAITS; i++)
		if (has_same(a, b, i) && (i != PIECE_REST || has_same(a, b, PIECE_BEFORE) ||
					  has_same(a, b, PIECE_AFTER)))
			sum += w->traits[i];
	return sum >= w->least ? sum : 0;
}

/* ---- lists beside each other ---- */

struct list {
	uint32_t *pieces;
	size_t count;
};

/* An order of lists in which it does not matter which one is older. */
static int compare_lists(const struct pieces *l, const struct list *a, const struct list *b)
{
	if (a->count != b->count)
		return a->count < b->count ? -1 : 1;
	for (size_t i = 0; i < a->count; i++) {
		const struct piece *x = &l->all[a->pieces[i]], *y = &l->all[b->pieces[i]];
		if (x->position != y->position)
			return x->position < y->position ? -1 : 1;
	}
	return 0;
}

struct table {
	struct pieces *l;
	const struct piece_weights *w;
	const struct list *a, *b;
	uint32_t *best; /* of what is left from (i, j) on: the largest sum of scores */
};

static uint32_t *best_at(const struct table *t, size_t i, size_t j)
{
	return &t->best[i * (t->b->count + 1) + j];
}

static void fill(const struct table *t)
{
	for (size_t i = t->a->count; i-- > 0;)
		for (size_t j = t->b->count; j-- > 0;) {
			uint32_t pair = score(t->l, t->w, t->a->pieces[i], t->b->pieces[j]);
			uint32_t best = pair ? pair + *best_at(t, i + 1, j + 1) : 0;
			if (best < *best_at(t, i + 1, j))
				best = *best_at(t, i + 1, j);
			if (best < *best_at(t, i, j + 1))
				best = *best_at(t, i, j + 1);
			*best_at(t, i, j) = best;
		}
}

/* Joins pairs, and puts both lists into one, in order. `known` is the one whose pieces stand for others. */
static void join(const struct table *t, const struct list *known, struct list *out)
{
	const struct list *a = t->a, *b = t->b;
	size_t i = 0, j = 0;
	while (i < a->count && j < b->count) {
		uint32_t here = *best_at(t, i, j),
			 pair = score(t->l, t->w, a->pieces[i], b->pieces[j]);
		if (pair && here == pair + *best_at(t, i + 1, j + 1)) {
			uint32_t kept = known == a ? a->pieces[i] : b->pieces[j],
				 joined = known == a ? b->pieces[j] : a->pieces[i];
			t->l->all[joined].same = t->l->all[kept].same;
			out->pieces[out->count++] = kept;
			i++;
			j++;
		} else if (here == *best_at(t, i + 1, j)) {
			out->pieces[out->count++] = a->pieces[i++];
		} else {
			out->pieces[out->count++] = b->pieces[j++];
		}
	}
	while (i < a->count)
		out->pieces[out->count++] = a->pieces[i++];
	while (j < b->count)
		out->pieces[out->count++] = b->pieces[j++];
}

/* Whether both are written in the same way. */
static bool are_equal(const struct pieces *l, const struct list *a, const struct list *b)
{
	for (size_t i = 0; i < a->count && i < b->count; i++) {
		const struct piece *x = &l->all[a->pieces[i]], *y = &l->all[b->pieces[i]];
		if (x->file != y->file || x->traits[PIECE_OFFSET] != y->traits[PIECE_OFFSET] ||
		    x->traits[PIECE_OFFSET] == PIECE_UNKNOWN)
			return false;
	}
	return a->count == b->count;
}

/* By file and offset: the order of a list, if nothing was moved. */
static int compare_offsets(const struct piece *a, const struct piece *b)
{
	uint64_t x = a->traits[PIECE_OFFSET], y = b->traits[PIECE_OFFSET];
	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	return (x > y) - (x < y);
}

/* Joins those with the same offset: where both are equal, or too many for a table. */
static void join_by_offset(struct pieces *l, const struct list *known, const struct list *more,
			   struct list *out)
{
	size_t i = 0, j = 0;
	while (i < known->count && j < more->count) {
		const struct piece *a = &l->all[known->pieces[i]];
		struct piece *b = &l->all[more->pieces[j]];
		int order = compare_offsets(a, b);
		if (!order)
			b->same = a->same;
		out->pieces[out->count++] = order <= 0 ? known->pieces[i] : more->pieces[j];
		i += order <= 0;
		j += order >= 0;
	}
	while (i < known->count)
		out->pieces[out->count++] = known->pieces[i++];
	while (j < more->count)
		out->pieces[out->count++] = more->pieces[j++];
}

/* Adds a further build to what is known of a function. */
static struct err *add_list(struct pieces *l, const struct piece_weights *w, struct list *known,
			    const struct list *more)
{
	size_t size = (known->count + 1) * (more->count + 1);
	struct list out = {calloc(known->count + more->count + 1, sizeof *out.pieces), 0};
	bool turned = compare_lists(l, known, more) > 0;
	struct table t = {.l = l, .w = w, .a = turned ? more : known, .b = turned ? known : more};
	bool table = size <= TABLE_MAX && !are_equal(l, known, more);
	t.best = table ? calloc(size, sizeof *t.best) : NULL;
	bool good = out.pieces && (t.best || !table);
	if (good && t.best) {
		fill(&t);
		join(&t, known, &out);
	} else if (good) {
		join_by_offset(l, known, more, &out);
	}
	free(t.best);
	if (!good) {
		free(out.pieces);
		return err_new("out of memory");
	}
	free(known->pieces);
	*known = out;
	return NULL;
}

/* ---- all functions ---- */

/* By function; the builds of the last run first; then as they are written. */
static int compare_pieces(const void *a, const void *b, void *context)
{
	const struct pieces *l = context;
	const struct piece *x = &l->all[*(const uint32_t *)a], *y = &l->all[*(const uint32_t *)b];
	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	if (x->last_run != y->last_run)
		return x->last_run > y->last_run ? -1 : 1;
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return (x->position > y->position) - (x->position < y->position);
}

/* Distances between the pieces of one build. */
static void find_distances(struct pieces *l, const uint32_t *order, size_t count)
{
	for (size_t i = 0, last = 0; i < count; i++) {
		struct piece *p = &l->all[order[i]];
		for (last = last < i ? i : last;
		     last + 1 < count && l->all[order[last + 1]].file == p->file;)
			last++;
		bool first = !i || l->all[order[i - 1]].file != p->file;
		p->traits[PIECE_BEFORE] = first ? PIECE_UNKNOWN
						: p->position - l->all[order[i - 1]].position;
		p->traits[PIECE_AFTER] = i == last ? PIECE_UNKNOWN
						   : l->all[order[i + 1]].position - p->position;
		p->traits[PIECE_REST] = l->all[order[last]].position - p->position;
	}
}

/* Pieces of one function, in order. */
static struct err *match_function(struct pieces *l, const struct piece_weights *w, uint32_t *order,
				  size_t count)
{
	struct list known = {0};
	struct err *e = NULL;
	for (size_t i = 0, end; i < count && !e; i = end) {
		for (end = i + 1;
		     end < count && l->all[order[end]].module == l->all[order[i]].module; end++)
			;
		find_distances(l, order + i, end - i);
		e = add_list(l, w, &known, &(struct list){order + i, end - i});
	}
	free(known.pieces);
	return e;
}

/* A build has the last run of any of its pieces. */
static struct err *spread_last_runs(struct pieces *l)
{
	struct lookup last = {0};
	bool good = true;
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < l->count && good; i++) {
			struct piece *piece = &l->all[i];
			uint64_t key = hash_number(HASH_START, piece->module);
			uint32_t known = lookup_find(&last, key);
			if (pass)
				piece->last_run = known;
			else if (known == LOOKUP_NONE || known < piece->last_run)
				good = lookup_put(&last, key, piece->last_run);
		}
	lookup_free(&last);
	return good ? NULL : err_new("out of memory");
}

struct err *pieces_match(struct pieces *l, const struct piece_weights *w)
{
	uint32_t *order = calloc(l->count + 1, sizeof *order);
	struct err *e = order ? spread_last_runs(l) : err_new("out of memory");
	if (!e)
		order_contents(l);
	for (uint32_t i = 0; i < l->count && order; i++)
		order[i] = i;
	if (!e && l->count)
		qsort_r(order, l->count, sizeof *order, compare_pieces, l);
	for (size_t i = 0, end; i < l->count && !e; i = end) {
		for (end = i + 1;
		     end < l->count && l->all[order[end]].function == l->all[order[i]].function;
		     end++)
			;
		e = match_function(l, w, order + i, end - i);
	}
	free(order);
	return e;
}

void pieces_free(struct pieces *l)
{
	free(l->all);
	free(l->contents);
	lookup_free(&l->by_place);
	*l = (struct pieces){0};
}
