/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/path_diff.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "compare/block_pairs.h"
#include "compare/path_pairs.h"
#include "paths/numbering.h"
#include "paths/result.h"
#include "paths/ways.h"

/* ---- the way of a path, in terms of both builds ---- */

enum { END_OUT = 1, END_ALONE, END_PAIRED }; /* how a path goes on */

struct way {           /* of a path */
	uint64_t a, b; /* two hashes: no two ways have the same ones by chance */
	bool is_new;
	uint32_t path;
	struct path_diff_side side;
};

static void mix(struct way *w, uint64_t value)
{
	w->a = hash_number(w->a, value);
	w->b = hash_number(w->b, ~value);
}

/* What a block is called in both builds; BLOCK_ALONE: only this one has it. */
static uint32_t common(const struct block_pairs *pairs, bool is_new, uint32_t block)
{
	if (is_new)
		return pairs->to_old[block] == BLOCK_ALONE ? BLOCK_ALONE : block;
	return pairs->to_new[block];
}

static struct way make_way(const struct block_pairs *pairs, bool is_new,
			   const struct numbering_path *path, const struct graph *g,
			   uint64_t number)
{
	struct way w = {.a = HASH_START, .b = ~HASH_START, .is_new = is_new};
	size_t known = 0;
	for (size_t i = 0; i < path->count && pairs; i++) {
		uint32_t block = common(pairs, is_new, path->blocks[i]);
		if (block == BLOCK_ALONE)
			continue;
		mix(&w, block);
		known++;
	}
	if (!known) { /* no other path is the same */
		mix(&w, UINT64_MAX - is_new);
		mix(&w, number);
		return w;
	}
	uint32_t next = path->edge == NUMBERING_OUT
				? BLOCK_ALONE
				: common(pairs, is_new, g->edges[path->edge].to);
	mix(&w, path->edge == NUMBERING_OUT ? END_OUT
		: next == BLOCK_ALONE       ? END_ALONE
					    : END_PAIRED);
	mix(&w, next);
	return w;
}

static struct err *add_ways(const struct ranked_function *f, const struct block_pairs *pairs,
			    bool is_new, struct way *ways, size_t *count)
{
	struct numbering_path path = {0};
	struct err *e = NULL;
	for (uint32_t i = 0; i < f->path_count && !e; i++) {
		const struct ranked_path *p = &f->paths[i];
		e = numbering_decode(&f->function->numbering, p->number, &path);
		if (e)
			break;
		ways[*count] = make_way(pairs, is_new, &path, &f->function->graph, p->number);
		ways[*count].path = i;
		ways[(*count)++].side = (struct path_diff_side){p->count, ranked_path_cost(p), 1,
								i};
	}
	numbering_path_free(&path);
	return e;
}

static int compare(uint64_t x, uint64_t y)
{
	return (x > y) - (x < y);
}

static int by_way(const void *a, const void *b)
{
	const struct way *x = a, *y = b;
	int order = compare(x->a, y->a);
	if (!order)
		order = compare(x->b, y->b);
	if (!order)
		order = x->is_new - y->is_new;
	return order ? order : compare(x->path, y->path);
}

/* ---- rows ---- */

static uint64_t difference(uint64_t x, uint64_t y)
{
	return x > y ? x - y : y - x;
}

static int by_difference(const void *a, const void *b)
{
	const struct path_diff_row *x = a, *y = b;
	bool same = x->old.count == x->new.count, other_same = y->old.count == y->new.count;
	int order = same - other_same;
	if (!order)
		order = compare(difference(y->old.cost, y->new.cost),
				difference(x->old.cost, x->new.cost));
	if (!order)
		order = compare(y->old.cost + y->new.cost, x->old.cost + x->new.cost);
	if (!order)
		order = compare(x->new.path, y->new.path);
	return order ? order : compare(x->old.path, y->old.path);
}

