/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two nests become one.
 *
 *     contexts (inlining)          loops (control flow)         scopes
 *
 *     sum                          L1                           sum
 *       find, called at 12           L2                           loop at 11        L1
 *         less, called at 80                                        find, from 12
 *                                                                     loop at 79    L2
 *                                                                       less, from 80
 *
 * Where does a loop belong? Source code does not overlap: a loop that is
 * written in `find` has no statement that is not of `find`, or of what was
 * inlined into it. So it belongs to the innermost context that all of its
 * instructions have in common. Its own jump back is not enough to tell, because
 * the test may be inlined code itself (`less`).
 *
 * Instructions move: a few that were scheduled into a loop from elsewhere must
 * not pull it out of the function in which it is written. They are ignored,
 * unless they decide whether the loop goes on, and stay where they are written: names
 * and lines are right before loops are.
 *
 * From the line map alone contexts have no nest (`flat`). There the guess is that
 * a loop is written where its jump back is; statements of a context around it
 * prove the guess wrong, because a function is not inlined into itself, and the
 * loop moves out to that context.
 *
 * Invariants:
 *  1. A loop's context is that of the loop around it, or is inside of it.
 *  2. The path from the procedure to a piece goes through each of its contexts once, and
 *     through no other; and through all loops around it that are written in these.
 */
#include "structure/weave.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"
#include "structure/keys.h"

/* Of a loop's code, that much may come from outside of the context in which it is written. */
#define STRANGERS_PER_CENT 3
/* How often a piece may be looked at because of the loops around it. */
#define VISITS_PER_PIECE 64

struct weaver {
	const struct weave_input *in;
	uint32_t *depth;        /* of contexts */
	uint32_t *first;        /* of a loop: where its pieces begin in `order` */
	uint32_t *beyond;       /* ... and where those of its nest end */
	uint32_t *order;        /* pieces, so that those of a nest follow each other */
	uint32_t *loop_context; /* the result */
	uint32_t *loop_node;
	uint64_t visits;
	struct keys nodes;
	struct weave *tree;
	size_t capacity;
};

bool weave_late(const struct weave_input *input)
{
	return input->deadline_ns && now_ns() > input->deadline_ns;
}

/* ---- checks and orders ---- */

static bool input_is_sane(const struct weave_input *in)
{
	if (!in->context_count)
		return false;
	for (size_t i = 1; i < in->context_count; i++)
		if (in->contexts[i].parent >= i)
			return false;
	for (size_t i = 0; i < in->loop_count; i++)
		if (in->loops[i].parent != WEAVE_NONE && in->loops[i].parent >= i)
			return false;
	for (size_t i = 0; i < in->piece_count; i++) {
		const struct weave_piece *p = &in->pieces[i];
		if (p->context >= in->context_count ||
		    (p->loop != WEAVE_NONE && p->loop >= in->loop_count))
			return false;
	}
	return true;
}

/* Numbers the loops so that a nest is an interval, and sorts the pieces by that. */
static bool order_pieces(struct weaver *w)
{
	const struct weave_input *in = w->in;
	size_t n = in->loop_count;
	uint32_t *size = calloc(n + 1, sizeof *size), *cursor = calloc(n + 1, sizeof *cursor);
	uint32_t at = 0;
	if (!size || !cursor) {
		free(size);
		free(cursor);
		return false;
	}
	for (size_t i = 0; i < in->piece_count; i++)
		if (in->pieces[i].loop != WEAVE_NONE)
			size[in->pieces[i].loop]++;
	for (size_t i = 0; i < n; i++)
		w->beyond[i] = size[i]; /* its own, for now */
	for (size_t i = n; i-- > 0;)
		if (in->loops[i].parent != WEAVE_NONE)
			size[in->loops[i].parent] += size[i];
	/* A nest: first the pieces of the loop itself, then its inner loops. size[i] is the nest's
	   total; what a parent has handed out so far is in its cursor. */
	for (size_t i = 0; i < n; i++) {
		uint32_t own = w->beyond[i], parent = in->loops[i].parent;
		uint32_t *from = parent == WEAVE_NONE ? &at : &cursor[parent];
		w->first[i] = *from;
		*from += size[i];
		w->beyond[i] = w->first[i] + size[i];
		cursor[i] = w->first[i] + own;
		size[i] = w->first[i]; /* from here on: where its next own piece goes */
	}
	for (size_t i = 0; i < in->piece_count; i++)
		if (in->pieces[i].loop != WEAVE_NONE)
			w->order[size[in->pieces[i].loop]++] = (uint32_t)i;
	free(size);
	free(cursor);
	return true;
}