/* Paths of a function come with the costliest first. */
static void add_side(struct path_diff_side *to, const struct path_diff_side *side)
{
	if (!to->paths)
		to->path = side->path;
	to->count += side->count;
	to->cost += side->cost;
	to->paths++;
}

static void make_rows(struct path_diff_function *f, const struct way *ways, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!i || ways[i].a != ways[i - 1].a || ways[i].b != ways[i - 1].b)
			f->count++;
		struct path_diff_row *row = &f->rows[f->count - 1];
		add_side(ways[i].is_new ? &row->new : &row->old, &ways[i].side);
	}
	if (f->count)
		qsort(f->rows, f->count, sizeof *f->rows, by_difference);
	for (size_t i = 0; i < f->count; i++) {
		const struct path_diff_row *row = &f->rows[i];
		f->fresh += !row->old.count;
		f->gone += !row->new.count;
		f->more += row->old.count && row->new.count > row->old.count;
		f->fewer += row->new.count && row->new.count < row->old.count;
	}
}

static struct err *compare_paths(struct path_diff_function *f, const struct block_pairs *pairs)
{
	size_t room = (f->old ? f->old->path_count : 0) + (f->new ? f->new->path_count : 0),
	       count = 0;
	struct way *ways = calloc(room + 1, sizeof *ways);
	f->rows = calloc(room + 1, sizeof *f->rows);
	struct err *e = ways && f->rows ? NULL : err_new("out of memory");
	if (!e && f->old)
		e = add_ways(f->old, pairs, false, ways, &count);
	if (!e && f->new)
		e = add_ways(f->new, pairs, true, ways, &count);
	if (!e && count) {
		qsort(ways, count, sizeof *ways, by_way);
		make_rows(f, ways, count);
	}
	free(ways);
	return e;
}

/* ---- a function ---- */

static bool is_one_build(const struct path_function *x, const struct path_function *y)
{
	return x->build_id && *x->build_id && y->build_id && !strcmp(x->build_id, y->build_id) &&
	       x->address == y->address;
}

/* Lines are looked for only if they are needed. */
static struct err *pair_blocks(const struct ranked_function *old, const struct ranked_function *new,
			       struct block_pairs *out)
{
	const struct path_function *f = old->function, *g = new->function;
	struct block_side x = {&f->graph, old->lengths, NULL}, y = {&g->graph, new->lengths, NULL};
	struct ways old_lines = {0}, new_lines = {0};
	if (is_one_build(f, g))
		return block_pairs_by_address(&x, &y, out);
	struct err *e = block_pairs_find(&x, &y, out);
	if (e || out->alike || !old->file || !new->file)
		return e;
	block_pairs_free(out);
	e = ways_open(&f->graph, old->file, WAY_OWN, &old_lines);
	if (!e)
		e = ways_open(&g->graph, new->file, WAY_OWN, &new_lines);
	x.lines = old_lines.known_count ? &old_lines : NULL;
	y.lines = new_lines.known_count ? &new_lines : NULL;
	if (!e)
		e = block_pairs_find(&x, &y, out);
	ways_close(&old_lines);
	ways_close(&new_lines);
	return e;
}

static bool is_refused(const struct ranked_function *f)
{
	return f && f->function->state != PATH_EXACT;
}

static struct err *compare_function(struct path_diff_function *f)
{
	struct block_pairs pairs = {0};
	f->counted = !is_refused(f->old) && !is_refused(f->new);
	f->changed = is_refused(f->old) != is_refused(f->new);
	if (!f->counted)
		return NULL;
	f->old_cost = f->old ? f->old->instructions : 0;
	f->new_cost = f->new ? f->new->instructions : 0;
	bool both = f->old && f->new;
	struct err *e = both ? pair_blocks(f->old, f->new, &pairs) : NULL;
	if (e)
		return e;
	f->other_code = both && !pairs.alike;
	e = compare_paths(f, both ? &pairs : NULL);
	block_pairs_free(&pairs);
	uint64_t calls = f->old ? f->old->function->entries : 0,
		 calls_now = f->new ? f->new->function->entries : 0;
	f->changed = f->fresh || f->gone || f->more || f->fewer || calls != calls_now ||
		     f->old_cost != f->new_cost;
	return e;
}

/* ---- all ---- */

static const struct ranked_function *either(const struct path_diff_function *f)
{
	return f->new ? f->new : f->old;
}

static int changed_first(const void *a, const void *b)
{
	const struct path_diff_function *x = a, *y = b;
	int order = y->changed - x->changed;
	if (!order)
		order = y->counted - x->counted;
	if (!order)
		order = compare(difference(y->old_cost, y->new_cost),
				difference(x->old_cost, x->new_cost));
	if (!order)
		order = compare(y->fresh + y->gone + y->more + y->fewer,
				x->fresh + x->gone + x->more + x->fewer);
	if (!order)
		order = compare(y->old_cost + y->new_cost, x->old_cost + x->new_cost);
	if (!order)
		order = strcmp(either(x)->name, either(y)->name);
	return order ? order : compare(either(x)->function->address, either(y)->function->address);
}

static bool is_too_slow(uint64_t old, uint64_t new, double above)
{
	return above >= 0 && (double)new > (double)old *(1 + above);
}

static void judge(struct path_diff *d)
{
	for (size_t i = 0; i < d->count; i++) {
		struct path_diff_function *f = &d->functions[i];
		d->changed += f->changed;
		d->old_cost += f->old_cost;
		d->new_cost += f->new_cost;
		f->too_slow = !d->options.fail_on_total && f->old && f->old_cost &&
			      is_too_slow(f->old_cost, f->new_cost, d->options.fail_above);
		d->too_slow |= f->too_slow;
	}
	d->total_too_slow = is_too_slow(d->old_cost, d->new_cost, d->options.fail_above);
	d->too_slow |= d->total_too_slow;
}

struct err *path_diff_make(const struct ranking *old, const struct ranking *new,
			   const struct path_diff_options *options, struct path_diff *out)
{
	struct path_pair *pairs = NULL;
	size_t count = 0;
	*out = (struct path_diff){.options = *options, .old = old, .new = new};
	struct err *e = path_pairs_find(old, new, &pairs, &count);
	if (!e) {
		out->functions = calloc(count + 1, sizeof *out->functions);
		e = out->functions ? NULL : err_new("out of memory");
	}
	for (size_t i = 0; i < count && !e; i++) {
		struct path_diff_function *f = &out->functions[out->count++];
		f->old = pairs[i].old == PATH_FUNCTION_ALONE ? NULL : &old->functions[pairs[i].old];
		f->new = pairs[i].new == PATH_FUNCTION_ALONE ? NULL : &new->functions[pairs[i].new];
		e = compare_function(f);
	}
	free(pairs);
	if (e) {
		path_diff_free(out);
		return e;
	}
	if (out->count)
		qsort(out->functions, out->count, sizeof *out->functions, changed_first);
	judge(out);
	return NULL;
}

void path_diff_free(struct path_diff *d)
{
	for (size_t i = 0; i < d->count; i++)
		free(d->functions[i].rows);
	free(d->functions);
	*d = (struct path_diff){0};
}

const char *path_diff_verdict(const struct path_diff_row *row)
{
	if (!row->old.count || !row->new.count)
		return row->old.count ? "gone" : "new";
	return row->new.count > row->old.count   ? "more"
	       : row->new.count < row->old.count ? "fewer"
						 : "same";
}

const char *path_diff_function_verdict(const struct path_diff_function *f)
{
	if (!f->old || !f->new)
		return f->old ? "gone" : "new";
	if (is_refused(f->old) != is_refused(f->new))
		return is_refused(f->old) ? "refused before" : "refused now";
	return f->changed ? "changed" : "same";
}