static uint32_t common(const struct weaver *w, uint32_t a, uint32_t b)
{
	const struct weave_context *c = w->in->contexts;
	while (a != b) {
		if (w->depth[a] >= w->depth[b])
			a = c[a].parent;
		else
			b = c[b].parent;
	}
	return a;
}

static bool is_inside(const struct weaver *w, uint32_t inner, uint32_t outer)
{
	while (w->depth[inner] > w->depth[outer])
		inner = w->in->contexts[inner].parent;
	return inner == outer;
}

/* ---- the context of a loop ---- */

/* Counts the visit of a nest's pieces; false where that would be too much work. */
static bool may_visit(struct weaver *w, size_t loop)
{
	uint64_t pieces = w->beyond[loop] - w->first[loop];
	if (w->visits < pieces)
		return false;
	w->visits -= pieces;
	return true;
}

/* Descends from `all`, common to all pieces, towards `control`, common to those that decide, as long as
   next to nothing is left behind. */
static uint32_t descend(struct weaver *w, size_t loop, uint32_t all, uint32_t control)
{
	const struct weave_input *in = w->in;
	uint64_t total = 0, strangers = 0;
	uint32_t deepest = control;
	if (!may_visit(w, loop))
		return all;
	for (;;) { /* from the inside out: the depth is small, and mostly the first try fits */
		total = strangers = 0;
		for (uint32_t i = w->first[loop]; i < w->beyond[loop]; i++) {
			const struct weave_piece *p = &in->pieces[w->order[i]];
			if (!p->known)
				continue;
			total += p->end - p->start;
			if (!is_inside(w, p->context, deepest))
				strangers += p->end - p->start;
		}
		if (deepest == all || strangers * 100 <= total * STRANGERS_PER_CENT)
			return deepest;
		deepest = in->contexts[deepest].parent;
		if (!may_visit(w, loop))
			return all;
	}
}

static bool nested_contexts(struct weaver *w)
{
	const struct weave_input *in = w->in;
	uint32_t *all = malloc((in->loop_count + 1) * sizeof *all);
	uint32_t *control = malloc((in->loop_count + 1) * sizeof *control);
	if (!all || !control) {
		free(all);
		free(control);
		return false;
	}
	for (size_t i = 0; i < in->loop_count; i++)
		all[i] = control[i] = WEAVE_NONE;
	for (size_t i = 0; i < in->piece_count; i++) {
		const struct weave_piece *p = &in->pieces[i];
		uint32_t l = p->loop;
		if (l == WEAVE_NONE || !p->known)
			continue;
		all[l] = all[l] == WEAVE_NONE ? p->context : common(w, all[l], p->context);
		if (p->control)
			control[l] = control[l] == WEAVE_NONE ? p->context
							      : common(w, control[l], p->context);
	}
	for (size_t i = in->loop_count; i-- > 0;) {
		uint32_t parent = in->loops[i].parent;
		if (parent != WEAVE_NONE && all[i] != WEAVE_NONE)
			all[parent] = all[parent] == WEAVE_NONE ? all[i]
								: common(w, all[parent], all[i]);
	}
	for (size_t i = 0; i < in->loop_count; i++) {
		uint32_t parent = in->loops[i].parent;
		uint32_t outer = parent == WEAVE_NONE ? 0 : w->loop_context[parent];
		uint32_t c = all[i] == WEAVE_NONE ? outer : all[i];
		if (all[i] != WEAVE_NONE && control[i] != WEAVE_NONE && control[i] != c &&
		    is_inside(w, control[i], c))
			c = descend(w, i, c, control[i]);
		w->loop_context[i] = is_inside(w, c, outer) ? c : outer;
	}
	free(all);
	free(control);
	return true;
}

static const struct weave_piece *piece_at(const struct weave_input *in, uint64_t address)
{
	size_t found = FIRST_NOT(i, in->piece_count, in->pieces[i].end <= address);
	return found < in->piece_count && in->pieces[found].start <= address ? &in->pieces[found]
									     : NULL;
}

/* Where the statements of this nest that belong to a context around it prove that the loop is,
   the outermost first; WEAVE_NONE: there are none, the guess may stand. */
static uint32_t proven_context(struct weaver *w, size_t loop)
{
	const struct weave_input *in = w->in;
	uint32_t around[64], count = 0;
	uint64_t bytes[64] = {0}, total = 0;
	bool decides[64] = {false};
	for (uint32_t l = in->loops[loop].parent; l != WEAVE_NONE && count < 63;
	     l = in->loops[l].parent)
		if (!count || around[count - 1] != w->loop_context[l])
			around[count++] = w->loop_context[l];
	if (!count || around[count - 1] != 0)
		around[count++] = 0;
	if (!may_visit(w, loop))
		return around[0];
	for (uint32_t i = w->first[loop]; i < w->beyond[loop]; i++) {
		const struct weave_piece *p = &in->pieces[w->order[i]];
		if (!p->known)
			continue;
		total += p->end - p->start;
		for (uint32_t k = 0; k < count; k++)
			if (around[k] == p->context) {
				bytes[k] += p->end - p->start;
				decides[k] |= p->control && p->loop == loop;
			}
	}
	while (count-- > 0)
		if (decides[count] || bytes[count] * 100 > total * STRANGERS_PER_CENT)
			return around[count];
	return WEAVE_NONE;
}

/* Where the jump back is. (Guesses by how much of each context is in the loop, or outside of it, were
   measured, and are wrong more often.) */
static uint32_t guessed_context(const struct weaver *w, size_t loop, uint32_t outer)
{
	const struct weave_piece *back = piece_at(w->in, w->in->loops[loop].back);
	if (back && back->known)
		return back->context;
	for (uint32_t i = w->first[loop]; i < w->beyond[loop]; i++)
		if (w->in->pieces[w->order[i]].known)
			return w->in->pieces[w->order[i]].context;
	return outer;
}

static void flat_contexts(struct weaver *w)
{
	const struct weave_input *in = w->in;
	for (size_t i = 0; i < in->loop_count; i++) {
		uint32_t parent = in->loops[i].parent;
		uint32_t outer = parent == WEAVE_NONE ? 0 : w->loop_context[parent];
		uint32_t proven = proven_context(w, i);
		/* Statements of a context farther out than the loop around it: that one stays, and
		   this one with it (invariant 1). */
		if (proven != WEAVE_NONE)
			w->loop_context[i] = outer;
		else
			w->loop_context[i] = guessed_context(w, i, outer);
	}
}

/* ---- nodes ---- */

static uint32_t node_get(struct weaver *w, struct weave_node node)
{
	struct key key = {node.parent, node.type, node.type == WEAVE_LINE ? node.file : node.id,
			  node.type == WEAVE_LINE ? node.line : 0};
	uint32_t *at = keys_at(&w->nodes, key);
	if (!at)
		return WEAVE_NONE;
	if (*at != KEYS_NONE)
		return *at;
	if (!ARRAY_ROOM(w->tree->nodes, w->tree->count, w->capacity))
		return WEAVE_NONE;
	*at = (uint32_t)w->tree->count;
	w->tree->nodes[w->tree->count++] = node;
	return *at;
}

static bool is_around(const struct weaver *w, uint32_t loop, uint32_t context)
{
	for (; loop != WEAVE_NONE; loop = w->in->loops[loop].parent)
		if (w->loop_context[loop] == context)
			return true;
	return context == 0;
}

#define CHAIN_MAX 256

/* The node of context `to`, below `node` that is in context `from` and in `loop`. */
static uint32_t enter(struct weaver *w, uint32_t node, uint32_t loop, uint32_t from, uint32_t to)
{
	uint32_t chain[CHAIN_MAX], count = 0;
	if (to == from || (w->in->flat ? is_around(w, loop, to) : !is_inside(w, to, from)))
		return node;
	if (w->in->flat)
		return node_get(w, (struct weave_node){WEAVE_INLINE, node, to, 0, 0, 0});
	for (uint32_t c = to; c != from; c = w->in->contexts[c].parent)
		if (count < CHAIN_MAX)
			chain[count++] = c;
	while (count-- > 0 && node != WEAVE_NONE)
		node = node_get(w, (struct weave_node){WEAVE_INLINE, node, chain[count], 0, 0, 0});
	return node;
}

static bool make_loops(struct weaver *w)
{
	const struct weave_input *in = w->in;
	for (size_t i = 0; i < in->loop_count; i++) {
		uint32_t parent = in->loops[i].parent;
		uint32_t node = parent == WEAVE_NONE ? 0 : w->loop_node[parent];
		uint32_t outer = parent == WEAVE_NONE ? 0 : w->loop_context[parent];
		node = enter(w, node, parent, outer, w->loop_context[i]);
		if (node == WEAVE_NONE)
			return false;
		node = node_get(w, (struct weave_node){WEAVE_LOOP, node, (uint32_t)i, 0, 0, 0});
		if (node == WEAVE_NONE)
			return false;
		w->loop_node[i] = node;
	}
	return true;
}

/* The innermost loop around a piece that is written in one of its contexts. A piece of another function, that
   was scheduled into a loop, is not of the function in which that is written. */
static uint32_t loop_of(const struct weaver *w, const struct weave_piece *p)
{
	uint32_t loop = p->loop;
	while (!w->in->flat && loop != WEAVE_NONE &&
	       !is_inside(w, p->context, w->loop_context[loop]))
		loop = w->in->loops[loop].parent;
	return loop;
}

static bool make_lines(struct weaver *w)
{
	const struct weave_input *in = w->in;
	for (size_t i = 0; i < in->piece_count; i++) {
		const struct weave_piece *p = &in->pieces[i];
		uint32_t loop = loop_of(w, p);
		uint32_t node = loop == WEAVE_NONE ? 0 : w->loop_node[loop];
		uint32_t outer = loop == WEAVE_NONE ? 0 : w->loop_context[loop];
		node = enter(w, node, loop, outer, p->context);
		if (node != WEAVE_NONE && p->line)
			node = node_get(w, (struct weave_node){WEAVE_LINE, node, 0, p->file,
							       p->line, p->line});
		if (node == WEAVE_NONE)
			return false;
		w->tree->of_piece[i] = node;
	}
	return true;
}

/* ---- the lines of a loop ---- */

struct spot {
	uint32_t file, line;
};

/* The line of `context` that a piece inside of it stands for: its own, or that of the call. */
static struct spot spot_in(const struct weaver *w, const struct weave_piece *p, uint32_t context)
{
	const struct weave_context *c = w->in->contexts;
	uint32_t at;
	if (!p || !p->known)
		return (struct spot){0, 0};
	if (p->context == context)
		return (struct spot){p->file, p->line};
	if (w->in->flat || !is_inside(w, p->context, context))
		return (struct spot){0, 0};
	for (at = p->context; c[at].parent != context;)
		at = c[at].parent;
	return (struct spot){c[at].call_file, c[at].call_line};
}

static void first_line(struct weaver *w, size_t loop, struct spot back, struct spot head)
{
	struct weave_node *node = &w->tree->nodes[w->loop_node[loop]];
	struct spot begin = back.line ? back : head;
	uint32_t within = 0, after = 0;
	if (back.line && head.line && head.file == back.file && head.line < back.line) {
		/* Is the test below the statements (do … while), or did one of them only move up? */
		for (uint32_t i = w->first[loop]; i < w->beyond[loop]; i++) {
			const struct weave_piece *p = &w->in->pieces[w->order[i]];
			struct spot s;
			if (p->loop != loop)
				break; /* its own come first */
			s = spot_in(w, p, w->loop_context[loop]);
			within += s.file == back.file && s.line >= head.line && s.line < back.line;
			after += s.file == back.file && s.line > back.line;
		}
		if (within > after)
			begin = head;
	}
	for (uint32_t i = w->first[loop]; !begin.line && i < w->beyond[loop]; i++)
		begin = spot_in(w, &w->in->pieces[w->order[i]], w->loop_context[loop]);
	node->file = begin.file;
	node->line = node->last_line = begin.line;
}

static void stretch(struct weave_node *loop, struct spot s)
{
	if (s.file == loop->file && s.line > loop->last_line)
		loop->last_line = s.line;
}

static void loop_lines(struct weaver *w)
{
	const struct weave_input *in = w->in;
	for (size_t i = 0; i < in->loop_count; i++)
		first_line(w, i, spot_in(w, piece_at(in, in->loops[i].back), w->loop_context[i]),
			   spot_in(w, piece_at(in, in->loops[i].header), w->loop_context[i]));
	for (size_t i = 0; i < in->piece_count; i++)
		if (in->pieces[i].loop != WEAVE_NONE)
			stretch(&w->tree->nodes[w->loop_node[in->pieces[i].loop]],
				spot_in(w, &in->pieces[i], w->loop_context[in->pieces[i].loop]));
	for (size_t i = in->loop_count; i-- > 0;) {
		uint32_t parent = in->loops[i].parent;
		const struct weave_node *inner = &w->tree->nodes[w->loop_node[i]];
		if (parent != WEAVE_NONE && w->loop_context[i] == w->loop_context[parent])
			stretch(&w->tree->nodes[w->loop_node[parent]],
				(struct spot){inner->file, inner->last_line});
	}
}

/* ---- */

static void weaver_free(struct weaver *w)
{
	free(w->depth);
	free(w->first);
	free(w->beyond);
	free(w->order);
	free(w->loop_context);
	free(w->loop_node);
	keys_free(&w->nodes);
}

static bool weaver_start(struct weaver *w, const struct weave_input *in)
{
	size_t loops = in->loop_count + 1;
	memset(w, 0, sizeof *w);
	w->in = in;
	w->visits = (uint64_t)VISITS_PER_PIECE * in->piece_count;
	w->depth = calloc(in->context_count + 1, sizeof *w->depth);
	w->first = calloc(loops, sizeof *w->first);
	w->beyond = calloc(loops, sizeof *w->beyond);
	w->order = calloc(in->piece_count + 1, sizeof *w->order);
	w->loop_context = calloc(loops, sizeof *w->loop_context);
	w->loop_node = calloc(loops, sizeof *w->loop_node);
	if (!w->depth || !w->first || !w->beyond || !w->order || !w->loop_context ||
	    !w->loop_node || !input_is_sane(in) || !order_pieces(w))
		return false;
	for (size_t i = 1; i < in->context_count; i++)
		w->depth[i] = w->depth[in->contexts[i].parent] + 1;
	if (in->flat)
		flat_contexts(w);
	return in->flat || nested_contexts(w);
}

uint32_t *weave_loop_contexts(const struct weave_input *input)
{
	struct weaver w;
	uint32_t *result = NULL;
	if (weaver_start(&w, input)) {
		result = w.loop_context;
		w.loop_context = NULL;
	}
	weaver_free(&w);
	return result;
}

bool weave_build(const struct weave_input *input, struct weave *out)
{
	struct weaver w;
	bool good = weaver_start(&w, input);
	memset(out, 0, sizeof *out);
	w.tree = out;
	out->of_piece = calloc(input->piece_count + 1, sizeof *out->of_piece);
	good = good && out->of_piece &&
	       node_get(&w, (struct weave_node){WEAVE_PROCEDURE, 0, 0, 0, 0, 0}) == 0 &&
	       make_loops(&w) && make_lines(&w);
	if (good)
		loop_lines(&w);
	weaver_free(&w);
	if (!good)
		weave_free(out);
	return good;
}

void weave_free(struct weave *tree)
{
	free(tree->nodes);
	free(tree->of_piece);
	memset(tree, 0, sizeof *tree);
}
